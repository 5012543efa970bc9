// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/test/harness"
)

// stranger is the field manager that writes zero values.
const stranger = "stranger"

// TestZeroValues has another client write the zero value and null to everything that Freehold's writers own, in each way that there is.
// Whatever it changes names the client in managedFields, so that the next apply of Freehold is a conflict. A field that it removes may be
// without an owner: Freehold restores it. A value that is changed and has no owner comes from 0 through the subresource scale alone, see
// TestWritesThroughScale. The other writes are dry runs, so the operator sees none of them.
func TestZeroValues(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	template, err := yaml.YAMLToJSONStrict(podTemplateEverything)
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, env)
	process := s.Operate(t)
	const name = "full"
	server := s.Create(t, harness.Server(name, v1beta1.TransportSSE, overrideAll, harness.InlineAuthorization, harness.Replicas(1, 1),
		func(server *v1beta1.MCPServer) {
			server.Annotations[v1beta1.AnnotationTake] = harness.Hand
			server.Spec.Args = []string{"--port=9000"}
			server.Spec.Resources.Limits = v1beta1.ResourceList{Memory: "64Mi"}
			server.Spec.ResourceOverrides.ProxyDeployment.ImagePullSecrets = []v1beta1.LocalObjectReference{{Name: "registry"}}
		}))
	s.AwaitSettled(t, name)
	// The pods of this template never become ready, and without a ready one no proxy is made.
	s.Edit(t, name, harness.PodTemplate(string(template)))
	// The API server refuses the pods, which the status tells some seconds later.
	refused := harness.Expectation{Condition: v1beta1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonFailedCreate}
	s.AwaitStatus(t, name, append(slices.Clone(harness.Fine[2:]), refused)...)
	s.AwaitRest(t)
	objects := s.MustObjectsOf(t, name)
	for _, component := range harness.ComponentsOf(server) {
		if objects[component] == nil {
			t.Fatalf("there is no %s", component)
		}
	}

	config := rest.CopyConfig(env.Config)
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	tally := zeroTally{}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(atOnce)
	for component, object := range objects {
		to, claimed := client.Resource(harness.FormOf(component).Resource).Namespace(s.Name), claimsIn(t, object)
		for _, field := range claimed {
			for _, zero := range zerosOf(field.value) {
				for how, way := range waysToWrite {
					send := way(object, field, zero)
					if send == nil {
						continue
					}
					group.Go(func() error {
						after, err := send(t.Context(), to)
						mu.Lock()
						defer mu.Unlock()
						if err != nil {
							tally.add(how, "refused")
							return wrongAnswer(err, "%s of %#v to %s of %s", how, zero, field.path, component)
						}
						outcome, unowned := judgeZero(claimed, after)
						tally.add(how, outcome)
						for _, wrong := range unowned {
							t.Errorf("%s of %#v to %s of %s: %s", how, zero, field.path, component, wrong)
						}
						return nil
					})
				}
			}
		}
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Log(tally)
	for how := range waysToWrite {
		if tally[how]["named"] == 0 || tally[how]["refused"] == 0 {
			t.Errorf("%s: %v, want some writes that change a value, and some that are refused", how, tally[how])
		}
	}

	harness.Stop(t, process)
	for _, component := range []harness.Component{harness.Proxy, harness.Backend} {
		patch := []byte(`{"spec":{"replicas":0}}`)
		options := metav1.PatchOptions{FieldManager: stranger}
		if _, err := s.Objects(component).Patch(t.Context(), name, types.MergePatchType, patch, options, "scale"); err != nil {
			t.Fatal(err)
		}
		_, unowned := judgeZero(claimsIn(t, objects[component]), s.MustObject(t, component, name))
		if diff := cmp.Diff([]string{".spec.replicas has become 0, and its owners are []"}, unowned); diff != "" {
			t.Errorf("0 through the subresource scale (-want +got):\n%s", diff)
		}
	}
}

// atOnce is how many writes are sent at a time.
const atOnce = 4

// zeroTally counts the outcomes of writes by the way in which they were made.
type zeroTally map[string]map[string]int

func (c zeroTally) add(way, outcome string) {
	if c[way] == nil {
		c[way] = map[string]int{}
	}
	c[way][outcome]++
}

func (c zeroTally) String() string {
	var lines []string
	total := 0
	for _, way := range slices.Sorted(maps.Keys(c)) {
		lines = append(lines, fmt.Sprintf("%s: %v", way, c[way]))
		for _, n := range c[way] {
			total += n
		}
	}
	return fmt.Sprintf("%d writes\n%s", total, strings.Join(lines, "\n"))
}

