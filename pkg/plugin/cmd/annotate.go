// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
)

const (
	// Values of --dry-run.
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
	// answerPoll is how often the operator's answer is looked for.
	answerPoll = 200 * time.Millisecond
	// answerTimeout is how long it is waited for, unless the user says otherwise.
	answerTimeout = 30 * time.Second
)

// annotator writes the annotations by which the user says what the operator is to do about fields.
type annotator struct {
	planner
	dryRun  string
	yes     bool
	wait    bool
	timeout time.Duration
}

func (s *annotator) addFlags(cmd *cobra.Command) {
	s.planner.addFlags(cmd)
	cmd.Flags().StringVar(&s.dryRun, "dry-run", dryRunNone,
		"client shows the change and sends nothing; server lets the API server check it as well; none shows it, lets it be checked, asks and then writes it.")
	cmd.Flags().BoolVarP(&s.yes, "yes", "y", false, "Do not ask.")
	cmd.Flags().BoolVar(&s.wait, "wait", true, "Wait for the operator's answer.")
	cmd.Flags().DurationVar(&s.timeout, "timeout", answerTimeout, "How long to wait for the operator's answer.")
	complete(cmd, "dry-run", cobra.FixedCompletions([]string{dryRunNone, dryRunClient, dryRunServer}, nothing))
}

// begin checks the flags, connects, and reads the MCPServer.
func (s *annotator) begin(argument string) (*v1beta1.MCPServer, error) {
	if !slices.Contains([]string{dryRunNone, dryRunClient, dryRunServer}, s.dryRun) {
		return nil, fmt.Errorf("--dry-run is %q; give none, client or server", s.dryRun)
	}
	if err := s.connect(); err != nil {
		return nil, err
	}
	server, err := s.client.Server(argument)
	if err == nil && server.DeletionTimestamp != nil {
		err = fmt.Errorf("MCPServer %s is being deleted", server.Name)
	}
	return server, err
}

// change is a change of one annotation of an MCPServer.
type change struct {
	server     *v1beta1.MCPServer
	annotation string
	// value that the annotation is to have; an empty one removes it.
	value string
	// effects are its consequences, line by line.
	effects []string
	// answered reports whether the operator has answered, and how. It is given the MCPServer as it is then.
	answered func(server *v1beta1.MCPServer) (told string, refused, done bool)
}

// annotate shows a change, lets the API server check it, asks, writes it, and waits for the operator.
func (s *annotator) annotate(ctx context.Context, c change) error {
	s.preview(c)
	if s.dryRun == dryRunClient {
		fmt.Fprintln(s.Out, "Nothing was sent (dry run).")
		return nil
	}
	if _, err := s.client.Annotate(c.server, c.annotation, c.value, true); err != nil {
		return err
	}
	if s.dryRun == dryRunServer {
		fmt.Fprintln(s.Out, "The API server accepts it. Nothing was written (dry run).")
		return nil
	}
	if err := s.ask(); err != nil {
		return err
	}
	if _, err := s.client.Annotate(c.server, c.annotation, c.value, false); err != nil {
		return err
	}
	if !s.wait {
		fmt.Fprintln(s.Out, "Written.")
		return nil
	}
	return s.await(ctx, c)
}

// preview shows the change and its consequences.
func (s *annotator) preview(c change) {
	fmt.Fprintf(s.Out, "%s, by field manager %s:\n",
		s.palette.Bold(fmt.Sprintf("mcpserver/%s (namespace %s)", c.server.Name, c.server.Namespace)), managers.Plugin)
	before, was := c.server.Annotations[c.annotation]
	if was {
		fmt.Fprintln(s.Out, s.palette.Removed(fmt.Sprintf("- %s: %s", c.annotation, before)))
	}
	if c.value != "" {
		fmt.Fprintln(s.Out, s.palette.Added(fmt.Sprintf("+ %s: %s", c.annotation, c.value)))
	}
	for _, effect := range c.effects {
		s.say("  %s", effect)
	}
}

// ask lets the user decide.
func (s *annotator) ask() error {
	if s.yes {
		return nil
	}
	if !s.Interactive {
		return &exit{code: ExitDeclined, err: errors.New("there is no terminal to ask on; give --yes to write. Nothing was written")}
	}
	fmt.Fprint(s.Out, "Write it? [y/N] ")
	answer, err := bufio.NewReader(s.In).ReadString('\n')
	if err != nil && answer == "" {
		fmt.Fprintln(s.Out)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &exit{code: ExitDeclined, err: errors.New("nothing was written")}
}

// await waits for the operator's answer and shows it. Whatever goes wrong, the change is written by now, and the error says so.
func (s *annotator) await(ctx context.Context, c change) error {
	var told string
	var refused bool
	var last error
	err := wait.PollUntilContextTimeout(ctx, answerPoll, s.timeout, true, func(ctx context.Context) (done bool, err error) {
		now, err := s.now(ctx, c.server)
		switch {
		case apply.IsAbsent(err), apierrors.IsForbidden(err):
			return false, err
		case err == nil:
			told, refused, done = c.answered(now)
		}
		if ctx.Err() == nil { // Else the API server has not answered in time, which says nothing about the operator.
			last = err
		}
		return done, nil
	})
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return written("nothing waits for the operator's answer any more: %w", ctx.Err())
	case !wait.Interrupted(err):
		return written("the operator's answer cannot be read: %w", err)
	case last != nil:
		return written("the operator's answer could not be read within %v: %w", s.timeout, last)
	default:
		return written("the operator has not answered within %v: does it run?", s.timeout)
	}
	s.say("%s", told)
	if refused {
		return errFound
	}
	return nil
}

// now reads the MCPServer, unless the context ends before that is answered.
func (s *annotator) now(ctx context.Context, server *v1beta1.MCPServer) (*v1beta1.MCPServer, error) {
	type answer struct {
		server *v1beta1.MCPServer
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		now, err := s.client.Server(server.Name)
		answers <- answer{now, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case a := <-answers:
		return a.server, a.err
	}
}

// written returns an error about what follows the write.
func written(format string, args ...any) error {
	return &exit{code: ExitTimeout, err: fmt.Errorf("written, but "+format, args...)}
}

// refuseForeign returns an error, before anything else is shown, when another field manager owns an annotation.
func (s *annotator) refuseForeign(server *v1beta1.MCPServer, annotation string) error {
	value, ok := server.Annotations[annotation]
	if !ok || value == "" || cluster.Ours(server, annotation) {
		return nil
	}
	return s.client.Held(server, annotation)
}
