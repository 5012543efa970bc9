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
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

const (
	confirmServer = "apply MCPServer/web freehold-finalizer"
	writeStatus   = "apply MCPServer/web/status freehold-status"
)

// forge makes the backend tell of a generation that the MCPServer has never had.
func forge(annotation string) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { set.Annotations[annotation] = "server-web/999" }
}

// A source from outside that is newer than the MCPServer is found out by one confirmation, and is then a contested field
// like any other: told with both sides, standing at no cost, and gone when it is taken.
func TestForgedSourceIsAConflict(t *testing.T) {
	for annotation, writer := range map[string]string{
		v1beta1.AnnotationSource: managers.Backend, v1beta1.AnnotationReplicasSource: managers.BackendReplicas,
	} {
		t.Run(annotation, func(t *testing.T) {
			server := newServer("web")
			server.Spec.BackendReplicas = new(int32(2))
			operate(t, []runtime.Object{server}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				o.took()
				o.events.heard()
				change(o.apiServer, "web", forge(annotation))
				o.rest()
				o.expect([]string{confirmServer, writeStatus}, "a source from outside")
				status, reason, message := o.condition("web", v1beta1.ConditionFieldsOwned)
				if status != metav1.ConditionFalse || reason != "FieldManagerConflict" || !strings.Contains(message, `"somebody"`) ||
					!strings.Contains(message, annotation) || !strings.Contains(message, writer) {
					t.Errorf("FieldsOwned is %s because of %s: %s", status, reason, message)
				}
				if told := o.events.heard(); len(told) != 1 || !strings.Contains(told[0], "Warning FieldManagerConflict") {
					t.Errorf("events %q, want one about the conflict", told)
				}
				rewrite(o.apiServer, "web", func(set *appsv1.StatefulSet) { set.Status.CurrentReplicas++ })
				<-time.After(time.Hour)
				o.expect(nil, "the conflict stands")

				o.annotate("web", v1beta1.AnnotationTake, "statefulset.apps/web:.metadata.annotations."+annotation)
				set, _ := get[*appsv1.StatefulSet](o.apiServer, "web")
				if got := set.Annotations[annotation]; got != "server-web/1" {
					t.Errorf("the source is %q after it was taken", got)
				}
				if status, _, message := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue {
					t.Errorf("FieldsOwned is %s after it was taken: %s", status, message)
				}
				o.took()
				o.rest()
				o.expect(nil, "it is ours")
			})
		})
	}
}

// A source that nobody else owns is replaced, with one event, and so are the values that came with it.
func TestForgedSourceIsReplaced(t *testing.T) {
	for name, source := range map[string]string{"newer": "server-web/999", "unreadable": "whatever", "of another object": "u/7"} {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				o.took()
				o.events.heard()
				rewrite(o.apiServer, "web", func(set *appsv1.StatefulSet) {
					set.Annotations[v1beta1.AnnotationSource] = source
					set.Spec.Template.Spec.Containers[0].Image = "theirs"
				})
				o.rest()
				got := o.took()
				if !slices.Contains(got, applyBackend) || slices.Contains(got, confirmServer) != (name == "newer") {
					t.Errorf("writes %q", got)
				}
				set, _ := get[*appsv1.StatefulSet](o.apiServer, "web")
				if set.Annotations[v1beta1.AnnotationSource] != "server-web/1" || o.backendImage() != "example.com/web" {
					t.Errorf("the source is %q and the image %s", set.Annotations[v1beta1.AnnotationSource], o.backendImage())
				}
				if told := o.events.heard(); len(told) != 1 || !strings.Contains(told[0], " Warning SourceReplaced ") || !strings.Contains(told[0], source) {
					t.Errorf("events %q, want one about the source", told)
				}
				o.rest()
				o.expect(nil, "it is replaced")
			})
		})
	}
}

// An operator that is behind is told so by the API server, and leaves what the other one has written.
func TestNewerSourceIsLeftWhileTheServerIsNotConfirmed(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.took()
		var behind atomic.Bool
		behind.Store(true)
		o.before.set(func(w write) error {
			if behind.Load() && w.kind == "MCPServer" {
				return apierrors.NewConflict(schema.GroupResource{}, w.name, errors.New("the object has been modified"))
			}
			return nil
		})
		rewrite(o.apiServer, "web", func(set *appsv1.StatefulSet) {
			set.Annotations[v1beta1.AnnotationSource] = "server-web/2"
			set.Spec.Template.Spec.Containers[0].Image = "newer"
		})
		<-time.After(time.Hour)
		confirmations := 0
		for _, w := range o.took() {
			switch w {
			case confirmServer:
				confirmations++
			case writeStatus: // What holds the writers back is told.
			default:
				t.Errorf("%s by an operator that is behind", w)
			}
		}
		if confirmations == 0 || confirmations > 20 {
			t.Errorf("%d confirmations in an hour", confirmations)
		}
		if image := o.backendImage(); image != "newer" {
			t.Errorf("image %s: an older view has won", image)
		}
		// The generation comes.
		behind.Store(false)
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.Image = "newer" })
		o.rest()
		if image := o.backendImage(); image != "newer" {
			t.Errorf("image %s", image)
		}
		if status, _, message := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue {
			t.Errorf("FieldsOwned is %s: %s", status, message)
		}
	})
}

// What was found out of a forged source does not hold for the same source once another operator has written it.
func TestForgedSourceIsConfirmedAgainAfterAWrite(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		change(o.apiServer, "web", forge(v1beta1.AnnotationSource))
		o.rest()
		for i := range 3 {
			o.took()
			change(o.apiServer, "web", func(set *appsv1.StatefulSet) {
				set.Spec.Template.Spec.Containers[0].Image = fmt.Sprint("later-", i)
			})
			o.rest()
			if got := o.took(); !slices.Contains(got, confirmServer) {
				t.Errorf("writes %q, want a confirmation", got)
			}
		}
	})
}
