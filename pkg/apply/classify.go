// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// maxReason bounds the text of the API server that is passed on, in bytes; a condition must stay readable.
const maxReason = 512

// classify turns the API server's answer to a write into one of the closed set of refusals. live is the object
// as it was seen before the write, or nil.
func classify(err error, writer fieldmanager.Writer, ref ObjectRef, live metav1.Object) error {
	refusal := &Refusal{Writer: writer.Name, Object: ref, Reason: oneLine(err.Error()), Cause: err}
	status, answered := statusOf(err)
	contested := ContestedFields(err, writer.Name, writer.Subresource, live)
	switch {
	case errors.Is(err, ErrNotOurs):
		refusal.Class = ClassMoved
	case !answered:
		refusal.Class = ClassTransient
	case ByAdmission(err):
		refusal.Class = ClassForbidden
	case len(contested) > 0 && live == nil:
		// There is an object that was not seen yet: its owner, and the owners of its fields, are to be judged once it is.
		// Otherwise the refusal of a creation would still stand after that object has gone again.
		refusal.Class = ClassMoved
	case len(contested) > 0:
		refusal.Class = ClassConflict
		return &ConflictError{Refusal: *refusal, Fields: contested}
	case slices.ContainsFunc(unstorables, func(text string) bool { return strings.HasPrefix(status.Message, text) }):
		refusal.Class = ClassTerminal
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), apierrors.IsGone(err):
		refusal.Class = ClassGone
	case apierrors.IsUnexpectedServerError(err):
		// The answer is not a Status: it comes from a load balancer, or from an API server that does not serve the resource yet.
		refusal.Class = ClassTransient
	case apierrors.IsNotFound(err):
		refusal.Class = notFound(ref, status, live)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		refusal.Class = ClassMoved
	case apierrors.IsInvalid(err) && status.Details != nil && slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Field == "metadata.uid" || c.Field == "metadata.resourceVersion"
	}):
		refusal.Class = ClassMoved
	case apierrors.IsInvalid(err):
		refusal.Class = ClassInvalid
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		refusal.Class = ClassForbidden
	default:
		// Overload, time-outs, errors of etcd, and any error that is not known here. A body that can never be stored is then sent again
		// after each wait, which does less harm than to give up a write because of a momentary failure.
		refusal.Class = ClassTransient
	}
	return refusal
}

// statusOf returns the API server's answer in an error, if there is one.
func statusOf(err error) (status metav1.Status, answered bool) {
	var answer apierrors.APIStatus
	if answered = errors.As(err, &answer); answered {
		status = answer.Status()
	}
	return status, answered
}

// classifyEdit is classify for an edit of managedFields, of whose operations the test of the UID is the only one that can fail. The answer
// is then a 422 that names neither an object nor a cause. A refusal by the validation, a policy or a webhook names the object or a cause,
// or has no details.
func classifyEdit(err error, writer fieldmanager.Writer, ref ObjectRef, live metav1.Object) error {
	classified := classify(err, writer, ref, live)
	status, _ := statusOf(err)
	details := status.Details
	failsTest := details != nil && details.Name == "" && details.Kind == "" && len(details.Causes) == 0
	if refusal, ok := errors.AsType[*Refusal](classified); ok && refusal.Class == ClassInvalid && failsTest {
		refusal.Class, refusal.Reason = ClassMoved, "it was deleted and created again since Freehold read it"
	}
	return classified
}

// IsAbsent reports whether an answer says that an object does not exist. A 404 alone does not: an API server that is starting, one that
// does not serve the resource yet, and a proxy in front of it answer "404 page not found" to any request. An answer about an object is a
// Status that names it.
func IsAbsent(err error) bool {
	status, _ := statusOf(err)
	return apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err) && status.Details != nil && status.Details.Name != ""
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

// ByAdmission reports whether an admission policy or webhook refused a request. The code does not matter, since a webhook chooses any:
// its 409 is no conflict, its 404 and 410 mean nothing about the object. Either can be removed without any change of the object.
//
// The cause of a ValidatingAdmissionPolicy names neither a type nor a field, unlike a violation of the schema. So does that of an internal
// error, with another code.
func ByAdmission(err error) bool {
	status, _ := statusOf(err)
	switch status.Code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		if status.Details != nil && slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool { return c.Type == "" && c.Field == "" }) {
			return true
		}
	}
	return strings.HasPrefix(status.Message, webhookDenies)
}

