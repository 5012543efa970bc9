// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// rewrite stores an object with managedFields of its own choice, as who patches both in one request, or one after the
// other while nobody watches.
func rewrite[L runtime.Object](s *apiServer, name string, edit func(L)) {
	s.t.Helper()
	found, ok := get[L](s, name)
	if !ok {
		s.t.Fatalf("%T %s does not exist", found, name)
	}
	kind, after := s.kindOf(found), found.DeepCopyObject().(L)
	edit(after)
	if err := kind.Strategy.Update("", after, found); err != nil {
		s.t.Fatal(err)
	}
	s.api.Put(kind, after)
}

// updateAs changes an object under the name of any field manager.
func updateAs[L runtime.Object](s *apiServer, manager, name string, edit func(L)) {
	s.t.Helper()
	changeAs(s, "", manager, name, edit)
}

// A value that was changed while managedFields stayed as they were comes back, whatever part of whichever child it is.
func TestDriftBehindTheRecordIsMended(t *testing.T) {
	for name, test := range map[string]struct {
		drift func(*apiServer)
		want  string
	}{
		"an image": {func(s *apiServer) {
			rewrite(s, "web", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "theirs" })
		}, "apply Deployment/web freehold-proxy"},
		"a label": {func(s *apiServer) {
			rewrite(s, "web", func(set *appsv1.StatefulSet) { set.Labels["app"] = "theirs" })
		}, "apply StatefulSet/web freehold-backend"},
		"the RunConfig": {func(s *apiServer) {
			rewrite(s, s.configNamed("web-runconfig"), func(c *corev1.ConfigMap) { c.Labels["toolhive.stacklok.io/component"] = "theirs" })
		}, "apply ConfigMap/web-runconfig freehold-runconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAPIServer(t, newServer("web"))
				o := start(t, s, nil)
				o.rest()
				o.becomeReady("web")
				o.took()
				test.drift(s)
				o.rest()
				if got := o.took(); !slices.Contains(got, test.want) {
					t.Errorf("writes %q, want %s among them", got, test.want)
				}
				o.rest()
				o.expect(nil, "it is mended")
				o.end()

				test.drift(s) // while the operator is down
				o = start(t, s, nil)
				defer o.end()
				o.rest()
				if got := o.took(); !slices.Contains(got, test.want) {
					t.Errorf("writes %q after a restart, want %s among them", got, test.want)
				}
				o.rest()
				o.expect(nil, "it is mended after a restart")
			})
		})
	}
}

// Who updates under one of our own names is named as what it is, and what it holds can be taken.
func TestAnUpdateUnderAnOwnNameIsNamedAndTaken(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		updateAs(o.apiServer, managers.Backend, "web", func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = "theirs" })
		o.rest()
		_, reason, message := o.condition("web", v1beta1.ConditionFieldsOwned)
		if reason != "FieldManagerConflict" || !strings.Contains(message, `"freehold-backend" (Update; another client`) {
			t.Errorf("FieldsOwned has reason %s: %s", reason, message)
		}
		o.took()
		<-time.After(time.Hour)
		o.expect(nil, "the conflict stands")
		o.annotate("web", v1beta1.AnnotationTake, "statefulset.apps/web:"+mcpImage)
		if status, _, _ := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue || o.backendImage() != "example.com/web" {
			t.Errorf("FieldsOwned is %s and the image %s after it was taken", status, o.backendImage())
		}
	})
}

