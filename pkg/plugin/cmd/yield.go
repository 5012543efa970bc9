// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/request"
)

// yielding is the verbs yield and release: both leave fields to others, from now on, by the same annotation.
type yielding struct {
	annotator
	undo bool
}

func (p *plugin) yield() *cobra.Command {
	o := &yielding{annotator: annotator{planner: planner{plugin: p}}}
	cmd := &cobra.Command{
		Use:   "yield mcpserver/NAME [FIELD...]",
		Short: "Leave fields that are in conflict to their owners",
		Long: `Leave fields of an MCPServer's children to the field managers that own them, with the values that
they have: all fields in conflict that can be left, or those that you name. The operator does not
set them as long as the annotation ` + v1beta1.AnnotationYield + ` on the MCPServer names them; --undo
removes entries from it, all if you name none. A note names what cannot be left, and the command
that takes it.

` + fieldArguments + `

You see the change, checked by the API server, before you are asked. To give up fields that are not
in conflict, use release.`,
		Example: examples(`
# Leave everything as it is that can be
kubectl freehold yield mcpserver/web

kubectl freehold yield mcpserver/web \
  'deployment.apps/web:.spec.template.spec.containers[name="toolhive"].resources'

# Let the operator set it again
kubectl freehold yield mcpserver/web --undo`),
		Args:              needsServer,
		ValidArgsFunction: p.completeServers,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.yield(cmd.Context(), args[0], args[1:]) },
	}
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&o.undo, "undo", false, "Stop leaving the fields to others.")
	return cmd
}

// Short names of fields that are often given up.
var shortFields = map[string]func(server string) request.Selector{
	"replicas": func(server string) request.Selector {
		return request.Selector{Object: "deployment.apps/" + inventory.Proxy.Name(server), Path: render.ReplicasPath}
	},
	"backend-replicas": func(server string) request.Selector {
		return request.Selector{Object: "statefulset.apps/" + inventory.Backend.Name(server), Path: render.ReplicasPath}
	},
}

func (p *plugin) release() *cobra.Command {
	o := &yielding{annotator: annotator{planner: planner{plugin: p}}}
	cmd := &cobra.Command{
		Use:   "release mcpserver/NAME FIELD...",
		Short: "Give up fields that the operator sets, for others to set",
		Long: `Give up fields of an MCPServer's children that the operator sets. Their values stay, nobody owns
them, and whoever sets them next meets no conflict. The operator does not set them as long as the
annotation ` + v1beta1.AnnotationYield + ` on the MCPServer names them; --undo removes entries from it.

` + fieldArguments + `
replicas is short for .spec.replicas of the proxy's Deployment, backend-replicas for that of the
backend's StatefulSet.

You see the change, checked by the API server, before you are asked.`,
		Example: examples(`
# Before a HorizontalPodAutoscaler is made for the proxy
kubectl freehold release mcpserver/web replicas

# The number in the MCPServer's spec is to hold again
kubectl freehold release mcpserver/web replicas --undo`),
		Args:              needsServer,
		ValidArgsFunction: p.completeRelease,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.release(cmd.Context(), args[0], args[1:]) },
	}
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&o.undo, "undo", false, "Let the operator set the fields again.")
	return cmd
}

func (p *plugin) completeRelease(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return p.completeServers(cmd, args, toComplete)
	}
	return beginningWith([]string{"backend-replicas", "replicas"}, toComplete), nothing
}