// claimedField is a field that one of Freehold's writers owns, an entry of a list or a map included.
type claimedField struct {
	path fieldpath.Path
	// pointer has the keys and indices that lead to it.
	pointer []any
	value   any
	// subresource through which its writer writes; empty for none.
	subresource string
	leaf        bool
}

func claimsIn(t *testing.T, object *unstructured.Unstructured) (claimed []claimedField) {
	t.Helper()
	for _, entry := range object.GetManagedFields() {
		if !strings.HasPrefix(entry.Manager, "freehold-") {
			continue
		}
		fields, err := ownership.Fields(&entry)
		if err != nil {
			t.Fatal(err)
		}
		leaves := fields.Leaves()
		fields.Iterate(func(path fieldpath.Path) {
			if pointer, value, ok := locate(object.Object, path); ok {
				claimed = append(claimed, claimedField{path.Copy(), pointer, value, entry.Subresource, leaves.Has(path)})
			}
		})
	}
	if len(claimed) == 0 {
		t.Fatalf("Freehold owns nothing of %s %s", object.GetKind(), object.GetName())
	}
	return claimed
}

// locate returns the keys and indices that lead to a path in a value, and what is there.
func locate(within any, path fieldpath.Path) (pointer []any, value any, ok bool) {
	for _, element := range path {
		if element.FieldName != nil {
			fields, _ := within.(map[string]any)
			if within, ok = fields[*element.FieldName]; !ok {
				return nil, nil, false
			}
			pointer = append(pointer, *element.FieldName)
			continue
		}
		list, _ := within.([]any)
		i := slices.IndexFunc(list, func(item any) bool { return isItem(item, element) })
		if i < 0 {
			return nil, nil, false
		}
		pointer, within = append(pointer, i), list[i]
	}
	return pointer, within, true
}

// isItem reports whether a path element selects the item of a list.
func isItem(item any, element fieldpath.PathElement) bool {
	if element.Value != nil {
		return reflect.DeepEqual((*element.Value).Unstructured(), item)
	}
	if element.Key == nil {
		return false
	}
	fields, _ := item.(map[string]any)
	for _, key := range *element.Key {
		if !reflect.DeepEqual(key.Value.Unstructured(), fields[key.Name]) {
			return false
		}
	}
	return true
}

// zerosOf returns what another client may write in place of a value: the zero value of its type, unless that is the value, and null.
func zerosOf(value any) []any {
	var zero any
	switch value.(type) {
	case string:
		zero = ""
	case bool:
		zero = false
	case int64, float64:
		zero = int64(0)
	case map[string]any:
		zero = map[string]any{}
	case []any:
		zero = []any{}
	}
	if reflect.DeepEqual(value, zero) {
		return []any{nil}
	}
	return []any{zero, nil}
}

// zeroRequest is a dry run of a write to an object.
type zeroRequest func(ctx context.Context, objects dynamic.ResourceInterface) (after *unstructured.Unstructured, err error)

// waysToWrite are the ways in which a client writes a value to a field; nil if it cannot be written like that.
var waysToWrite = map[string]func(object *unstructured.Unstructured, field claimedField, zero any) zeroRequest{
	"update": func(object *unstructured.Unstructured, field claimedField, zero any) zeroRequest {
		changed := &unstructured.Unstructured{Object: withValue(object.Object, field.pointer, zero).(map[string]any)}
		return func(ctx context.Context, objects dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
			return objects.Update(ctx, changed, metav1.UpdateOptions{DryRun: dryRun, FieldManager: stranger}, subresources(field.subresource)...)
		}
	},
	"JSON patch": func(object *unstructured.Unstructured, field claimedField, zero any) zeroRequest {
		return patching(object, types.JSONPatchType, jsonPatch(field, zero), field.subresource)
	},
	"JSON patch of the status": func(object *unstructured.Unstructured, field claimedField, zero any) zeroRequest {
		if _, hasStatus := object.Object["status"]; !hasStatus || field.subresource != "" {
			return nil
		}
		return patching(object, types.JSONPatchType, jsonPatch(field, zero), "status")
	},
	"merge patch": func(object *unstructured.Unstructured, field claimedField, zero any) zeroRequest {
		// The patch replaces lists as a whole.
		pointer, value := field.pointer, zero
		if i := slices.IndexFunc(pointer, func(step any) bool { _, isIndex := step.(int); return isIndex }); i >= 0 {
			value = withValue(object.Object, pointer, zero)
			for pointer = pointer[:i]; i > 0; i-- {
				value = value.(map[string]any)[pointer[len(pointer)-i].(string)]
			}
		}
		for _, key := range slices.Backward(pointer) {
			value = map[string]any{key.(string): value}
		}
		return patching(object, types.MergePatchType, value, field.subresource)
	},
	"strategic merge patch": func(object *unstructured.Unstructured, field claimedField, zero any) zeroRequest {
		if object.GroupVersionKind().GroupKind() == managers.MCPServer {
			return nil // A custom resource has no such patches.
		}
		return patching(object, types.StrategicMergePatchType, selecting(field.path, zero), field.subresource)
	},
	"apply": func(object *unstructured.Unstructured, field claimedField, zero any) zeroRequest {
		body, _ := selecting(field.path, zero).(map[string]any)
		config := &unstructured.Unstructured{Object: body}
		config.SetGroupVersionKind(object.GroupVersionKind())
		config.SetName(object.GetName())
		return func(ctx context.Context, objects dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
			options := metav1.ApplyOptions{DryRun: dryRun, FieldManager: stranger, Force: true}
			return objects.Apply(ctx, object.GetName(), config, options, subresources(field.subresource)...)
		}
	},
}