// Entries that are there twice, or cannot be read, are repaired and told of, and hold nothing up.
func TestRecordIsRepaired(t *testing.T) {
	for name, spoil := range map[string]func(*appsv1.StatefulSet){
		"our entry twice": func(set *appsv1.StatefulSet) { set.ManagedFields = append(set.ManagedFields, set.ManagedFields...) },
		"an entry that cannot be read": func(set *appsv1.StatefulSet) {
			broken := *set.ManagedFields[0].DeepCopy()
			broken.Manager, broken.FieldsV1 = "them", metav1.NewFieldsV1(`{"k:{":{}}`)
			set.ManagedFields = append(set.ManagedFields, broken)
		},
	} {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				before, _ := get[*appsv1.StatefulSet](o.apiServer, "web")
				o.took()
				o.events.heard()
				rewrite(o.apiServer, "web", func(set *appsv1.StatefulSet) {
					spoil(set)
					set.Spec.Template.Spec.Containers[0].Image = "theirs"
				})
				o.rest()
				if got := o.toChildren(); !cmp.Equal(got, []string{editBackend, applyBackend}) {
					t.Errorf("requests %q", got)
				}
				after, _ := get[*appsv1.StatefulSet](o.apiServer, "web")
				if diff := cmp.Diff(before.Spec, after.Spec); diff != "" || len(after.ManagedFields) != len(before.ManagedFields) {
					t.Errorf("%d entries, want %d; the spec (-before +after):\n%s", len(after.ManagedFields), len(before.ManagedFields), diff)
				}
				if told := o.events.heard(); len(told) != 1 || !strings.Contains(told[0], " Warning ManagedFieldsRepaired ") {
					t.Errorf("events %q, want one about the repair", told)
				}
				o.rest()
				o.expect(nil, "it is repaired")
			})
		})
	}
}

// What a handback has left with the plugin, at values of ToolHive's, is taken back by an operator that is started instead of another run of
// the plugin.
func TestAnInterruptedHandbackIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, newServer("web"))
		o := start(t, s, nil)
		o.rest()
		o.becomeReady("web")
		o.end()
		rewrite(s, "web", func(set *appsv1.StatefulSet) {
			for i := range set.ManagedFields {
				if set.ManagedFields[i].Manager == managers.Backend {
					set.ManagedFields[i].Manager = managers.Plugin
				}
			}
			delete(set.Annotations, v1beta1.AnnotationSource)
			set.Spec.Template.Annotations[v1beta1.AnnotationGeneration] = "1"
		})
		o = start(t, s, nil)
		defer o.end()
		o.rest()
		if status, reason, message := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue {
			t.Errorf("FieldsOwned is %s, %s: %s", status, reason, message)
		}
		set, _ := get[*appsv1.StatefulSet](s, "web")
		if gate := set.Spec.Template.Annotations[v1beta1.AnnotationGeneration]; gate == "1" {
			t.Error("the gate is open")
		}
		for _, e := range set.ManagedFields {
			if e.Manager == managers.Plugin {
				t.Errorf("the plugin has still %s", e.FieldsV1)
			}
		}
	})
}

// A port that is of an earlier spec, and whose claim is lost before the edit is carried out, goes all the same: it has the name of the
// wanted one, and the API server refuses two of one name.
func TestAPortWhoseClaimIsLostGoesWithTheSpec(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		rewrite(o.apiServer, "web", func(d *appsv1.Deployment) { d.ManagedFields = nil })
		rewrite(o.apiServer, "mcp-web-proxy", func(s *corev1.Service) { s.ManagedFields = nil })
		change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Spec.ProxyPort = 9090 })
		o.rest()
		o.expectCondition("after the edit", v1beta1.ConditionApplied, metav1.ConditionTrue, v1beta1.ReasonApplied)
		o.expectCondition("after the edit", v1beta1.ConditionFieldsOwned, metav1.ConditionTrue, v1beta1.ReasonNoConflict)
		d, _ := get[*appsv1.Deployment](o.apiServer, "web")
		if ports := d.Spec.Template.Spec.Containers[0].Ports; len(ports) != 1 || ports[0].ContainerPort != 9090 {
			t.Errorf("the proxy has the ports %+v", ports)
		}
		s, _ := get[*corev1.Service](o.apiServer, "mcp-web-proxy")
		if ports := s.Spec.Ports; len(ports) != 1 || ports[0].Port != 9090 {
			t.Errorf("its Service has the ports %+v", ports)
		}
	})
}
