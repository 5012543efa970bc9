// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/writers"
)

type diffOptions struct {
	viewer
	tryAs  string
	answer printers.Differences
}

func (p *plugin) diff() *cobra.Command {
	o := &diffOptions{viewer: viewer{planner: planner{plugin: p}}, answer: printers.Differences{Differences: []printers.Difference{}}}
	cmd := &cobra.Command{
		Use:   "diff (mcpserver/NAME | -A)",
		Short: "Show what the operator would write now",
		Long: `Show what the operator would write for an MCPServer now, as a unified diff for each object and
writer. The plugin renders what the operator wants from the MCPServer and the arguments of the
operator's Deployment, and asks the API server for the result by a dry run: as the operator's field
manager, and without force. Nothing is written. With -A it looks at all MCPServers of the cluster.

It also shows what an admission policy or webhook changes. While the operator runs, and nothing is
in conflict or changed by admission, there is no difference. The exit code is 1 when there is one,
and otherwise 2 when you may not read everything.

The plugin reads what the MCPServer refers to with your rights. While a reference cannot be used,
the operator writes neither the proxy's Deployment nor what that reads: a note names the reference
and the reason.

The dry run needs the right to patch the children. With the admission policy
` + cluster.FieldManagersPolicy + ` it needs the right to impersonate the operator:
--try-as=` + cluster.DefaultUser + `.`,
		Example: examples(`
kubectl freehold diff mcpserver/web

# What would another proxyrunner change?
kubectl freehold diff mcpserver/web \
  --operator-arg=--runner-image=ghcr.io/stacklok/toolhive/proxyrunner:v0.44.0

# Which objects would the operator write?
kubectl freehold diff -A -o json | jq -r '.differences[] | "\(.namespace) \(.object)"'`),
		Args:              cobra.MatchAll(needsServer, cobra.MaximumNArgs(1)),
		ValidArgsFunction: p.completeServers,
		RunE:              func(_ *cobra.Command, args []string) error { return o.run(args) },
	}
	o.addFlags(cmd)
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "Look at the MCPServers of all namespaces.")
	o.outputFlag(cmd, "Default: a unified diff for each object and writer, as with wide.")
	cmd.Flags().StringVar(&o.tryAs, "try-as", "",
		"User in whose name the dry runs are made, such as the operator's, "+cluster.DefaultUser+". Everything else is done in yours.")
	return cmd
}

func (o *diffOptions) run(names []string) error {
	if err := o.prepare(names); err != nil {
		return err
	}
	o.client.TryAs = o.tryAs
	servers, err := o.named(names, o.all)
	if err != nil {
		return err
	}
	for _, server := range servers {
		switch err := o.differences(server); {
		case err != nil && o.all:
			o.warn("mcpserver/%s in namespace %s: %v", server.Name, server.Namespace, err)
			o.miss("mcpserver/%s in namespace %s: %v", server.Name, server.Namespace, err)
		case err != nil:
			return err
		}
	}
	o.answer.NotChecked = o.notChecked
	return o.viewer.answer(o.answer, o.answer.Any(), len(o.notChecked) > 0)
}

// note tells the user of a difference that is not one of a dry run.
func (o *diffOptions) note(format string, args ...any) {
	o.warn(format, args...)
	o.answer.Notes = append(o.answer.Notes, fmt.Sprintf(format, args...))
}

// differ adds how an object would change, if it would.
func (o *diffOptions) differ(server *v1beta1.MCPServer, object apply.ObjectRef, before, after *unstructured.Unstructured, writer string) error {
	text, err := printers.Unified(object.String(), before, after, writer)
	if text != "" {
		o.answer.Differences = append(o.answer.Differences, printers.Difference{
			Namespace: server.Namespace, Server: server.Name, Object: object.String(), Writer: writer, Diff: text,
		})
	}
	return err
}