var dryRun = []string{metav1.DryRunAll}

func subresources(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

func patching(object *unstructured.Unstructured, kind types.PatchType, body any, subresource string) zeroRequest {
	return func(ctx context.Context, objects dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		options := metav1.PatchOptions{DryRun: dryRun, FieldManager: stranger}
		return objects.Patch(ctx, object.GetName(), kind, text, options, subresources(subresource)...)
	}
}

// jsonPatch replaces a field, or removes it for null.
func jsonPatch(field claimedField, zero any) []map[string]any {
	path := ""
	for _, step := range field.pointer {
		path += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(fmt.Sprint(step))
	}
	if zero == nil {
		return []map[string]any{{"op": "remove", "path": path}}
	}
	return []map[string]any{{"op": "replace", "path": path, "value": zero}}
}

// withValue returns a copy of an object with another value where a pointer leads to. The copy shares what is not changed.
func withValue(within any, pointer []any, value any) any {
	if len(pointer) == 0 {
		return value
	}
	switch step := pointer[0].(type) {
	case int:
		list := slices.Clone(within.([]any))
		list[step] = withValue(list[step], pointer[1:], value)
		return list
	default:
		fields := maps.Clone(within.(map[string]any))
		fields[step.(string)] = withValue(fields[step.(string)], pointer[1:], value)
		return fields
	}
}

// selecting returns a body that has nothing but a field, and the keys of the list entries that it is in.
func selecting(path fieldpath.Path, value any) any {
	if len(path) == 0 {
		return value
	}
	element, inner := path[0], selecting(path[1:], value)
	switch {
	case element.FieldName != nil:
		return map[string]any{*element.FieldName: inner}
	case element.Key != nil:
		item := map[string]any{"$patch": "delete"} // Server-side apply refuses it.
		if fields, ok := inner.(map[string]any); ok {
			item = maps.Clone(fields) // They may be the zero value that other ways write too.
		}
		for _, key := range *element.Key {
			if _, given := item[key.Name]; !given {
				item[key.Name] = key.Value.Unstructured()
			}
		}
		return []any{item}
	default:
		return []any{inner}
	}
}

// judgeZero returns what a write that was accepted has done to Freehold's fields, and which of them have another value although
// managedFields do not name the client.
func judgeZero(claimed []claimedField, after *unstructured.Unstructured) (outcome string, wrong []string) {
	outcome = "unchanged"
	for _, field := range claimed {
		_, value, there := locate(after.Object, field.path)
		if !field.leaf || there && reflect.DeepEqual(field.value, value) {
			continue
		}
		switch owners := harness.ManagersOf(after, field.path.String()); {
		case slices.Contains(owners, stranger):
			outcome = "named"
		case there:
			wrong = append(wrong, fmt.Sprintf("%s has become %#v, and its owners are %q", field.path, value, owners))
		case outcome == "unchanged":
			outcome = "removed"
		}
	}
	return outcome, wrong
}

// wrongAnswer returns an error unless it says that the API server refuses what was written.
func wrongAnswer(err error, what string, args ...any) error {
	var answer apierrors.APIStatus
	refusals := []int32{http.StatusBadRequest, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusInternalServerError}
	if errors.As(err, &answer) && slices.Contains(refusals, answer.Status().Code) {
		return nil
	}
	return fmt.Errorf(what+": %w", append(args, err)...)
}
