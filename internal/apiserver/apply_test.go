// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	paused  = `"metadata":{"name":"web"},"spec":{"paused":true}`
	working = `"metadata":{"name":"web"},"spec":{"paused":false}`
)

func TestApplyOfTheSameChangesNothing(t *testing.T) {
	f := newFixture(t)
	first := must(f.apply("a", paused))(t)
	second := must(f.apply("a", paused))(t)
	if second.ResourceVersion != first.ResourceVersion || first.Generation != 1 || first.UID == "" {
		t.Errorf("first %v, second %v", first.ObjectMeta, second.ObjectMeta)
	}
	third := must(f.apply("a", working))(t)
	if third.ResourceVersion == first.ResourceVersion || third.Generation != 2 || third.UID != first.UID {
		t.Errorf("first %v, third %v", first.ObjectMeta, third.ObjectMeta)
	}
}

func TestApplyOfAnothersFieldIsAConflict(t *testing.T) {
	f := newFixture(t)
	first := must(f.apply("a", paused))(t)
	_, err := f.apply("b", working)
	expectCode(t, err, 409, "another value")
	if fields := contested(err); !slices.Equal(fields, []string{".spec.paused"}) {
		t.Errorf("contested fields %v", fields)
	}
	// A conflict is judged before the version is.
	_, err = f.apply("b", `"metadata":{"name":"web","resourceVersion":"1"},"spec":{"paused":false}`)
	if fields := contested(err); !slices.Equal(fields, []string{".spec.paused"}) {
		t.Errorf("contested fields %v beside a version: %v", fields, err)
	}
	if shared := must(f.apply("b", paused))(t); !slices.Equal(managers(shared), []string{"a", "b"}) {
		t.Errorf("managers %v of the same value", managers(shared))
	}
	forced := must(f.deployments.Patch(t.Context(), "web", types.ApplyPatchType,
		[]byte(`{"apiVersion":"apps/v1","kind":"Deployment",`+working+`}`), metav1.PatchOptions{FieldManager: "c", Force: new(true)}))(t)
	if !slices.Equal(managers(forced), []string{"c"}) || forced.Spec.Paused || forced.UID != first.UID {
		t.Errorf("managers %v after a forced apply, paused %t", managers(forced), forced.Spec.Paused)
	}
}

// A precondition holds for an object that exists; a version says nothing about one that does not.
func TestPreconditionsOfAnApplyHoldForWhatExists(t *testing.T) {
	for name, test := range map[string]struct {
		missing  bool
		metadata string // %s is the live version
		code     int32  // 0 for success
	}{
		"create-only, missing":    {true, `"resourceVersion":"1"`, 0},
		"create-only, existing":   {false, `"resourceVersion":"1"`, 409},
		"any version, missing":    {true, `"resourceVersion":"999999"`, 0},
		"the live version":        {false, `"resourceVersion":"%s"`, 0},
		"no version":              {false, `"resourceVersion":"0"`, 0},
		"a UID, missing":          {true, `"uid":"of-web"`, 409},
		"the live UID":            {false, `"uid":"of-web"`, 0},
		"another UID":             {false, `"uid":"of-another"`, 422},
		"live UID, stale version": {false, `"uid":"of-web","resourceVersion":"1"`, 409},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if !test.missing {
				live := put(f, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "of-web"}})
				if name == "the live version" {
					test.metadata = fmt.Sprintf(test.metadata, live.ResourceVersion)
				}
			}
			_, err := f.apply("a", `"metadata":{"name":"web",`+test.metadata+`},"spec":{"paused":true}`)
			if test.code != 0 {
				expectCode(t, err, test.code, "apply")
				if fields := contested(err); len(fields) > 0 {
					t.Errorf("contested fields %v", fields)
				}
			} else if err != nil {
				t.Error(err)
			}
			live, exists := f.Get(f.kindNamed("Deployment"), "shop", "web")
			if applied := exists && live.(*appsv1.Deployment).Spec.Paused; applied != (test.code == 0) {
				t.Errorf("applied: %t", applied)
			}
		})
	}
}

// An object is of the namespace of its URL.
func TestApplyHasTheNameOfItsURL(t *testing.T) {
	f := newFixture(t)
	for _, metadata := range []string{`"name":"another"`, `"name":"web","namespace":"market"`} {
		_, err := f.apply("a", `"metadata":{`+metadata+`}`)
		expectCode(t, err, 400, metadata)
	}
	if live := must(f.apply("a", `"metadata":{"name":"web"}`))(t); live.Namespace != "shop" {
		t.Errorf("namespace %q", live.Namespace)
	}
}

func TestUpdateOfAnOlderVersionIsAConflict(t *testing.T) {
	f := newFixture(t)
	first := must(f.apply("a", paused))(t)
	must(f.apply("a", working))(t)
	_, err := f.deployments.Update(t.Context(), first, metav1.UpdateOptions{})
	expectCode(t, err, 409, "an update from an older version")
	first.ResourceVersion, first.UID = "", "another"
	_, err = f.deployments.Update(t.Context(), first, metav1.UpdateOptions{})
	expectCode(t, err, 422, "an update of another object")
}