// ContestedFields returns the fields that the answer to an apply of a manager names as contested, and who owns them of the object, in the
// order of their paths; nil for any other answer.
func ContestedFields(answer error, manager, subresource string, live metav1.Object) []FieldConflict {
	status, _ := statusOf(answer)
	if status.Details == nil {
		return nil
	}
	// Only the paths are read from the causes: their texts name one manager each and no time, managedFields name all.
	var paths []string
	for _, c := range status.Details.Causes {
		if c.Type == metav1.CauseTypeFieldManagerConflict {
			paths = append(paths, c.Field)
		}
	}
	return ownersOf(paths, manager, subresource, live)
}

// ownersOf returns fields and their owners other than a manager, sorted by path and each once. An update under the manager's own
// name counts as another owner's.
func ownersOf(paths []string, manager, subresource string, live metav1.Object) (fields []FieldConflict) {
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	var owners map[string][]ownership.Owner
	if live != nil && len(paths) > 0 {
		owners = ownership.OwnersOf(live, paths)
	}
	for _, path := range paths {
		others := slices.DeleteFunc(owners[path], func(o ownership.Owner) bool { return o.Applies(manager, subresource) })
		fields = append(fields, FieldConflict{Path: path, Owners: others})
	}
	return fields
}

// ownersOfSet is ownersOf for the members of a set and the writer.
func (w *writer[L, A]) ownersOfSet(set *fieldpath.Set, live metav1.Object) []FieldConflict {
	var paths []string
	set.Iterate(func(path fieldpath.Path) { paths = append(paths, path.String()) })
	return ownersOf(paths, w.manager.Name, w.manager.Subresource, live)
}

// alteration compares the API server's answer to an apply with what was sent; nil where it has stored that.
func (w *writer[L, A]) alteration(a *attempt[L, A]) error {
	if owned, err := w.target.Extract(a.live, w.manager.Name); err == nil {
		w.dropStamps(owned)
		number := &w.target.Recorded
		recorded := number.Annotation == "" || a.live.GetAnnotations()[number.Annotation] == number.in(a.want)
		if rendered, err := marshal(owned); err == nil && digestOf(rendered) == a.digest && recorded && w.isRightlyStamped(a) {
			return nil
		}
	}
	sent, err := withoutPreconditions(a.want)
	if err != nil {
		return w.terminal(a, err)
	}
	stored, err := decoded(a.live)
	if err != nil {
		return w.terminal(a, err)
	}
	altered, err := AlteredFields(w.target.Schema, sent, stored)
	if err != nil {
		return w.terminal(a, err)
	}
	if len(altered) == 0 {
		return nil // The object is as it was sent, and what the writer owns of it cannot be told.
	}
	reason := oneLine(altered[0].String())
	if more := len(altered) - 1; more > 0 {
		reason += fmt.Sprintf(" (+%d more fields)", more)
	}
	return &AlteredError{Refusal{Class: ClassAltered, Writer: w.manager.Name, Object: a.Object, Reason: reason}, altered}
}

// AlteredFields returns those fields of a configuration that was sent that the stored object has with other values, in the order of their
// paths. It fails if the configuration does not fit the schema.
func AlteredFields(schema managedfields.TypeConverter, sent, stored *unstructured.Unstructured) (altered []AlteredField, err error) {
	typed, err := schema.ObjectToTyped(sent)
	if err != nil {
		return nil, err
	}
	fields, err := typed.ToFieldSet()
	if err != nil {
		return nil, err
	}
	fields.Difference(ownership.Unowned()).Leaves().Iterate(func(path fieldpath.Path) {
		field := AlteredField{path.String(), ownership.ValueAt(sent.Object, path), ownership.ValueAt(stored.Object, path)}
		if !reflect.DeepEqual(field.Sent, field.Stored) {
			altered = append(altered, field.within())
		}
	})
	return altered, nil
}

