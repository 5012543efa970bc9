// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// comparePlan holds what is planned for a request against what an applier sends that remembers nothing, and against what the
// store then has. Every test of a store does so before each of its writes; the store is left as it was.
func (s *store) comparePlan(ctx context.Context, req apply.Request) {
	s.t.Helper()
	if s.refuse != nil || s.stored != nil && req.Live.GetResourceVersion() != s.stored.ResourceVersion {
		return // The API server will tell something that nobody can know beforehand.
	}
	if _, err := json.Marshal(req.Live); err != nil {
		return // No API server sends such an entry.
	}
	config, live := encoded(s.t, req.Config), encoded(s.t, s.stored)
	began := time.Now()
	planned, err := apply.Plan(s.writer, req)
	if err != nil {
		s.t.Fatal(err)
	}
	if encoded(s.t, req.Config) != config || encoded(s.t, s.stored) != live {
		s.t.Error("planning has modified the request")
	}

	stored, version, requests := s.stored, s.version, s.requests
	defer func() { s.stored, s.version, s.requests = stored, version, requests }()
	s.requests, s.applied = nil, nil
	own := &configuration{}
	if err := json.Unmarshal([]byte(config), own); err != nil {
		s.t.Fatal(err)
	}
	req.Config = own
	out := do(ctx, apply.NewApplierWithClock(nil, s.clock), s.writer, req)

	// A claim that this very write made is as old as the write, and the plan was made earlier. Stored times are whole seconds.
	sameTime := cmpopts.EquateApproxTime(time.Since(began) + time.Second)
	steps, applied := requestsOf(s.writer, planned)
	if diff := cmp.Diff(s.requests, steps); diff != "" {
		s.t.Errorf("requests (-sent +planned):\n%s", diff)
	}
	if diff := cmp.Diff(s.applied, applied); diff != "" {
		s.t.Errorf("configurations (-sent +planned):\n%s", diff)
	}
	if out.Action != planned.Action || message(out.Err) != message(planned.Err) {
		s.t.Errorf("Sync ends with %s, %v; planned is %s, %v", out.Action, out.Err, planned.Action, planned.Err)
	}
	if diff := cmp.Diff(contestedIn(out.Err), contestedIn(planned.Err), sameTime); diff != "" {
		s.t.Errorf("contested fields (-sent +planned):\n%s", diff)
	}
	if diff := cmp.Diff(out.Claims, planned.Claims, sameTime); diff != "" {
		s.t.Errorf("claims (-sent +planned):\n%s", diff)
	}
	if (out.Left == nil) != (planned.Left == nil) || out.Left != nil && !out.Left.Equals(planned.Left) {
		s.t.Errorf("left to others is %v, planned is %v", out.Left, planned.Left)
	}
	if diff := cmp.Diff(s.content(s.stored), s.content(planned.After)); diff != "" {
		s.t.Errorf("the object afterwards (-stored +planned):\n%s", diff)
	}
}