func TestStatusIsApart(t *testing.T) {
	f := newFixture(t)
	const status = `"metadata":{"name":"web"},"status":{"readyReplicas":1}`
	_, err := f.apply("kubelet", status, "status")
	expectCode(t, err, 404, "an apply to the status of nothing")
	first := must(f.apply("a", paused+`,"status":{"readyReplicas":5}`))(t)
	if first.Status.ReadyReplicas != 0 || !slices.Equal(managers(first), []string{"a"}) {
		t.Errorf("status %+v by managers %v", first.Status, managers(first))
	}
	second := must(f.apply("kubelet", `"metadata":{"name":"web"},"spec":{"paused":false},"status":{"readyReplicas":1}`, "status"))(t)
	if !second.Spec.Paused || second.Status.ReadyReplicas != 1 || second.Generation != 1 {
		t.Errorf("paused %t, status %+v, generation %d", second.Spec.Paused, second.Status, second.Generation)
	}
	if !slices.Equal(managers(second), []string{"a", "kubelet/status"}) {
		t.Errorf("managers %v", managers(second))
	}
	second.Spec.Paused, second.Status.ReadyReplicas = false, 7
	third := must(f.deployments.Update(t.Context(), second, metav1.UpdateOptions{FieldManager: "kubectl"}))(t)
	if third.Spec.Paused || third.Status.ReadyReplicas != 1 || third.Generation != 2 {
		t.Errorf("paused %t, status %+v, generation %d after an update", third.Spec.Paused, third.Status, third.Generation)
	}
	third.Spec.Paused, third.Status.ReadyReplicas = true, 3
	fourth := must(f.deployments.UpdateStatus(t.Context(), third, metav1.UpdateOptions{FieldManager: "kubectl"}))(t)
	if fourth.Spec.Paused || fourth.Status.ReadyReplicas != 3 || fourth.Generation != 2 {
		t.Errorf("paused %t, status %+v, generation %d after an update of the status", fourth.Spec.Paused, fourth.Status, fourth.Generation)
	}
}

// Ownership is given up by a JSON patch of managedFields: the value stays, nobody owns it, and a guard that does not hold
// changes nothing.
func TestManagedFieldsAreEdited(t *testing.T) {
	f := newFixture(t)
	must(f.apply("b", `"metadata":{"name":"web","labels":{"app":"web"}}`))(t)
	live := must(f.apply("a", paused))(t)
	left, err := json.Marshal(slices.DeleteFunc(slices.Clone(live.ManagedFields), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "a" }))
	if err != nil {
		t.Fatal(err)
	}
	edit := func(uid types.UID, version string) (*appsv1.Deployment, error) {
		return f.deployments.Patch(t.Context(), "web", types.JSONPatchType, fmt.Appendf(nil,
			`[{"op":"test","path":"/metadata/uid","value":%q},{"op":"replace","path":"/metadata/resourceVersion","value":%q},`+
				`{"op":"add","path":"/metadata/managedFields","value":%s}]`, uid, version, left), metav1.PatchOptions{FieldManager: "editor"})
	}
	_, err = edit("another", live.ResourceVersion)
	expectCode(t, err, 422, "another UID")
	_, err = edit(live.UID, "1")
	expectCode(t, err, 409, "an older version")
	after := must(edit(live.UID, live.ResourceVersion))(t)
	if !slices.Equal(managers(after), []string{"b"}) || !after.Spec.Paused || after.Generation != live.Generation {
		t.Errorf("managers %v, paused %t, generation %d", managers(after), after.Spec.Paused, after.Generation)
	}
	if _, err := f.apply("b", working); err != nil {
		t.Errorf("a value that nobody owns: %v", err)
	}
	_, err = f.deployments.Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{})
	expectCode(t, err, 415, "a patch of another type")
}

func TestMergePatchOwnsWhatItChanges(t *testing.T) {
	f := newFixture(t)
	must(f.apply("a", `"metadata":{"name":"web"},"spec":{"replicas":1}`))(t)
	after := must(f.deployments.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"replicas":2}}`),
		metav1.PatchOptions{FieldManager: "kubectl"}))(t)
	if !slices.Equal(managers(after), []string{"kubectl"}) || *after.Spec.Replicas != 2 {
		t.Errorf("managers %v, %d replicas", managers(after), *after.Spec.Replicas)
	}
}

func TestDryRunStoresNothing(t *testing.T) {
	f := newFixture(t)
	version := f.Version()
	all := []string{metav1.DryRunAll}
	_, err := f.deployments.Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, metav1.CreateOptions{DryRun: all})
	if err != nil || f.exists("Deployment", "web") {
		t.Errorf("created: %t, %v", f.exists("Deployment", "web"), err)
	}
	live := put(f, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	changed := live.DeepCopy()
	changed.Spec.Paused = true
	if would := must(f.deployments.Update(t.Context(), changed, metav1.UpdateOptions{DryRun: all}))(t); !would.Spec.Paused {
		t.Error("the answer does not show what would be")
	}
	if err := f.deployments.Delete(t.Context(), "web", metav1.DeleteOptions{DryRun: all}); err != nil || f.Version() != version+1 {
		t.Errorf("version %d after %d and one write, %v", f.Version(), version, err)
	}
}
