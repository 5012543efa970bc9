// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/request"
)

const fieldArguments = `A FIELD is the path of a field, such as .spec.replicas, which includes all below it, or an object
and a path, such as deployment.apps/web:.spec.replicas, as conflicts shows them.`

func (p *plugin) take() *cobra.Command {
	o := &annotator{planner: planner{plugin: p}}
	cmd := &cobra.Command{
		Use:   "take mcpserver/NAME [FIELD | MANAGER]...",
		Short: "Take ownership of fields that are in conflict",
		Long: `Take fields of an MCPServer's children from the field managers that own them, so that the operator
sets them to the values that it wants: all fields in conflict, or those that you name.

` + fieldArguments + `
Name a field MANAGER in place of a field to take all that it contests. From a field manager of
ToolHive it takes all that the operator has taken over, in conflict or not: stop ToolHive's operator
first.

You see the change, checked by the API server, before you are asked. The plugin sets the annotation
` + v1beta1.AnnotationTake + ` on the MCPServer; the operator carries it out once.`,
		Example: examples(`
# Take everything that is contested
kubectl freehold take mcpserver/web

# Take what somebody has edited by hand
kubectl freehold take mcpserver/web kubectl-edit

kubectl freehold take mcpserver/web deployment.apps/web:.spec.replicas --yes`),
		Args:              needsServer,
		ValidArgsFunction: p.completeServers,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.take(cmd.Context(), args[0], args[1:]) },
	}
	o.addFlags(cmd)
	return cmd
}

// holders names the owners of a contested field, and how they own it.
func holders(c desired.Contested) string {
	var all []string
	for _, o := range c.Owners {
		all = append(all, printers.ManagerOf(o).Label())
	}
	return strings.Join(all, ", ")
}

// choose finds the contested fields that entries are about, and the entries to write; all without entries, and all of the intruders.
// Each entry must fit something.
func choose(all []desired.Contested, intruders []desired.Intruder, arguments []string, see string) (chosen []desired.Contested, entries []request.Selector, err error) {
	if len(arguments) == 0 {
		for _, c := range all {
			if !c.IsOf(intruders) {
				entries = append(entries, c.Selector())
			}
		}
		for _, i := range intruders {
			entries = append(entries, request.Selector{Manager: i.Owner.Manager})
		}
		return all, entries, nil
	}
	for _, argument := range arguments {
		s, err := request.Parse(argument)
		if err != nil {
			return nil, nil, err
		}
		fits := slices.ContainsFunc(intruders, func(i desired.Intruder) bool { return i.ChosenBy(s) })
		for _, c := range all {
			if c.ChosenBy(s) {
				fits = true
				if !slices.ContainsFunc(chosen, func(o desired.Contested) bool { return o.Selector() == c.Selector() }) {
					chosen = append(chosen, c)
				}
			}
		}
		if !fits {
			return nil, nil, fmt.Errorf("%s: no contested field fits; see %s", argument, see)
		}
		entries = append(entries, s)
	}
	return chosen, entries, nil
}

// pick finds those of an MCPServer's contested fields that arguments are about, and the entries to write. It says so where there are
// none.
func (s *annotator) pick(
	server *v1beta1.MCPServer, all []desired.Contested, intruders []desired.Intruder, arguments []string,
) (chosen []desired.Contested, entries []request.Selector, err error) {
	if chosen, entries, err = choose(all, intruders, arguments, s.commandFor("conflicts", server)); err == nil && len(entries) == 0 {
		if err = printers.Nothing(s.Out, "conflicts", len(s.notChecked) == 0); err == nil && len(s.notChecked) > 0 {
			err = errNotChecked
		}
	}
	return chosen, entries, err
}

// managersOf returns entries that are about the same fields, by the field managers that contest them: there are too many fields to name.
func managersOf(contested []desired.Contested, entries []request.Selector) (managers []request.Selector) {
	for _, c := range contested {
		for _, owner := range c.Owners {
			if owner.IsUnknown() {
				managers = append(managers, c.Selector())
			} else {
				managers = append(managers, request.Selector{Object: c.Object.String(), Manager: owner.Manager})
			}
		}
	}
	for _, s := range entries {
		if s.Manager != "" {
			managers = append(managers, s)
		}
	}
	return request.Merge(nil, managers)
}