func encoded(t *testing.T, what any) string {
	t.Helper()
	text, err := json.Marshal(what)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// requestsOf are the steps of a plan as a store notes them, and the configurations that are applied by them.
func requestsOf(w apply.Writer, planned *apply.Planned) (requests []string, applied []map[string]any) {
	for _, step := range planned.Steps {
		if step.Edit != nil {
			requests = append(requests, "edit "+editor)
			continue
		}
		requests = append(requests, "apply "+w.Name())
		applied = append(applied, step.Apply)
	}
	return requests, applied
}

// message is an error without the order of what it lists.
func message(err error) string {
	if _, contested := errors.AsType[*apply.ConflictError](err); contested || err == nil {
		return string(apply.ClassOf(err))
	}
	return err.Error()
}

func contestedIn(err error) []apply.FieldConflict {
	conflict, contested := errors.AsType[*apply.ConflictError](err)
	if !contested {
		return nil
	}
	return conflict.Fields
}

// content is an object with who owns what of it, as far as neither the time nor the API server has a part in it.
func (s *store) content(object metav1.Object) any {
	s.t.Helper()
	var whole deployment
	switch object := object.(type) {
	case *deployment:
		if object == nil {
			return nil
		}
		whole = *object.DeepCopy()
	case *unstructured.Unstructured:
		if object == nil {
			return nil
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &whole); err != nil {
			s.t.Fatal(err)
		}
	}
	whole.TypeMeta, whole.UID, whole.ResourceVersion = metav1.TypeMeta{}, "", ""
	for i := range whole.ManagedFields {
		whole.ManagedFields[i].Time = nil
	}
	slices.SortFunc(whole.ManagedFields, func(a, b metav1.ManagedFieldsEntry) int {
		return slices.Compare([]string{a.Manager, string(a.Operation)}, []string{b.Manager, string(b.Operation)})
	})
	return whole
}

// What can be planned, and what that comes to. That it is what is sent, comparePlan sees to.
func TestAPlanIsWhatIsSent(t *testing.T) {
	takeAll := func(req *apply.Request) { req.Take = func(ownership.Owner, fieldpath.Path) bool { return true } }
	yieldImage := func(req *apply.Request) {
		req.Yield = func(path fieldpath.Path) bool { return path.String() == webImage }
	}
	const send, move = "apply content", "edit ownership"
	for name, test := range map[string]struct {
		// prepare gives the store an object; without it there is none.
		prepare func(t *testing.T) *store
		want    *configuration
		ask     func(*apply.Request)

		action apply.Action
		class  apply.Class
		steps  []string
		causes []apply.Cause
	}{
		"create": {
			prepare: func(t *testing.T) *store { t.Helper(); return newStore(t, content, stamped) },
			action:  apply.ActionCreated, steps: []string{send},
		},
		"nothing to do": {action: apply.ActionNone},
		"an edit":       {want: web("a:2"), action: apply.ActionApplied, steps: []string{send}},
		"drift": {
			prepare: func(t *testing.T) *store {
				t.Helper()
				s := created(t, content, stamped, web("a:1"))
				s.update("kubectl-edit", func(d *deployment) { delete(d.Labels, "app") })
				return s
			},
			action: apply.ActionApplied, steps: []string{send},
		},
		"conflict": {prepare: seized, action: apply.ActionRefused, class: apply.ClassConflict, steps: []string{send}},
		"take": {
			prepare: seized, ask: takeAll,
			action: apply.ActionApplied, steps: []string{send, move, send}, causes: []apply.Cause{apply.CauseTaken},
		},
		"leave to others": {prepare: seized, ask: yieldImage, action: apply.ActionNone},
		"give up": {
			ask: yieldImage, want: web("a:2").WithLabels(map[string]string{"more": "x"}),
			action: apply.ActionApplied, steps: []string{move, send}, causes: []apply.Cause{apply.CauseYielded},
		},
		"inherit": {
			prepare: seized, ask: inheritAll,
			action: apply.ActionApplied, steps: []string{move, send}, causes: []apply.Cause{apply.CauseInherited},
		},
		"restore": {
			prepare: func(t *testing.T) *store {
				t.Helper()
				s := created(t, content, stamped, web("a:1"))
				s.reset()
				return s
			},
			action: apply.ActionClaimed, steps: []string{move}, causes: []apply.Cause{apply.CauseRestored},
		},
		"unset": {
			prepare: func(t *testing.T) *store {
				t.Helper()
				s := created(t, content, stamped, web("a:1"))
				defaulted(s.stored)
				return s
			},
			want: recreated(), ask: unsetRollingUpdate,
			action: apply.ActionApplied, steps: []string{move, send}, causes: []apply.Cause{apply.CauseUnset},
		},
		"unset what another manager owns": {
			prepare: func(t *testing.T) *store {
				t.Helper()
				s := created(t, content, stamped, web("a:1"))
				s.update("kubectl-edit", defaulted)
				return s
			},
			want: recreated(), ask: unsetRollingUpdate,
			action: apply.ActionRefused, class: apply.ClassConflict,
		},
		"another one's": {
			prepare: func(t *testing.T) *store {
				t.Helper()
				s := created(t, content, stamped, web("a:1"))
				s.copied("kubectl-create")
				return s
			},
			want: web("a:2"), ask: func(req *apply.Request) { req.Mine = func(metav1.Object) bool { return false } },
			action: apply.ActionRefused, class: apply.ClassForeign,
		},
		"stale": {
			ask:    func(req *apply.Request) { req.Source.Generation = 0 },
			action: apply.ActionRefused, class: apply.ClassStale,
		},
		"nothing is wanted": {
			want: appsv1ac.Deployment("web", namespace), action: apply.ActionApplied, steps: []string{send},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.prepare == nil {
				test.prepare = func(t *testing.T) *store { t.Helper(); return created(t, content, stamped, web("a:1")) }
			}
			if test.want == nil {
				test.want = web("a:1")
			}
			s := test.prepare(t)
			req := apply.Request{Object: webRef, Config: test.want, Source: apply.Source{UID: sourceUID, Generation: 1}}
			if s.stored != nil {
				req.Live = s.live()
			}
			if test.ask != nil {
				test.ask(&req)
			}
			s.comparePlan(t.Context(), req)
			planned, err := apply.Plan(s.writer, req)
			if err != nil {
				t.Fatal(err)
			}
			steps, _ := requestsOf(s.writer, planned)
			var causes []apply.Cause
			for _, change := range planned.Claims {
				causes = append(causes, change.Cause)
			}
			if planned.Action != test.action || apply.ClassOf(planned.Err) != test.class {
				t.Errorf("%s with class %q, want %s with %q", planned.Action, apply.ClassOf(planned.Err), test.action, test.class)
			}
			if diff := cmp.Diff(test.steps, steps); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.causes, causes); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
			if contested := planned.Contested(); (len(contested) > 0) != (test.class == apply.ClassConflict) {
				t.Errorf("contested are %v", contested)
			}
		})
	}
}