// String says what was sent and what is stored, in one line. Of the data of a ConfigMap it shows nothing: a policy may be in it that not all
// who read conditions may read.
func (f AlteredField) String() string {
	if strings.HasPrefix(f.Path, ".data.") {
		return f.Path + " is not stored as it was sent"
	}
	return fmt.Sprintf("%s was sent as %s and is stored as %s", f.Path, quoted(f.Sent), quoted(f.Stored))
}

// within returns the first of the fields within this one that differs, where it is a map or a list that is owned as a whole and both values
// have that field.
func (f AlteredField) within() AlteredField {
	switch sent := f.Sent.(type) {
	case map[string]any:
		stored, _ := f.Stored.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(sent)) {
			if other, ok := stored[key]; ok && !reflect.DeepEqual(sent[key], other) {
				return AlteredField{f.Path + "." + key, sent[key], other}.within()
			}
		}
	case []any:
		stored, _ := f.Stored.([]any)
		for i := range min(len(sent), len(stored)) {
			if !reflect.DeepEqual(sent[i], stored[i]) {
				return AlteredField{fmt.Sprintf("%s[%d]", f.Path, i), sent[i], stored[i]}.within()
			}
		}
	}
	return f
}

// maxQuoted bounds a value of a field in a message, in bytes.
const maxQuoted = 64

// quoted returns the value of a field as a message has it.
func quoted(value any) string {
	if value == nil {
		return "nothing"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "a value that cannot be read"
	}
	return cut(string(text), maxQuoted)
}

// oneLine makes a text of the API server, which may span lines, fit for a condition.
func oneLine(text string) string {
	return cut(strings.Join(strings.Fields(text), " "), maxReason)
}

// cut bounds a text to a number of bytes, and shows that it has.
func cut(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// Some answers of the API server differ in their text alone. This is the one place that knows such texts; a suite on a
// real API server fails when they change.

// unstorables are how answers begin that mean that a body can never be stored, by anybody and at any time.
var unstorables = []string{
	// The body does not fit the schema: a list with one key twice, a field that the schema does not have, a value of another
	// type. The code is 500 and the reason empty, as it is when etcd does not answer.
	"failed to create typed patch object (",
	// The body is larger than any that the API server reads.
	"Request entity too large: limit is ",
}

const (
	// webhookDenies is how the answer begins when an admission webhook denies a request. The name of the webhook follows.
	webhookDenies = `admission webhook "`
	// webhookFails is what the answer has before the name of an admission webhook that could not be called.
	webhookFails = `failed calling webhook "`
)

// FailedWebhook returns the name of the admission webhook that the API server could not call; "" when that is not what a write was
// refused for.
func FailedWebhook(refusal error) string {
	status, _ := statusOf(refusal)
	_, after, _ := strings.Cut(status.Message, webhookFails)
	name, _, _ := strings.Cut(after, `"`)
	return name
}

// convertsToGone is how the answer to an apply begins if managedFields of the object have an entry of a version that its
// CustomResourceDefinition no longer has. The version follows; if there are several, it is any one of them. The code is 500 and the
// reason empty. An entry of a version that is in the definition and not served is no problem.
const convertsToGone = "request to convert CR to an invalid group/version: "

// GoneVersion returns a version in managedFields that the CustomResourceDefinition of the object no longer has, if that is why a write was
// refused; "" for any other reason.
func GoneVersion(refusal error) string {
	status, _ := statusOf(refusal)
	if version, ok := strings.CutPrefix(status.Message, convertsToGone); ok {
		return version
	}
	return ""
}

// manyBudgets is how the API server refuses to evict a pod that several PodDisruptionBudgets select. The code is 500 and
// the reason empty.
const manyBudgets = "This pod has more than one PodDisruptionBudget"

// BudgetInTheWay reports whether PodDisruptionBudgets keep a pod from being evicted, and returns the detail: the budget
// allows no disruption now, or more than one budget selects the pod.
func BudgetInTheWay(refusal error) (detail string, inTheWay bool) {
	if cause, ok := apierrors.StatusCause(refusal, policyv1.DisruptionBudgetCause); ok {
		return cause.Message, true
	}
	if status, _ := statusOf(refusal); strings.HasPrefix(status.Message, manyBudgets) {
		return "more than one PodDisruptionBudget selects the pod, and the API server evicts no such pod; keep one of them", true
	}
	return "", false
}
