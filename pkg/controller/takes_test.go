// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/status"
)

const takeImage = "statefulset.apps/web:" + mcpImage

// imageTaken checks that the image of the backend is ours, and that this is told.
func (o *operating) imageTaken() {
	o.t.Helper()
	if image := o.backendImage(); image != "example.com/web" {
		o.t.Errorf("image %s, want ours", image)
	}
	status, reason, message := o.condition("web", v1beta1.ConditionFieldsTaken)
	want := fmt.Sprintf("freehold.dev/take=%q: took %s of statefulset.apps/web from %q", takeImage, mcpImage, "helm")
	if status != metav1.ConditionTrue || reason != v1beta1.ReasonTaken || message != want {
		o.t.Errorf("FieldsTaken is %s because of %s: %s", status, reason, message)
	}
}

func TestATakeWithoutAnAnswerIsToldAsWhatItWas(t *testing.T) {
	for _, lost := range []string{applyRequests, editBackend, applyBackend, applyStatus} {
		t.Run(lost, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				seize(t, o, "evil")
				o.rest()
				o.took()
				var once atomic.Bool
				o.after.set(func(w write) error {
					if w.String() == lost && once.CompareAndSwap(false, true) {
						return apierrors.NewTimeoutError("the answer was lost", 0)
					}
					return nil
				})
				o.annotate("web", v1beta1.AnnotationTake, takeImage)
				<-time.After(time.Minute)
				o.rest()
				if !once.Load() {
					t.Fatal("no answer was lost")
				}
				o.imageTaken()
				count := map[string]int{}
				for _, w := range o.took() {
					count[w]++
				}
				if count[editBackend] != 1 || count[applyRequests] > 2 {
					t.Errorf("requests %v", count)
				}
			})
		})
	}
}

// A take is carried out once although the Deployment still waits for its backend, and so can tell nothing yet.
func TestATakeIsCarriedOutOnceWhileTheDeploymentWaits(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		seize(t, o, "evil")
		o.rest()
		o.took()
		o.annotate("web", v1beta1.AnnotationTake, takeImage)
		o.imageTaken()
		for range 5 {
			seize(t, o, "evil")
			o.rest()
			for _, w := range o.took() {
				if w == editBackend || w == applyRequests {
					t.Errorf("%s after it was carried out", w)
				}
			}
		}
		if image := o.backendImage(); image != "evil" {
			t.Errorf("image %s, want that of who set it again", image)
		}
		const want = `freehold.dev/take="` + `statefulset.apps/web:`
		if _, _, message := o.condition("web", v1beta1.ConditionFieldsTaken); !strings.HasPrefix(message, want) || strings.Count(message, "from") != 1 {
			t.Errorf("FieldsTaken says %s", message)
		}
	})
}

// Who ends between any two requests of a take leaves it to the next, who carries out what is left of it and no more.
func TestATakeGoesOnAfterARestart(t *testing.T) {
	for _, last := range []string{applyRequests, editBackend, applyBackend, applyStatus} {
		t.Run(last, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer(t, newServer("web"))
				first := start(t, s, nil)
				first.rest()
				first.becomeReady("web")
				seize(t, first, "evil")
				first.rest()
				first.took()
				// With the last request it loses its connection.
				var ended atomic.Bool
				s.before.set(func(write) error {
					if ended.Load() {
						return errors.New("connection refused")
					}
					return nil
				})
				s.after.set(func(w write) error {
					if w.String() == last {
						ended.Store(true)
						return errors.New("connection reset")
					}
					return nil
				})
				first.annotate("web", v1beta1.AnnotationTake, takeImage)
				first.end()
				if !ended.Load() {
					t.Fatal("it did not come to that")
				}
				s.before.set(nil)
				s.after.set(nil)

				second := start(t, s, nil)
				defer second.end()
				second.rest()
				second.imageTaken()
				second.took()
				<-time.After(time.Hour)
				second.expect(nil, "it is carried out")
				seize(t, second, "evil")
				second.rest()
				if got := second.toChildren(); slices.Contains(got, editBackend) || second.backendImage() != "evil" {
					t.Errorf("requests %q after it was seized again", got)
				}
			})
		})
	}
}

