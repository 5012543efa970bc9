// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/request"
	"github.com/freehold-dev/freehold/pkg/shell"
	"github.com/freehold-dev/freehold/pkg/status"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

func findings(problems []render.Problem, conditionStatus metav1.ConditionStatus) []status.Finding {
	found := make([]status.Finding, 0, len(problems))
	for _, p := range problems {
		found = append(found, status.Finding{Condition: p.Condition, Status: conditionStatus, Reason: p.Reason, Message: p.Message})
	}
	return found
}

// notices returns conditions about something that works, but otherwise than the spec says.
func notices(problems []render.Problem) []status.Finding {
	return findings(problems, metav1.ConditionTrue)
}

// delayed describes a write that is held back by something that passes by itself as a rule, and says what to look at when
// it does not. The text stays the same while the obstacle is the same: the messages of API servers and networks differ
// from one attempt to the next, and each difference would be a write of the status.
func delayed(refusal *apply.Refusal) string {
	switch refusal.Class {
	case apply.ClassMoved:
		return fmt.Sprintf("%s: another client changes, creates or deletes it each time Freehold writes it. Freehold retries at least every %s. "+
			"If this persists, find that client: %s",
			refusal.Object, longestWait, show(refusal.Object, "yaml", "--show-managed-fields"))
	case apply.ClassGone:
		return fmt.Sprintf("%s: it, or its namespace, is being deleted. Freehold creates it again afterwards. If the deletion does not end, "+
			"check its finalizers: %s", refusal.Object, show(refusal.Object, "jsonpath={.metadata.finalizers}"))
	case apply.ClassStale:
		return fmt.Sprintf("%s: %s. Freehold does not overwrite it. Either another operator with a newer view is running, "+
			"or another client set the annotation %s or %s", refusal.Object, refusal.Reason, v1beta1.AnnotationSource, v1beta1.AnnotationReferences)
	default:
		return fmt.Sprintf("%s: the API server refuses the write for now (%s). Freehold retries at least every %s. "+
			"If this persists, check the API server, etcd and the admission webhooks; the operator's log has the full answer", refusal.Object, shortAnswer(refusal), longestWait)
	}
}

// show returns the command that prints an object.
func show(ref apply.ObjectRef, format string, more ...string) string {
	return shell.Command(append([]string{"kubectl", "get", "-n", ref.Namespace, ref.String(), "-o", format}, more...)...)
}

// longestWait is how messages name apply.LongestWait.
const longestWait = "ten minutes"

// shortAnswer returns the API server's answer in words that do not differ between attempts.
func shortAnswer(refusal *apply.Refusal) string {
	var answer apierrors.APIStatus
	if !errors.As(refusal, &answer) {
		return "no answer"
	}
	s := answer.Status()
	short := strings.TrimSpace(fmt.Sprintf("code %d %s", s.Code, s.Reason))
	if webhook := apply.FailedWebhook(refusal); webhook != "" {
		short += fmt.Sprintf(", failed calling webhook %q", webhook)
	}
	return short
}

// selectorBytes is how long the selectors in one command may be, in bytes: two commands are to fit into the note of an event.
const (
	selectorBytes = 256
	// yieldBytes is how much may be left to others already for a command to repeat it, in bytes.
	yieldBytes = 1024
)

// describe puts a conflict into one line: the first contested field, its owners, and the ways out. However many fields
// are contested, and whatever they are called, the commands are complete and settle all of them.
func describe(v *observed.Snapshot, c *apply.ConflictError) string {
	first, what := c.Fields[0], takeover.Sides(c)
	if len(first.Owners) > 0 && managers.IsToolHive(first.Owners[0].Manager) {
		return stopToolHive(v, what)
	}
	fields := contestedFields(c)
	ways := []string{what, "Take ownership: " + annotate(v, v1beta1.AnnotationTake, fields)}
	stays := func(f apply.FieldConflict) bool { return !request.YieldableBy(c.Object, f.Path, f.Removed) }
	if c.Object.Kind != managers.MCPServer && !slices.ContainsFunc(c.Fields, stays) {
		ways = append(ways, "Leave it: "+annotate(v, v1beta1.AnnotationYield, fields))
	}
	origin := render.Origin(v.Key.Name, c.Object.Kind, c.Object.Name, first.Path)
	switch {
	case c.Object.Kind == managers.MCPServer:
		ways = append(ways, "Or have that field manager release it")
	case first.Removed:
		ways = append(ways, "Or remove the field")
	case origin != "":
		ways = append(ways, fmt.Sprintf("Or set %s of the MCPServer to the same value", origin))
	}
	return strings.Join(ways, ". ") + "."
}

