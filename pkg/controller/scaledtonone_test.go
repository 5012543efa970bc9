// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// scaleThrough scales a tier through the subresource.
func (o *operating) scaleThrough(tier string, number int32) {
	o.t.Helper()
	if tier == "proxy" {
		changeAs(o.apiServer, "scale", "kubectl", "web", func(d *appsv1.Deployment) { d.Spec.Replicas = &number })
		return
	}
	changeAs(o.apiServer, "scale", "kubectl", "web", func(set *appsv1.StatefulSet) { set.Spec.Replicas = &number })
}

// forEachTier runs a test for each tier of a ready MCPServer that asks for one pod there, with either kind of transport.
func forEachTier(t *testing.T, test func(t *testing.T, o *operating, tier string, w scaledTier)) {
	t.Helper()
	for tier, w := range workloads {
		for _, transport := range []v1beta1.Transport{v1beta1.TransportStreamableHTTP, v1beta1.TransportStdio} {
			t.Run(fmt.Sprintf("%s %s", tier, transport), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := newServer("web")
					server.Spec.Transport = transport
					w.ask(server, new(int32(1)))
					o := start(t, newAPIServer(t, server), nil)
					defer func() { o.end() }()
					o.rest()
					o.becomeReady("web")
					o.took()
					o.events.heard()
					test(t, o, tier, w)
				})
			})
		}
	}
}

// expectDecided fails unless the tier has no pod, which no field manager owns and the MCPServer reports, and nothing was sent to it.
func (o *operating) expectDecided(w scaledTier, why string) {
	o.t.Helper()
	o.expectTier(w, why, 0, nil, nil)
	object := map[string]string{managers.ProxyReplicas: "deployment.apps/web", managers.BackendReplicas: "statefulset.apps/web"}[w.writer]
	status, reason, message := o.condition("web", v1beta1.ConditionFieldsOwned)
	says := fmt.Sprintf("an unknown client has set .spec.replicas of %s; %s wants a different value. Take ownership: kubectl annotate", object, w.writer)
	if status != metav1.ConditionFalse || reason != v1beta1.ReasonFieldManagerConflict || !strings.HasPrefix(message, says) ||
		!strings.Contains(message, "Leave it: kubectl annotate") {
		o.t.Errorf("%s: FieldsOwned is %s because of %s: %s", why, status, reason, message)
	}
	if n := len(o.Conflicts()); n != 1 {
		o.t.Errorf("%s: %d conflicts stand, want one", why, n)
	}
}

// A write of 0 through the subresource scale leaves the number without an owner. It is a decision all the same.
func TestTierThatIsScaledToNoneStaysSo(t *testing.T) {
	forEachTier(t, func(t *testing.T, o *operating, tier string, w scaledTier) {
		t.Helper()
		o.scaleThrough(tier, 0)
		o.expectDecided(w, "scaled to none")
		if told := o.events.heard(); len(told) != 1 || !strings.Contains(told[0], "Warning FieldManagerConflict") {
			t.Errorf("events %q, want one about the conflict", told)
		}
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.Image = "example.com/other:2" })
		o.expectDecided(w, "something else is edited")

		o.end()
		next := start(t, o.apiServer, nil)
		next.rest()
		next.expectDecided(w, "another operator")
		*o = *next
		o.scaleThrough(tier, 1)
		o.expectTier(w, "scaled back", 1, []string{w.writer}, []string{"apply " + w.object + " " + w.writer})
		if status, _, message := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue {
			t.Errorf("FieldsOwned is %s at last: %s", status, message)
		}
	})
}

// An edit of the number in the spec is a decision too, and the later one.
func TestEditOfTheNumberEndsThatATierIsScaledToNone(t *testing.T) {
	forEachTier(t, func(t *testing.T, o *operating, tier string, w scaledTier) {
		t.Helper()
		ask := func(number *int32) {
			change(o.apiServer, "web", func(server *v1beta1.MCPServer) { w.ask(server, number) })
		}
		applied := "apply " + w.object + " " + w.writer
		o.scaleThrough(tier, 0)
		o.expectDecided(w, "scaled to none")
		ask(new(int32(0)))
		o.expectTier(w, "the spec agrees", 0, []string{w.writer}, []string{applied})
		ask(new(int32(1)))
		o.expectTier(w, "the spec says one again", 1, []string{w.writer}, []string{applied})
		o.scaleThrough(tier, 0)
		o.expectDecided(w, "scaled to none again")
		ask(nil)
		o.expectTier(w, "the spec says nothing", 0, nil, []string{applied})
		ask(new(int32(1)))
		o.expectTier(w, "the number was free, and the spec names one", 1, []string{w.writer}, []string{applied})
	})
}