func (s *annotator) take(ctx context.Context, argument string, fields []string) error {
	server, err := s.begin(argument)
	if err != nil {
		return err
	}
	plan, children, err := s.planFor(server)
	if err != nil {
		return err
	}
	intruders := desired.Intruders(server, children.Owned)
	chosen, entries, err := s.pick(server, plan.Contested(), intruders, fields)
	if err != nil || len(entries) == 0 {
		return err
	}
	if err := s.refuseForeign(server, v1beta1.AnnotationTake); err != nil {
		return err
	}
	if len(fields) == 0 && !request.Fits(entries) {
		entries = managersOf(chosen, entries)
	}
	waiting := pending(server)
	all := request.Merge(waiting, entries)
	c := change{server: server, annotation: v1beta1.AnnotationTake, value: request.Anew(request.Write(all), func(text string) bool { return isDone(server, text) })}
	for _, taken := range chosen {
		c.effects = append(c.effects, fmt.Sprintf("%s %s: %s of %s becomes %s of %s", taken.Object, taken.Path,
			printers.Value(taken.Theirs, false), holders(taken), printers.Value(taken.Ours, false), taken.Writer))
	}
	for _, i := range intruders {
		if slices.ContainsFunc(entries, i.ChosenBy) {
			c.effects = append(c.effects, fmt.Sprintf("%s: all that %s (%s) owns becomes the operator's, which removes what it does not set",
				i.Object, i.Owner.Manager, printers.Operation(i.Owner)))
		}
	}
	for _, s := range waiting {
		if !slices.Contains(entries, s) {
			c.effects = append(c.effects, fmt.Sprintf("%s was asked for before, and the operator has not carried that out yet: the request stands", s))
		}
	}
	c.answered = answered(v1beta1.AnnotationTake, v1beta1.ConditionFieldsTaken, c.value)
	return s.annotate(ctx, c)
}

// isDone reports whether the operator has recorded or answered a request to take.
func isDone(server *v1beta1.MCPServer, value string) bool {
	return request.ReadRecord(server.Annotations[v1beta1.AnnotationTakeRecord]).IsOf(value) || answerToTake(server, value) != nil
}

func answerToTake(server *v1beta1.MCPServer, value string) *metav1.Condition {
	return answerTo(server, v1beta1.AnnotationTake, v1beta1.ConditionFieldsTaken, value)
}

// pending returns the entries of a request to take that the operator has still to carry out. Another request in its place would drop them.
func pending(server *v1beta1.MCPServer) []request.Selector {
	value := server.Annotations[v1beta1.AnnotationTake]
	answer := answerToTake(server, value)
	if isDone(server, value) && (answer == nil || answer.Status != metav1.ConditionUnknown) {
		return nil
	}
	return request.Read(value)
}

// answerTo returns the condition in which the operator answers a request, the value of an annotation; nil for none. Its status is Unknown
// while the operator carries the request out.
func answerTo(server *v1beta1.MCPServer, annotation, conditionType, value string) *metav1.Condition {
	answer := condition(server, conditionType)
	if answer == nil || !strings.HasPrefix(answer.Message, request.AnswerTo(annotation, value)) {
		return nil
	}
	return answer
}

// answered is change.answered for a request that the operator answers in a condition.
func answered(annotation, conditionType, value string) func(server *v1beta1.MCPServer) (told string, refused, done bool) {
	return func(server *v1beta1.MCPServer) (told string, refused, done bool) {
		answer := answerTo(server, annotation, conditionType, value)
		if answer == nil || answer.Status == metav1.ConditionUnknown {
			return "", false, false
		}
		return answer.Reason + ": " + strings.TrimPrefix(answer.Message, request.AnswerTo(annotation, value)), answer.Status != metav1.ConditionTrue, true
	}
}

func condition(server *v1beta1.MCPServer, conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(server.Status.Conditions, conditionType)
}