func (o *yielding) yield(ctx context.Context, argument string, fields []string) error {
	server, err := o.begin(argument)
	if err != nil {
		return err
	}
	if o.undo {
		return o.undoYield(ctx, server, fields)
	}
	plan, _, err := o.planFor(server)
	if err != nil {
		return err
	}
	all := plan.Contested()
	if len(fields) == 0 {
		if all, err = o.leavable(server, all); err != nil {
			return err
		}
	}
	chosen, entries, err := o.pick(server, all, nil, fields)
	if err != nil || len(entries) == 0 {
		return err
	}
	var effects []string
	for _, c := range chosen {
		if !c.Yieldable() {
			return errors.New(o.kept(server, []desired.Contested{c}))
		}
		effects = append(effects, fmt.Sprintf("%s %s: stays %s of %s; %s would have set %s", c.Object, c.Path,
			printers.Value(c.Theirs, false), holders(c), c.Writer, printers.Value(c.Ours, false)))
	}
	for _, s := range entries {
		if s.Manager != "" {
			return fmt.Errorf("%s: name a field to yield; a manager can only be named to take", s)
		}
	}
	return o.write(ctx, server, entries, effects)
}

// leavable returns those of an MCPServer's contested fields with which something is settled if they are left to others, and warns of the
// others. The error is that there are only others.
func (o *yielding) leavable(server *v1beta1.MCPServer, all []desired.Contested) (left []desired.Contested, err error) {
	for _, group := range desired.Disputes(all) {
		if desired.Leavable(group) {
			left = append(left, group...)
		} else {
			o.warn("%s", o.kept(server, group))
		}
	}
	if len(left) == 0 && len(all) > 0 {
		err = errors.New("nothing that is contested can be left to others as it is, so nothing was written")
	}
	return left, err
}

// kept says of contested fields of one object, about which one writer is in dispute, which of them cannot be left to others, and what
// to do.
func (o *yielding) kept(server *v1beta1.MCPServer, group []desired.Contested) string {
	var kept, others []string
	var take []request.Selector
	for _, c := range group {
		if c.Yieldable() {
			others = append(others, c.Path)
			continue
		}
		kept, take = append(kept, c.Path), append(take, c.Selector())
	}
	text := fmt.Sprintf("%s of %s cannot be left to others: more depends on it than its value", strings.Join(kept, ", "), group[0].Object)
	if len(others) > 0 {
		text += fmt.Sprintf("; while that is contested, %s does not write the object, so leaving %s settles nothing yet",
			group[0].Writer, strings.Join(others, ", "))
	}
	var words []string
	for _, s := range take {
		words = append(words, s.String())
	}
	return text + "; take it: " + o.commandFor("take", server, words...)
}

func (o *yielding) release(ctx context.Context, argument string, fields []string) error {
	server, err := o.begin(argument)
	if err != nil {
		return err
	}
	for i, field := range fields {
		if short, ok := shortFields[field]; ok {
			fields[i] = short(server.Name).String()
		}
	}
	if o.undo {
		return o.undoYield(ctx, server, fields)
	}
	if len(fields) == 0 {
		return fmt.Errorf("name a field, such as replicas or deployment.apps/%s:.spec.replicas", server.Name)
	}
	plan, _, err := o.planFor(server)
	if err != nil {
		return err
	}
	before := request.Read(server.Annotations[v1beta1.AnnotationYield])
	var entries []request.Selector
	var effects []string
	for _, field := range fields {
		s, err := request.Parse(field)
		if err != nil {
			return err
		}
		if entries = append(entries, s); slices.Contains(before, s) {
			continue
		}
		given, err := o.givenUp(server, plan, s)
		if err != nil {
			return err
		}
		effects = append(effects, given...)
	}
	return o.write(ctx, server, entries, effects)
}