func TestTakeAndYieldSettleThatATierIsScaledToNone(t *testing.T) {
	forEachTier(t, func(t *testing.T, o *operating, tier string, w scaledTier) {
		t.Helper()
		field := map[string]string{managers.ProxyReplicas: "deployment.apps/web", managers.BackendReplicas: "statefulset.apps/web"}[w.writer] + ":.spec.replicas"
		applied := "apply " + w.object + " " + w.writer
		o.scaleThrough(tier, 0)
		o.expectDecided(w, "scaled to none")
		o.annotate("web", v1beta1.AnnotationTake, field)
		o.expectTier(w, "taken", 1, []string{w.writer}, []string{applied})
		if status, _, message := o.condition("web", v1beta1.ConditionFieldsTaken); status != metav1.ConditionTrue || !strings.Contains(message, "from an unknown client") {
			t.Errorf("FieldsTaken is %s: %s", status, message)
		}
		if told := o.events.heard(); !slices.ContainsFunc(told, func(e string) bool {
			return strings.Contains(e, "FieldsTaken") && strings.HasSuffix(e, "from an unknown client")
		}) {
			t.Errorf("events %q, want one about what was taken", told)
		}
		o.scaleThrough(tier, 0)
		o.expectDecided(w, "scaled to none again, after the request was carried out")

		o.annotate("web", v1beta1.AnnotationYield, field)
		o.expectTier(w, "yielded", 0, nil, []string{applied})
		if status, _, message := o.condition("web", v1beta1.ConditionFieldsYielded); status != metav1.ConditionTrue {
			t.Errorf("FieldsYielded is %s: %s", status, message)
		}
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { delete(server.Annotations, v1beta1.AnnotationYield) })
		o.expectTier(w, "yielded no longer", 1, []string{w.writer}, []string{applied})
	})
}

// What an earlier release wrote has no record of the number: it gets one, once, and is guessed at in no way.
func TestNumberWithoutARecordIsRecordedOnce(t *testing.T) {
	forEachTier(t, func(t *testing.T, o *operating, tier string, w scaledTier) {
		t.Helper()
		applied := "apply " + w.object + " " + w.writer
		kind := o.kindOf(&appsv1.Deployment{})
		if tier == "backend" {
			kind = o.kindOf(&appsv1.StatefulSet{})
		}
		forget := func() {
			o.end()
			o.changeAt(kind, "", "somebody", "web", func(workload runtime.Object) {
				delete(access(workload).GetAnnotations(), v1beta1.AnnotationReplicasWritten)
			})
		}
		restart := func() {
			next := start(t, o.apiServer, nil)
			*o = *next
			o.rest()
		}
		forget()
		restart()
		o.expectTier(w, "upgraded", 1, []string{w.writer}, []string{applied})
		o.scaleThrough(tier, 0)
		o.expectDecided(w, "scaled to none after that")
		forget()
		restart()
		o.expectTier(w, "scaled to none before it", 1, []string{w.writer}, []string{applied})
	})
}

// An MCPServer that is to have no pods from the start never has one. It is stopped, and has nothing to wait for.
func TestWorkloadsThatAreToHaveNoPodsAreMadeWithNone(t *testing.T) {
	for name, ask := range map[string]func(spec *v1beta1.MCPServerSpec){
		"both": func(spec *v1beta1.MCPServerSpec) {
			spec.Replicas, spec.BackendReplicas = new(int32(0)), new(int32(0))
		},
		"the backend": func(spec *v1beta1.MCPServerSpec) { spec.BackendReplicas = new(int32(0)) },
		"both, of stdio": func(spec *v1beta1.MCPServerSpec) {
			spec.Replicas, spec.BackendReplicas, spec.Transport = new(int32(0)), new(int32(0)), "stdio"
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer("web")
			ask(&server.Spec)
			operate(t, []runtime.Object{server}, nil, func(t *testing.T, o *operating) {
				statuses := slices.DeleteFunc(o.took(), func(w string) bool { return !strings.HasPrefix(w, "apply MCPServer/web/status") })
				if len(statuses) != 1 {
					t.Errorf("%d writes of the status, want one", len(statuses))
				}
				set, _ := get[*appsv1.StatefulSet](o.apiServer, "web")
				deployment, made := get[*appsv1.Deployment](o.apiServer, "web")
				if !made || set.Generation != 1 || deployment.Generation != 1 {
					t.Errorf("generations %d and %d, want 1: the number was written when they were made", set.Generation, deployment.Generation)
				}
				o.expectTier(workloads["backend"], "at last", 0, []string{managers.BackendReplicas}, nil)
				if server.Spec.Replicas != nil {
					o.expectTier(workloads["proxy"], "at last", 0, []string{managers.ProxyReplicas}, nil)
				}
				if got := o.server("web").Status; got.Phase != v1beta1.PhaseStopped || got.URL != "" {
					t.Errorf("phase %s, URL %q", got.Phase, got.URL)
				}
				for _, conditionType := range []string{v1beta1.ConditionReconciling, v1beta1.ConditionStalled} {
					if status, reason, message := o.condition("web", conditionType); status != metav1.ConditionFalse {
						t.Errorf("%s=%s %s: %s", conditionType, status, reason, message)
					}
				}
			})
		})
	}
}
