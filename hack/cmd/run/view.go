// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/clientset/versioned"
)

const (
	// refresh is how often the view looks.
	refresh = 200 * time.Millisecond
	// logTail is how much of the operator's log is shown when it has ended, in bytes.
	logTail = 4 << 10
)

// view looks at a namespace.
type view struct {
	core      kubernetes.Interface
	servers   versioned.Interface
	namespace string
}

func newView(config *rest.Config, namespace string) (*view, error) {
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	servers, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &view{core: core, servers: servers, namespace: namespace}, nil
}

// follow shows the MCPServers until all are ready. On a terminal the picture is redrawn in place; elsewhere each
// change is a new picture.
func (v *view) follow(ctx context.Context, out io.Writer, ended <-chan struct{}) error {
	file, ok := out.(*os.File)
	redraw := ok && term.IsTerminal(int(file.Fd()))
	ticker := time.NewTicker(refresh)
	defer ticker.Stop()
	shown := ""
	for {
		picture, ready, err := v.picture(ctx)
		if err != nil {
			return err
		}
		if picture != shown {
			if redraw && shown != "" {
				// Up over the last picture, and clear from there.
				fmt.Fprintf(out, "\x1b[%dA\x1b[J", strings.Count(shown, "\n"))
			}
			fmt.Fprint(out, picture)
			shown = picture
		}
		if ready {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ended:
			return errors.New("the operator has ended")
		case <-ticker.C:
		}
	}
}

// picture draws the MCPServers with the number of children that exist.
func (v *view) picture(ctx context.Context) (text string, ready bool, err error) {
	list, err := v.servers.ToolhiveV1beta1().MCPServers(v.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", false, err
	}
	children, err := v.children(ctx)
	if err != nil {
		return "", false, err
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "MCPSERVER\tTRANSPORT\tPHASE\tOBJECTS\tREADY\tURL")
	ready = len(list.Items) > 0
	for i := range list.Items {
		server := &list.Items[i]
		count := 0
		for _, c := range children {
			if c.parent == server.Name && c.name != serverName(server.Name) {
				count++
				ready = ready && c.ready
			}
		}
		phase := server.Status.Phase
		if phase == "" {
			phase = "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%s\n", server.Name, server.Spec.Transport, phase, count,
			server.Status.ReadyReplicas, server.Status.URL)
		ready = ready && server.Status.Phase == v1beta1.PhaseReady
	}
	err = table.Flush()
	return b.String(), ready, err
}

// table prints each MCPServer and its children with their field managers, the number of fields that each owns, and whether they are ready.
func (v *view) table(ctx context.Context, out io.Writer) error {
	children, err := v.children(ctx)
	if err != nil {
		return err
	}
	slices.SortStableFunc(children, func(a, b child) int { return strings.Compare(a.parent, b.parent) })
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "OBJECT\tFIELD MANAGER\tFIELDS OWNED\tREADY")
	for _, c := range children {
		for i, m := range c.managers {
			name, ready := c.name, c.state
			if i > 0 {
				name, ready = "", ""
			}
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", name, m.name, m.fields, ready)
		}
	}
	return table.Flush()
}

func deleteServers(ctx context.Context, servers versioned.Interface) error {
	mcpServers := servers.ToolhiveV1beta1().MCPServers(samplesNamespace)
	list, err := mcpServers.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if err := mcpServers.Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	ticker := time.NewTicker(refresh)
	defer ticker.Stop()
	for {
		list, err := mcpServers.List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

func showTail(out io.Writer, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(text) > logTail {
		text = text[len(text)-logTail:]
	}
	_, err = fmt.Fprintf(out, "The operator's log ends with:\n%s\n", text)
	return err
}