// A restart finds out nothing new of a request that was carried out.
func TestTakeThatIsCarriedOutCostsNothingAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, newServer("web"))
		first := start(t, s, nil)
		first.rest()
		first.becomeReady("web")
		seize(t, first, "evil")
		first.rest()
		first.annotate("web", v1beta1.AnnotationTake, takeImage)
		first.imageTaken()
		first.end()
		first.took()
		second := start(t, s, nil)
		defer second.end()
		second.rest()
		second.expect(nil, "a restart")
		second.imageTaken()
	})
}

// That the status cannot be written, or is held by somebody else, makes no take run again.
func TestTakeDoesNotDependOnTheStatus(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		seize(t, o, "evil")
		o.rest()
		o.took()
		var allowed atomic.Bool
		o.before.set(func(w write) error {
			if w.subresource == "status" && !allowed.Load() {
				return apierrors.NewForbidden(schema.GroupResource{}, w.name, errors.New("not now"))
			}
			return nil
		})
		o.annotate("web", v1beta1.AnnotationTake, takeImage)
		for range 5 {
			seize(t, o, "evil")
			o.rest()
			if got := o.toChildren(); slices.Contains(got, editBackend) {
				t.Errorf("requests %q after it was carried out", got)
			}
		}
		allowed.Store(true)
		<-time.After(time.Hour)
		if status, reason, _ := o.condition("web", v1beta1.ConditionFieldsTaken); status != metav1.ConditionTrue || reason != v1beta1.ReasonTaken {
			t.Errorf("FieldsTaken is %s because of %s", status, reason)
		}
		if status, _, _ := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionFalse {
			t.Errorf("FieldsOwned is %s", status)
		}
	})
}

// A record costs one write for a request and one for its withdrawal, and takes its place in front of what it is about.
func TestARequestCostsOneRecordAndSoDoesItsWithdrawal(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.annotate("web", v1beta1.AnnotationTake, "helm")
		o.expect([]string{applyRequests, applyStatus}, "a request that nothing fits")
		if status, reason, _ := o.condition("web", v1beta1.ConditionFieldsTaken); status != metav1.ConditionFalse || reason != v1beta1.ReasonNothingToTake {
			t.Errorf("FieldsTaken is %s because of %s", status, reason)
		}
		seize(t, o, "evil")
		o.rest()
		if image := o.backendImage(); image != "evil" {
			t.Error("a request that was carried out takes what was claimed later")
		}
		o.took()
		o.annotate("web", v1beta1.AnnotationTake, "")
		o.expect([]string{applyRequests, applyStatus}, "it was withdrawn")
		if _, ok := o.server("web").Annotations[v1beta1.AnnotationTakeRecord]; ok {
			t.Error("the record is still there")
		}
		// One that somebody has forged, or restored from a backup, is another request's.
		o.annotate("web", v1beta1.AnnotationTakeRecord, "forged")
		o.took()
		o.annotate("web", v1beta1.AnnotationTake, takeImage)
		o.imageTaken()
	})
}

