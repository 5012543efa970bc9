// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// maxReason bounds the text of the API server that is passed on, in bytes; a condition must stay readable.
const maxReason = 512

// classify turns the API server's answer to a write into one of the closed set of refusals. live is the object
// as it was seen before the write, or nil.
func classify(err error, writer fieldmanager.Writer, ref ObjectRef, live metav1.Object) error {
	refusal := Refusal{Writer: writer.Name, Object: ref, Reason: oneLine(err.Error()), Cause: err}
	if errors.Is(err, ErrNotOurs) {
		refusal.Class = ClassMoved
		return &refusal
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		refusal.Class = ClassTransient
		return &refusal
	}
	if ByAdmission(err) {
		refusal.Class = ClassForbidden
		return &refusal
	}
	if causes := conflictCauses(status.Status()); len(causes) > 0 {
		if live == nil {
			// There is an object that was not seen yet: its owner, and the owners of its fields, are to be judged once it is.
			// Otherwise the refusal of a creation would still stand after that object has gone again.
			refusal.Class = ClassMoved
			return &refusal
		}
		refusal.Class = ClassConflict
		return &ConflictError{Refusal: refusal, Fields: contested(causes, writer, live)}
	}
	refusal.Class = class(err, ref, status.Status(), live)
	return &refusal
}

// classifyEdit is classify for an edit of managedFields.
func classifyEdit(err error, writer fieldmanager.Writer, ref ObjectRef, live metav1.Object) error {
	classified := classify(err, writer, ref, live)
	if refusal, ok := errors.AsType[*Refusal](classified); ok && refusal.Class == ClassInvalid && failsTest(err) {
		refusal.Class, refusal.Reason = ClassMoved, "it was deleted and created again since Freehold read it"
	}
	return classified
}

// failsTest reports whether an answer is the one to a JSON patch whose test fails: a 422 that names neither an object nor a cause. Of
// the operations of an edit, the test of the UID is the only one that can fail so. A refusal by the validation, a policy or a webhook
// names the object or a cause, or has no details.
func failsTest(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name == "" && details.Kind == "" && len(details.Causes) == 0
}

func class(err error, ref ObjectRef, status metav1.Status, live metav1.Object) Class {
	switch {
	case unstorable(status):
		return ClassTerminal
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), apierrors.IsGone(err):
		return ClassGone
	case apierrors.IsUnexpectedServerError(err):
		// The answer is not a Status: it comes from a load balancer, or from an API server that does not serve the resource yet.
		return ClassTransient
	case apierrors.IsNotFound(err):
		return notFound(ref, status, live)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return ClassMoved
	case apierrors.IsInvalid(err):
		if hasCause(status, "metadata.uid") || hasCause(status, "metadata.resourceVersion") {
			return ClassMoved
		}
		return ClassInvalid
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return ClassForbidden
	default:
		// Overload, time-outs, errors of etcd, and any error that is not known here. To take a momentary failure for a
		// verdict would do more harm than to send a bad body again after waits.
		return ClassTransient
	}
}

// IsAbsent reports whether an answer says that an object does not exist. A 404 alone does not: an API server that is starting, one that
// does not serve the resource yet, and a proxy in front of it answer "404 page not found" to any request. An answer about an object is a
// Status that names it.
func IsAbsent(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || apierrors.IsUnexpectedServerError(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name != ""
}

// notFound returns what a 404 is about. It may be the object, or the namespace that it is in. It may also be an object
// that this one refers to, such as the Role of a RoleBinding, and that can appear without any change of this one.
func notFound(ref ObjectRef, status metav1.Status, live metav1.Object) Class {
	if status.Details == nil {
		return ClassTransient
	}
	resource, _ := meta.UnsafeGuessKindToResource(ref.Kind.WithVersion(""))
	switch status.Details.Kind {
	case resource.Resource:
		if live == nil {
			// The object to create did exist, and went away while the API server was about to refuse the write. No event will
			// report that.
			return ClassMoved
		}
		return ClassGone
	case "namespaces":
		return ClassGone
	default:
		return ClassTransient
	}
}

func hasCause(status metav1.Status, field string) bool {
	if status.Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == field })
}

// ByAdmission reports whether an admission policy or webhook refused a request. The code does not matter, since a webhook chooses any:
// its 409 is no conflict, its 404 and 410 mean nothing about the object. Either can be removed without any change of the object.
//
// The cause of a ValidatingAdmissionPolicy names neither a type nor a field, unlike a violation of the schema. So does that of an internal
// error, with another code.
func ByAdmission(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	status := answer.Status()
	switch status.Code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		if status.Details != nil && slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool { return c.Type == "" && c.Field == "" }) {
			return true
		}
	}
	return strings.HasPrefix(status.Message, webhookDenies)
}

func conflictCauses(status metav1.Status) []metav1.StatusCause {
	if status.Details == nil {
		return nil
	}
	var causes []metav1.StatusCause
	for _, c := range status.Details.Causes {
		if c.Type == metav1.CauseTypeFieldManagerConflict {
			causes = append(causes, c)
		}
	}
	return causes
}

// contested returns the owners of each path of the causes, in the order of the paths. The causes serve for the paths alone:
// their texts name one manager each and no time, managedFields name all.
func contested(causes []metav1.StatusCause, writer fieldmanager.Writer, live metav1.Object) []FieldConflict {
	paths := make([]string, 0, len(causes))
	for _, c := range causes {
		paths = append(paths, c.Field)
	}
	return contestedFields(paths, writer, live)
}

// contestedFields returns fields and their owners other than the writer, sorted by path and each once. An update under the writer's own
// name counts as another owner's.
func contestedFields(paths []string, writer fieldmanager.Writer, live metav1.Object) []FieldConflict {
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	var owners map[string][]ownership.Owner
	if live != nil {
		owners = ownership.OwnersOf(live, paths)
	}
	var fields []FieldConflict
	for _, path := range paths {
		others := slices.DeleteFunc(owners[path], func(o ownership.Owner) bool { return o.Applies(writer.Name, writer.Subresource) })
		fields = append(fields, FieldConflict{Path: path, Owners: others})
	}
	return fields
}

// pathsOf returns the members of a set as texts.
func pathsOf(set *fieldpath.Set) (paths []string) {
	set.Iterate(func(path fieldpath.Path) { paths = append(paths, path.String()) })
	return paths
}

// oneLine makes a text of the API server, which may span lines, fit for a condition.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "..."
	}
	return text
}