// differences looks at what would be written for one MCPServer.
func (o *diffOptions) differences(server *v1beta1.MCPServer) error {
	if server.DeletionTimestamp != nil {
		return fmt.Errorf("MCPServer %s is being deleted", server.Name)
	}
	plan, children, err := o.planFor(server)
	if invalid, ok := errors.AsType[*render.InvalidError](err); ok {
		return fmt.Errorf("nothing is written for MCPServer %s: %w", server.Name, invalid)
	}
	if err != nil {
		return err
	}
	if len(plan.Held) > 0 && !plan.Unread {
		o.answer.Notes = append(o.answer.Notes, heldProxy(server, false))
	}
	for i := range plan.Intents {
		intent := &plan.Intents[i]
		if intent.Live == nil && children.Hides(intent.Object) {
			continue
		}
		if intent.Live == nil && slices.Contains(children.Foreign, intent.Object) {
			o.note("%s is refused: %s", intent.Object, children.Why[intent.Object])
			continue
		}
		if err := o.show(server, intent); err != nil {
			return err
		}
	}
	for _, unwanted := range plan.Unwanted {
		if err := o.differ(server, unwanted, children.Child(unwanted), nil, "deletion"); err != nil {
			return err
		}
	}
	return nil
}

// show shows what one intent would change.
func (o *diffOptions) show(server *v1beta1.MCPServer, intent *desired.Intent) error {
	for _, change := range intent.Claims {
		for _, field := range change.Fields {
			if change.Cause == apply.CauseYielded {
				o.note("%s gives up %s of %s; its value stays", intent.Writer, field.Path, intent.Object)
			}
		}
	}
	switch {
	case intent.Same():
		return nil
	case len(intent.Contested) > 0:
		o.note("%s does not write %s while %s of it is contested; see %s", intent.Writer, intent.Object, intent.Contested[0].Path,
			o.commandFor("conflicts", server))
		return nil
	case apply.ClassOf(intent.Err) != "":
		o.note("%v", intent.Err)
		return nil
	case intent.Waits != "":
		o.warn("%s: %s", intent.Object, intent.Waits)
	}
	after, err := o.after(intent)
	if err != nil {
		return err
	}
	return o.differ(server, intent.Object, intent.Live, after, intent.Writer)
}

// after returns the object as it would be afterwards: the API server's answer, unless the writer gets fields first, for which
// there is no dry run.
func (o *diffOptions) after(intent *desired.Intent) (*unstructured.Unstructured, error) {
	var claimed []string
	for _, change := range intent.Claims {
		if change.Cause != apply.CauseYielded {
			claimed = append(claimed, intent.Moved(change.Cause)...)
		}
	}
	if unset := intent.Moved(apply.CauseUnset); len(unset) > 0 {
		o.note("%s loses %s, which no field manager owns; %s claims that first, which a dry run cannot do, so the API server is not asked",
			intent.Object, strings.Join(unset, ", "), intent.Writer)
		return intent.After, nil
	}
	if len(claimed) > 0 {
		o.note("%s claims %d fields of %s first, such as %s, which a dry run cannot do, so the API server is not asked",
			intent.Writer, len(claimed), intent.Object, claimed[0])
		return intent.After, nil
	}
	trial, err := intent.Trial(writers.Schema())
	if err != nil {
		return nil, err
	}
	after, err := o.client.Try(intent.Writer, intent.Object, intent.Live, trial)
	switch {
	case apierrors.IsForbidden(err), err != nil && strings.Contains(err.Error(), cluster.FieldManagersPolicy):
		return nil, fmt.Errorf("the dry run of %s as %s was refused: %w; try it in the operator's name, "+
			"such as --try-as=%s", intent.Object, intent.Writer, err, cluster.DefaultUser)
	case err != nil:
		return nil, fmt.Errorf("the dry run of %s as %s was refused: %w", intent.Object, intent.Writer, err)
	}
	altered, err := apply.AlteredFields(writers.Schema(), &unstructured.Unstructured{Object: trial}, after)
	if err != nil {
		return nil, err
	}
	for _, field := range altered {
		o.note("%s: in the dry run as %s, %s: a mutating admission policy or webhook changes it", intent.Object, intent.Writer, field)
	}
	return after, nil
}