// An object may be of the writer's type or unstructured.
func TestAPlannedObjectMayBeUnstructured(t *testing.T) {
	s := seized(t)
	live := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(encoded(t, s.stored)), &live.Object); err != nil {
		t.Fatal(err)
	}
	live.SetAPIVersion("apps/v1")
	live.SetKind("Deployment")
	before := live.DeepCopy()
	planned, err := apply.Plan(s.writer, apply.Request{
		Object: webRef, Config: web("a:2"), Observed: apply.Observed{Live: live}, Source: apply.Source{UID: sourceUID, Generation: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{webImage}, texts(planned.Contested())); diff != "" || planned.Config() == nil {
		t.Errorf("contested (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, live); diff != "" {
		t.Errorf("planning has modified the object:\n%s", diff)
	}
	if diff := cmp.Diff(before, planned.After); diff != "" {
		t.Errorf("the object afterwards (-want +got):\n%s", diff)
	}
}

func texts(paths []fieldpath.Path) (all []string) {
	for _, path := range paths {
		all = append(all, path.String())
	}
	return all
}

// Plan returns an error for an intent or an object that it cannot read, and does not panic.
func TestAPlanOfNonsenseIsAnError(t *testing.T) {
	s := created(t, content, stamped, web("a:1"))
	twice := web("a:1")
	twice.Spec.Template.Spec.Containers = append(twice.Spec.Template.Spec.Containers, twice.Spec.Template.Spec.Containers[0])
	for name, req := range map[string]apply.Request{
		"a list with one key twice": {Object: webRef, Config: twice, Observed: apply.Observed{Live: s.live()}},
		"another kind":              {Object: webRef, Config: appsv1ac.StatefulSet("web", namespace), Observed: apply.Observed{Live: s.live()}},
	} {
		if planned, err := apply.Plan(s.writer, req); err == nil {
			t.Errorf("%s: it is planned: %+v", name, planned)
		}
	}
}