// 140 contested variables, a long take and a long yield neither freeze the status nor are carried out twice.
func TestLongRequestsAreCarriedOutOnceAndFreezeNothing(t *testing.T) {
	const count = 140
	server := newServer("web")
	for i := range count {
		server.Spec.Env = append(server.Spec.Env, v1beta1.EnvVar{Name: fmt.Sprintf("VARIABLE_%03d", i), Value: "ours"})
	}
	edit := func(value string) func(*appsv1.StatefulSet) {
		return func(set *appsv1.StatefulSet) {
			env := slices.Clone(set.Spec.Template.Spec.Containers[0].Env)
			for i := range env {
				if strings.HasPrefix(env[i].Name, "VARIABLE_") {
					env[i].Value = value
				}
			}
			set.Spec.Template.Spec.Containers[0].Env = env
		}
	}
	ours := func(o *operating) (n int) {
		set, _ := get[*appsv1.StatefulSet](o.apiServer, "web")
		for _, env := range set.Spec.Template.Spec.Containers[0].Env {
			if env.Value == "ours" {
				n++
			}
		}
		return n
	}
	operate(t, []runtime.Object{server}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		change(o.apiServer, "web", edit("theirs"))
		o.rest()
		state, _, message := o.condition("web", v1beta1.ConditionFieldsOwned)
		if state != metav1.ConditionFalse || len(message) > status.MaxMessage || !strings.Contains(message, "(+139 more fields)") {
			t.Fatalf("FieldsOwned is %s, with %d bytes: %s", state, len(message), message)
		}
		var paths []string
		for i := range count {
			paths = append(paths, fmt.Sprintf(`statefulset.apps/web:.spec.template.spec.containers[name="mcp"].env[name="VARIABLE_%03d"].value`, i))
		}
		o.took()
		o.annotate("web", v1beta1.AnnotationTake, strings.Join(paths, ","))
		if ours(o) != count {
			t.Errorf("%d variables are ours", ours(o))
		}
		if got := o.took(); !slices.Equal(got, []string{applyRequests, editBackend, applyBackend, applyStatus}) {
			t.Errorf("requests %q", got)
		}
		if state, _, message := o.condition("web", v1beta1.ConditionFieldsTaken); state != metav1.ConditionTrue || len(message) > status.MaxMessage {
			t.Errorf("FieldsTaken is %s, with %d bytes", state, len(message))
		}
		if record := o.server("web").Annotations[v1beta1.AnnotationTakeRecord]; len(record) > status.MaxMessage {
			t.Errorf("the record has %d bytes", len(record))
		}
		o.annotate("web", v1beta1.AnnotationYield, strings.Join(paths, ","))
		if state, _, message := o.condition("web", v1beta1.ConditionFieldsYielded); state != metav1.ConditionTrue || len(message) > status.MaxMessage {
			t.Errorf("FieldsYielded is %s, with %d bytes: %s", state, len(message), message)
		}
		change(o.apiServer, "web", edit("theirs"))
		o.rest()
		if ours(o) != 0 {
			t.Error("what is left to others was written")
		}
	})
}

func TestEntriesBeyondTheBoundAreRefusedAndTold(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		var many []string
		for i := range 10000 {
			many = append(many, fmt.Sprintf(".spec.v%d", i))
		}
		o.annotate("web", v1beta1.AnnotationTake, strings.Join(many, ","))
		o.annotate("web", v1beta1.AnnotationYield, strings.Join(append([]string{mcpImage}, many...), ","))
		for _, conditionType := range []string{v1beta1.ConditionFieldsTaken, v1beta1.ConditionFieldsYielded} {
			if state, reason, message := o.condition("web", conditionType); state != metav1.ConditionFalse || reason != v1beta1.ReasonTooManyEntries || len(message) > status.MaxMessage {
				t.Errorf("%s is %s because of %s, with %d bytes", conditionType, state, reason, len(message))
			}
		}
		if owners := ownersOf[*appsv1.StatefulSet](o.apiServer, "web", mcpImage); len(owners) != 0 {
			t.Errorf("the first entry is not followed: owners %q", owners)
		}
		o.took()
		<-time.After(time.Hour)
		o.expect(nil, "it is refused")
	})
}

// Several proxies without a session store are warned of by the number that there is, whoever has set it.
func TestUnsharedSessionsAreToldByTheLiveNumber(t *testing.T) {
	redis := &v1beta1.SessionStorageConfig{Provider: v1beta1.SessionStorageRedis, Address: "redis:6379"}
	scale := func(o *operating, number int32) {
		change(o.apiServer, "web", func(d *appsv1.Deployment) { d.Spec.Replicas = &number })
		o.rest()
	}
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.events.heard()
		for _, step := range []struct {
			number int32
			want   metav1.ConditionStatus
			news   int
		}{{3, metav1.ConditionTrue, 1}, {5, metav1.ConditionTrue, 0}, {1, metav1.ConditionFalse, 0}} {
			scale(o, step.number)
			if state, reason, message := o.condition("web", v1beta1.ConditionSessionStorageWarning); state != step.want {
				t.Errorf("with %d proxies SessionStorageWarning is %s because of %s: %s", step.number, state, reason, message)
			}
			if told := o.events.heard(); len(told) != step.news {
				t.Errorf("with %d proxies there are events %q", step.number, told)
			}
		}
		scale(o, 3)
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.SessionStorage = redis })
		o.rest()
		if state, _, _ := o.condition("web", v1beta1.ConditionSessionStorageWarning); state != metav1.ConditionFalse {
			t.Errorf("SessionStorageWarning is %s with a store", state)
		}
	})
}
