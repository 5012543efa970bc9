// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// OperatorUser is the user in whose name operators send their requests.
const OperatorUser = "system:serviceaccount:" + operator.Namespace + ":" + operator.ServiceAccount

// Invariants judge what operators asked an API server for, over a whole run of suites:
//
//   - A write is an apply without force, under a manager that is registered for that kind and subresource, and is a
//     compare-and-swap or a creation and nothing else; or it is an edit of managedFields, guarded alike; or a delete
//     with the UID and the resourceVersion of what is deleted; or it concerns an event or a lease.
//   - A read is an informer that starts, or a stream of one that goes on. Nothing else is read.
//   - Nothing is forbidden.
type Invariants struct {
	// Registry knows the field managers.
	Registry *fieldmanager.Registry
	// Runs are the operators that ran.
	Runs []Run
	// Exceptions are times at which something else was to be expected.
	Exceptions []Exception
}

// Violation is a request that should not have been.
type Violation struct {
	// Event is the request.
	Event *audit.Event
	// Why it should not have been.
	Why string
}

// String is the violation in a line or two.
func (v Violation) String() string {
	text := fmt.Sprintf("%s\n    %s", v.Why, v.Event)
	if len(v.Event.Body) > 0 {
		text += fmt.Sprintf("\n    %.300s", v.Event.Body)
	}
	return text
}

// Filter wants the events that Check needs.
func (Invariants) Filter() audit.Filter {
	return audit.Any(audit.User(OperatorUser), deletesNamespace, writesServer, deletesConfig)
}

func deletesNamespace(e *audit.Event) bool {
	return e.Verb == "delete" && e.Group == "" && e.Resource == "namespaces"
}

// writesServer tells of a write of an MCPServer, or of what one may refer to, of ToolHive's kinds.
func writesServer(e *audit.Event) bool { return e.IsWrite() && e.Group == managers.MCPServer.Group }

func deletesConfig(e *audit.Event) bool {
	_, config := configOf(e)
	return config && e.Verb == "delete"
}

// configOf returns the kind of the config that a request is about; ok is false for anything else.
func configOf(e *audit.Event) (kind schema.GroupKind, ok bool) {
	for _, config := range managers.Configs() {
		if config.Group == e.Group && config.Resource == e.Resource {
			return config.GroupKind(), true
		}
	}
	return kind, false
}

// countOfOperators returns how many of the events that Filter wants are requests of operators. The others show Check what operators
// react to.
func countOfOperators(events []*audit.Event) (count int) {
	for _, e := range events {
		if e.User == OperatorUser {
			count++
		}
	}
	return count
}

// Check returns the violations, in the order in which they were received. The events are those that Filter wants.
func (i Invariants) Check(events []*audit.Event) []Violation {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b *audit.Event) int { return a.Received.Compare(b.Received) })
	reads := newReads(i.Runs)
	ending := map[string]bool{}
	var violations []Violation
	for _, e := range events {
		if e.User != OperatorUser {
			if deletesNamespace(e) {
				ending[e.Name] = true
			}
			if writesServer(e) {
				reads.edited(e.Namespace)
			}
			if deletesConfig(e) {
				reads.deleted(e.Namespace)
			}
			continue
		}
		if e.IsWrite() {
			reads.wrote(e)
		}
		why := i.judge(e, reads, ending)
		if why != "" {
			violations = append(violations, Violation{e, why})
		}
	}
	return append(violations, reads.idle()...)
}

// judge tells why a request of the operator should not have been; it returns "" when it is all right.
func (i Invariants) judge(e *audit.Event, reads *reads, ending map[string]bool) string {
	if e.Verb == "watch" && e.Resource == "customresourcedefinitions" && strings.HasSuffix(e.UserAgent, operator.EarlierVersion) {
		return "" // Operators of earlier versions watch the definitions of kinds that are not served, where they may.
	}
	if e.Code == http.StatusForbidden && !i.excepted(Forbidden, e) && (!e.IsApply() || !ending[e.Namespace]) {
		return "it is forbidden; a test that wants this says so with Env.Expect(Forbidden)"
	}
	switch {
	case unread(e):
		return ""
	case e.DryRun:
		return "a dry run"
	case e.Verb == "create" && isReview(e): // a question about who may read the metrics; nothing is stored
		return ""
	case e.IsWrite():
		return i.judgeWrite(e)
	case e.Resource == "":
		if e.Verb != "get" {
			return "neither a read of what the API server offers nor a request for a resource"
		}
		return ""
	case e.Verb == "get" && isReference(e) && i.excepted(Confirmations, e):
		return ""
	case e.Verb == "list" && e.Group == managers.MCPServer.Group && e.Resource == "mcpservers" && i.excepted(Moves, e) && namesOne(e):
		return ""
	}
	why := reads.judge(e)
	if why != "" && i.excepted(BrokenConnections, e) {
		return ""
	}
	return why
}

// unread tells whether a write was refused before anybody read what it was: by authorization, by priority and fairness,
// because the API server was on its way down, or because its sender was killed before the whole body had arrived.
func unread(e *audit.Event) bool {
	switch e.Code {
	case http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInternalServerError:
		return e.IsWrite() && len(e.Body) == 0
	}
	return false
}

func (i Invariants) judgeWrite(e *audit.Event) string {
	if why := i.JudgeWithoutBody(e); why != "" || e.Verb != "patch" || e.Group == "events.k8s.io" {
		return why
	}
	if e.IsApply() {
		return judgeApplied(e)
	}
	return judgeOwnershipEdit(e)
}