// toolHiveManagers returns the managers of ToolHive that own fields of the children.
func toolHiveManagers(v *observed.Snapshot) (names []string) {
	for ref, live := range v.Existing() {
		if !v.IsOwned(ref, live) {
			continue
		}
		for _, entry := range live.GetManagedFields() {
			if managers.IsToolHive(entry.Manager) && !slices.Contains(names, entry.Manager) {
				names = append(names, entry.Manager)
			}
		}
	}
	slices.Sort(names)
	return names
}

// contestedFields returns selectors for the fields of a conflict; none where they would be too long for a command.
func contestedFields(c *apply.ConflictError) (fields []string) {
	for _, f := range c.Fields {
		fields = append(fields, request.Selector{Object: c.Object.String(), Path: request.Settling(f.Path, f.Removed)}.String())
	}
	slices.Sort(fields)
	fields = slices.Compact(fields)
	if len(strings.Join(fields, ",")) > selectorBytes {
		return nil
	}
	return fields
}

// annotate returns the command that asks for fields to be taken or yielded. Where the annotation's value is too long for a message, the
// command is the plugin's: it finds the contested fields itself, and keeps what is left to others already.
func annotate(v *observed.Snapshot, annotation string, fields []string) string {
	before := v.Server.Annotations[annotation]
	yields := annotation == v1beta1.AnnotationYield
	if len(fields) == 0 || yields && len(before) > yieldBytes {
		verb := map[bool]string{false: "take", true: "yield"}[yields]
		return shell.Command(append([]string{"kubectl", "freehold", verb, "-n", v.Key.Namespace, "mcpserver/" + v.Key.Name}, fields...)...)
	}
	if yields {
		// What is left to others already stays so.
		for _, s := range request.Read(before) {
			if !slices.Contains(fields, s.String()) {
				fields = append(fields, s.String())
			}
		}
	}
	text := strings.Join(fields, ",")
	if !yields {
		text = request.Anew(text, request.ReadRecord(v.Server.Annotations[v1beta1.AnnotationTakeRecord]).IsOf)
	}
	return shell.Command("kubectl", "annotate", "-n", v.Key.Namespace, observed.ServerRef(v.Key).String(), "--overwrite", annotation+"="+text)
}

// maxSource is how much is quoted of a source that another field manager wrote, in characters.
const maxSource = 64