// givenUp returns what the writers own of the fields that an entry stands for.
func (o *yielding) givenUp(server *v1beta1.MCPServer, plan *desired.Plan, s request.Selector) ([]string, error) {
	var effects []string
	kept := false
	for _, intent := range plan.Intents {
		if intent.Live == nil {
			continue
		}
		own, err := ownership.Fields(ownership.ApplyEntry(intent.Live, intent.Writer, ""))
		if err != nil {
			return nil, err
		}
		meant := func(path fieldpath.Path) bool { return s.Field(intent.Object, path) }
		left := ownership.Left(own, func(path fieldpath.Path) bool { return meant(path) && request.Yieldable(intent.Object, path) })
		kept = kept || !ownership.Select(own, meant).Difference(left).Empty()
		for path := range ownership.Select(left, meant).All() {
			if value := ownership.ValueAt(intent.Live.Object, path); path.String() == s.Path || len(effects) < maxEffects {
				effects = append(effects, fmt.Sprintf("%s %s: stays %s; %s gives it up", intent.Object, path, printers.Value(value, true), intent.Writer))
			}
		}
	}
	switch {
	case len(effects) > 0:
		return effects, nil
	case kept:
		return nil, fmt.Errorf("%s cannot be given up: more depends on it than its value", s)
	case len(plan.Held) > 0:
		return nil, fmt.Errorf("%s: the operator owns no such field of what it writes while a reference cannot be used; see %s", s, o.commandFor("diff", server))
	default:
		// owners takes any kind, as kubectl does: in full, since another product may have one of that name.
		see := o.client.Freehold("owners", "-n", server.Namespace, cluster.ServerRef(server.Namespace, server.Name).String())
		return nil, fmt.Errorf("%s: the operator owns no such field; see %s", s, see)
	}
}

// maxEffects is how many of the fields that one entry stands for are listed.
const maxEffects = 20

// write adds entries to the annotation.
func (o *yielding) write(ctx context.Context, server *v1beta1.MCPServer, more []request.Selector, effects []string) error {
	before := request.Read(server.Annotations[v1beta1.AnnotationYield])
	entries := request.Merge(before, more)
	switch {
	case len(entries) == len(before):
		fmt.Fprintln(o.Out, "It is so already.")
		return nil
	case !request.Fits(entries):
		return fmt.Errorf("these are %d entries, and the operator reads %d, of %d bytes at most: name a field above them",
			len(entries), request.MaxEntries, request.MaxBytes)
	}
	if err := o.refuseForeign(server, v1beta1.AnnotationYield); err != nil {
		return err
	}
	c := change{server: server, annotation: v1beta1.AnnotationYield, value: request.Write(entries), effects: effects}
	c.answered = answeredYield(c.value)
	return o.annotate(ctx, c)
}

// answeredYield is change.answered for a request to leave fields to others.
func answeredYield(value string) func(server *v1beta1.MCPServer) (told string, refused, done bool) {
	return answered(v1beta1.AnnotationYield, v1beta1.ConditionFieldsYielded, value)
}

// undoYield takes entries out of the annotation.
func (o *yielding) undoYield(ctx context.Context, server *v1beta1.MCPServer, fields []string) error {
	before := request.Read(server.Annotations[v1beta1.AnnotationYield])
	if len(before) == 0 {
		fmt.Fprintln(o.Out, "No field is left to other field managers.")
		return nil
	}
	c := change{server: server, annotation: v1beta1.AnnotationYield}
	gone := before
	if len(fields) > 0 {
		gone = nil
		for _, field := range fields {
			s, err := request.Parse(field)
			if err != nil {
				return err
			}
			if !slices.Contains(before, s) {
				return fmt.Errorf("%s is not among what is left to others: %s", s, request.Write(before))
			}
			gone = append(gone, s)
		}
		c.value = request.Write(slices.DeleteFunc(slices.Clone(before), func(s request.Selector) bool { return slices.Contains(gone, s) }))
	}
	if err := o.refuseForeign(server, v1beta1.AnnotationYield); err != nil {
		return err
	}
	for _, s := range gone {
		c.effects = append(c.effects, s.String()+": the operator sets it again")
	}
	answered := answeredYield(c.value)
	c.answered = func(server *v1beta1.MCPServer) (told string, refused, done bool) {
		_, _, done = answered(server)
		return "Done.", false, done || condition(server, v1beta1.ConditionFieldsYielded) == nil
	}
	return o.annotate(ctx, c)
}