// JudgeWithoutBody returns why a write of the operator should not have been, as far as its request without the body shows; "" when it
// is all right. It needs the bodies of deletions, which every audit log has.
func (i Invariants) JudgeWithoutBody(e *audit.Event) string {
	switch {
	case e.Group == "events.k8s.io" && e.Resource == "events" && (e.Verb == "create" || e.Verb == "patch"):
		return ""
	case e.Group == "" && e.Resource == "pods" && e.Verb == "delete": // an immediate restart
		return judgeDelete(e)
	case e.Group == "" && e.Resource == "pods" && e.Verb == "create" && e.Subresource == "eviction":
		return judgeDelete(e)
	case e.Group == "coordination.k8s.io" && e.Resource == "leases" && (e.Verb == "create" || e.Verb == "update"):
		return ""
	}
	kind, ok := kindOf(e)
	config, isConfig := configOf(e)
	if isConfig {
		kind = config
	}
	switch {
	case !ok && !isConfig:
		return "a write of a kind that Freehold does not own"
	case isConfig && e.Verb == "delete":
		return "a delete of what users own"
	case e.Verb == "delete":
		return judgeDelete(e)
	case e.Verb != "patch":
		return "neither an apply nor a guarded delete"
	case e.IsForced():
		return "a forced apply"
	case e.IsApply():
		return i.judgeApply(e, kind)
	case e.FieldManager != managers.Ownership:
		return "a patch that is neither an apply nor an edit of managedFields by " + managers.Ownership
	}
	return ""
}

func isReview(e *audit.Event) bool {
	return e.Group == "authentication.k8s.io" && e.Resource == "tokenreviews" ||
		e.Group == "authorization.k8s.io" && e.Resource == "subjectaccessreviews"
}

func judgeDelete(e *audit.Event) string {
	uid, version, err := e.Preconditions()
	switch {
	case err != nil:
		return err.Error()
	case e.Subresource != "" && e.Subresource != "eviction" || uid == "" || version == "":
		return "a delete without the UID or the resourceVersion of what is to be deleted"
	}
	return ""
}

func (i Invariants) judgeApply(e *audit.Event, kind schema.GroupKind) string {
	if e.FieldManager == managers.Ownership {
		return "an apply under the name that owns no fields"
	}
	if _, ok := i.Registry.Writer(e.FieldManager, kind, e.Subresource); !ok && !i.excepted(OtherNames, e) {
		return fmt.Sprintf("%q is not registered for %s", e.FieldManager, path.Join(e.Resource, e.Subresource))
	}
	if !strings.HasSuffix(e.UserAgent, " "+e.FieldManager) {
		return "the User-Agent does not name the field manager"
	}
	return ""
}

// judgeApplied judges the body of an apply.
func judgeApplied(e *audit.Event) string {
	var body struct {
		Metadata struct{ UID, ResourceVersion string }
	}
	if err := json.Unmarshal(e.Body, &body); err != nil {
		return "an apply whose body cannot be read: " + err.Error()
	}
	uid, version := body.Metadata.UID, body.Metadata.ResourceVersion
	creates := uid == "" && version == "1"
	swaps := uid != "" && version != "" && version != "0" && version != "1"
	if !creates && !swaps {
		return fmt.Sprintf("an apply that is neither create-only nor a compare-and-swap: UID %q, resourceVersion %q", uid, version)
	}
	return ""
}

// judgeOwnershipEdit judges the body of a patch that is no apply: a JSON patch of managedFields that says which resourceVersion
// it was made for. A resourceVersion is never given to a second object, so it stands for the UID as well.
func judgeOwnershipEdit(e *audit.Event) string {
	var operations []struct {
		Op, Path string
		Value    any
	}
	if err := json.Unmarshal(e.Body, &operations); err != nil {
		return "an edit of managedFields that is no JSON patch: " + err.Error()
	}
	guarded := false
	for _, o := range operations {
		version, _ := o.Value.(string)
		switch {
		case o.Path == "/metadata/managedFields", strings.HasPrefix(o.Path, "/metadata/managedFields/"):
		case o.Path == "/metadata/uid" && o.Op == "test":
		case o.Path == "/metadata/resourceVersion" && (o.Op == "test" || o.Op == "replace") && version != "":
			guarded = true
		default:
			return fmt.Sprintf("an edit of managedFields that also does %s of %s", o.Op, o.Path)
		}
	}
	if !guarded {
		return "an edit of managedFields without a resourceVersion"
	}
	return ""
}

// isReference reports whether a request is about something that MCPServers may refer to.
func isReference(e *audit.Event) bool {
	_, config := configOf(e)
	return config || e.Group == "" && e.Resource == "configmaps"
}

func (i Invariants) excepted(what Expected, e *audit.Event) bool {
	return slices.ContainsFunc(i.Exceptions, func(x Exception) bool { return x.What == what && x.covers(e) })
}

// namesOne reports whether a list or a watch is of one object, by its name.
func namesOne(e *audit.Event) bool {
	uri, err := url.ParseRequestURI(e.URI)
	return err == nil && selectsName(uri.Query())
}

// selectsName reports whether the query of a list or a watch selects one object by its name.
func selectsName(query url.Values) bool {
	return strings.HasPrefix(query.Get("fieldSelector"), "metadata.name=")
}