// claimEvents returns events about fields whose owner changed. A user has asked for each change, or something has gone wrong.
func claimEvents(server *v1beta1.MCPServer, r *resolution, out apply.Outcome) (events []status.Event) {
	// Of the workloads that a predecessor has left, the number of replicas is taken on after the rest.
	written, ok := apply.ParseSource(out.Replaced)
	if predecessors := ok && written.UID != server.UID && managers.CountsReplicas(out.Writer); out.Replaced != "" && !predecessors {
		note := fmt.Sprintf("%s replaced the source of %s: %.*q is not a UID and generation that this MCPServer has had",
			out.Writer, out.Object, maxSource, out.Replaced)
		events = append(events, status.Event{Type: corev1.EventTypeWarning, Reason: v1beta1.EventReasonSourceReplaced, Action: "Apply", Note: note})
	}
	if out.ReplacedReferences != "" {
		note := fmt.Sprintf("%s replaced the references of %s: %.*q is not a state that the objects that this MCPServer refers to have had",
			out.Writer, out.Object, maxSource, out.ReplacedReferences)
		events = append(events, status.Event{Type: corev1.EventTypeWarning, Reason: v1beta1.EventReasonSourceReplaced, Action: "Apply", Note: note})
	}
	for _, change := range out.Claims {
		first := change.Fields[0]
		what := first.Path
		if n := len(change.Fields) - 1; n > 0 {
			what += fmt.Sprintf(" (+%d more fields)", n)
		}
		event := status.Event{Type: corev1.EventTypeNormal, Action: "Apply"}
		switch change.Cause {
		case apply.CauseUnset:
			continue // Part of a change that was asked for, of fields that had no owner.
		case apply.CauseTaken:
			if !r.begun {
				continue // No user asked for it: a number of replicas is held at one, which StdioReplicaCapped reports, once.
			}
			event.Reason = v1beta1.EventReasonFieldsTaken
			event.Note = fmt.Sprintf("%s took %s of %s from %s", out.Writer, what, out.Object, takeover.Holder(first.From))
			if kept := takeover.Kept(out.Live, out.Writer, first.From); kept != "" {
				event.Note += ", which keeps what it alone has set there: " + kept
			}
		case apply.CauseInherited:
			if !r.takesFrom(out.Object, first.From) {
				continue // A takeover, which the condition TakenOver reports.
			}
			event.Reason = v1beta1.EventReasonFieldsTaken
			event.Note = fmt.Sprintf("%s took all of %s from field manager %s", out.Writer, out.Object, first.From)
		case apply.CauseYielded:
			if out.Writer == managers.Status {
				continue // Another manager owns it, which FieldsOwned reports.
			}
			event.Reason = v1beta1.EventReasonFieldsReleased
			event.Note = fmt.Sprintf("%s gave up %s of %s; the value stays, and any field manager may set it", out.Writer, what, out.Object)
		case apply.CauseRepaired:
			event.Type, event.Reason = corev1.EventTypeWarning, v1beta1.EventReasonManagedFieldsRepaired
			event.Note = fmt.Sprintf("%s repaired the managedFields of %s: an entry of field manager %s was unreadable, occurred twice, or had a "+
				"version that the API server no longer knows", out.Writer, out.Object, first.From)
		case apply.CauseRestored:
			event.Type, event.Reason = corev1.EventTypeWarning, v1beta1.EventReasonOwnershipLost
			event.Note = fmt.Sprintf("%s had lost %s of %s and owns it again: another client reset the managedFields, or restored the object "+
				"from a backup", out.Writer, what, out.Object)
		}
		events = append(events, event)
	}
	return events
}

// stopToolHive says how to end what ToolHive does to a child.
func stopToolHive(v *observed.Snapshot, what string) string {
	return fmt.Sprintf("%s: ToolHive reconciles this MCPServer as well. Stop ToolHive's operator, then take ownership: %s.",
		what, annotate(v, v1beta1.AnnotationTake, toolHiveManagers(v)))
}

// notOurs says why an object is not to be written; it is empty when it may be.
func notOurs(v *observed.Snapshot, ref apply.ObjectRef) string {
	live := v.Object(ref)
	if live == nil || ref.Kind == managers.MCPServer {
		return ""
	}
	switch verdict := v.CheckOwner(ref, live); {
	case !verdict.Mine:
		return verdict.Explain(ref, v.Ask.Exists(cache.NewObjectName(v.Key.Namespace, verdict.Other)), shell.Kubectl)
	case v.Children[ref].Spoilt && live.GetDeletionTimestamp() == nil:
		return notWhatItsNameTells(ref)
	}
	return ""
}

// notWhatItsNameTells says why a ConfigMap that exists is not the one that is wanted, although it has its name and is
// the MCPServer's. What a pod has read of it cannot be undone by writing to it.
func notWhatItsNameTells(ref apply.ObjectRef) string {
	return "its data does not match the digest in its name, so another client wrote it. Freehold does not use it: the proxy is replaced by one " +
		"that reads the same content under another name. If the object is not needed: " + shell.Command("kubectl", "delete", "configmap", "-n", ref.Namespace, ref.Name)
}
