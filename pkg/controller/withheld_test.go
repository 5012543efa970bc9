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
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// A conflict about a label keeps the whole apply of a workload from being made. What is reported of its pods at a new generation is not
// what was true of the last one; neither is it at once when the conflict ends.
func TestAConflictBesideTheTemplateWithholdsIt(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		expect := func(condition string, want metav1.ConditionStatus, when string) {
			t.Helper()
			if status, reason, message := o.condition("web", condition); status != want {
				t.Errorf("%s: %s is %s because of %s: %s", when, condition, status, reason, message)
			}
		}
		o.becomeReady("web")
		change(o.apiServer, "web", func(set *appsv1.StatefulSet) { set.Labels["app"] = "theirs" })
		o.rest()
		expect(v1beta1.ConditionFieldsOwned, metav1.ConditionFalse, "a label was taken")
		expect(v1beta1.ConditionRolledOut, metav1.ConditionTrue, "a label was taken")

		change(o.apiServer, "web", func(server *v1beta1.MCPServer) {
			server.Generation++
			server.Spec.Image = "example.com/other:2"
		})
		o.rest()
		proxyReady(o.apiServer, "web") // Its template names the generation.
		o.rest()
		expect(v1beta1.ConditionRolledOut, metav1.ConditionFalse, "another image")
		o.queue.Add(key("web"))
		o.rest()
		expect(v1beta1.ConditionRolledOut, metav1.ConditionFalse, "another image, and another pass")

		change(o.apiServer, "web", func(server *v1beta1.MCPServer) {
			metav1.SetMetaDataAnnotation(&server.ObjectMeta, v1beta1.AnnotationTake, "statefulset.apps/web:.metadata.labels")
		})
		o.rest()
		expect(v1beta1.ConditionFieldsOwned, metav1.ConditionTrue, "the label is taken back")
		expect(v1beta1.ConditionReady, metav1.ConditionFalse, "the StatefulSet's controller has not seen the image")
		change(o.apiServer, "web", func(set *appsv1.StatefulSet) { set.Status.ObservedGeneration = set.Generation })
		o.rest()
		expect(v1beta1.ConditionReady, metav1.ConditionTrue, "the StatefulSet's controller says that the pods are of it")
	})
}

// expectContested is expectContestedChild for a workload, which has the name of its MCPServer.
func (o *operating) expectContested(name string, want bool, when string) {
	o.t.Helper()
	o.expectContestedChild(name, name, want, when)
}

// expectContestedChild compares what the condition of an MCPServer and the metric say of whether other managers own fields of a child.
func (o *operating) expectContestedChild(name, child string, want bool, when string) {
	o.t.Helper()
	status, reason, message := o.condition(name, v1beta1.ConditionFieldsOwned)
	if contested := status == metav1.ConditionFalse; contested != want {
		o.t.Errorf("%s: FieldsOwned of %s is %s because of %s: %s", when, name, status, reason, message)
	}
	if counted := slices.ContainsFunc(o.Conflicts(), func(c *apply.ConflictError) bool { return c.Object.Name == child }); counted != want {
		o.t.Errorf("%s: a conflict of %s is counted: %t", when, child, counted)
	}
}

// seizeLabel has another manager own a label of a proxy's Deployment. It returns what gives the value back.
func (o *operating) seizeLabel(name string) (giveBack func()) {
	var ours string
	set := func(value string) {
		changeAs(o.apiServer, "", "helm", name, func(d *appsv1.Deployment) { ours, d.Labels["app"] = d.Labels["app"], value })
		o.rest()
	}
	set("theirs")
	return func() { set(ours) }
}

// A conflict stands, and is reported, while its writer makes no attempt because the proxy waits for a usable reference. It is forgotten
// when it may have ended.
func TestAConflictStandsWhileItsProxyIsHeld(t *testing.T) {
	operate(t, []runtime.Object{authenticated("web"), issuer("https://idp.example.com")}, nil, func(_ *testing.T, o *operating) {
		o.becomeReady("web")
		giveBack := o.seizeLabel("web")
		o.expectContested("web", true, "a label was taken")
		remove[*v1beta1.MCPOIDCConfig](o.apiServer, "corp")
		o.rest()
		o.expectContested("web", true, "the issuer is gone")
		for range 3 {
			o.queue.Add(key("web"))
			o.rest()
			o.expectContested("web", true, "the issuer is gone, and another pass")
		}
		giveBack()
		o.expectContested("web", false, "the label has the wanted value")
		o.add(issuer("https://idp.example.com"))
		o.rest()
		o.expectContested("web", false, "the issuer is back")
	})
}

// Neither is a conflict forgotten about an object that the proxy reads, and that is not written while the proxy is held.
func TestAConflictAboutAConfigMapStandsWhileItsProxyIsHeld(t *testing.T) {
	server := authenticated("web")
	withPolicies(permitAll)(server)
	operate(t, []runtime.Object{server, issuer("https://idp.example.com")}, nil, func(_ *testing.T, o *operating) {
		o.becomeReady("web")
		var ours string
		policies := o.configNamed("web-authz-inline")
		label := func(value string) {
			changeAs(o.apiServer, "", "helm", policies, func(c *corev1.ConfigMap) { ours, c.Labels["app"] = c.Labels["app"], value })
			o.rest()
		}
		label("theirs")
		o.expectContestedChild("web", policies, true, "a label was taken")
		remove[*v1beta1.MCPOIDCConfig](o.apiServer, "corp")
		o.rest()
		o.expectContestedChild("web", policies, true, "the issuer is gone")
		for range 3 {
			o.queue.Add(key("web"))
			o.rest()
			o.expectContestedChild("web", policies, true, "the issuer is gone, and another pass")
		}
		label(ours)
		o.expectContestedChild("web", policies, false, "the label has the wanted value")
		o.add(issuer("https://idp.example.com"))
		o.rest()
		o.expectContestedChild("web", policies, false, "the issuer is back")
	})
}

// An operator that starts while the proxy is held makes no attempt that could find the conflict, and has nothing new to report.
func TestAConflictFromBeforeARestartIsNoNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, authenticated("web"), issuer("https://idp.example.com"))
		o := start(t, s, nil)
		o.rest()
		o.becomeReady("web")
		giveBack := o.seizeLabel("web")
		remove[*v1beta1.MCPOIDCConfig](o.apiServer, "corp")
		o.rest()
		o.end()

		o = start(t, s, nil)
		defer o.end()
		o.took()
		o.rest()
		o.expect(nil, "after a restart")
		o.queue.Add(key("web"))
		o.rest()
		o.expect(nil, "after another pass")
		o.add(issuer("https://idp.example.com"))
		o.rest()
		o.expectContested("web", true, "the issuer is back")
		giveBack()
		o.rest()
		o.expectContested("web", false, "the label has the wanted value")
	})
}

// A conflict that is over is reported no more, although this operator cannot know whether there are others: what it writes is forbidden.
func TestAConflictEndsBesideWhatIsUnknown(t *testing.T) {
	operate(t, []runtime.Object{authenticated("web"), issuer("https://idp.example.com")}, nil, func(_ *testing.T, o *operating) {
		o.becomeReady("web")
		giveBack := o.seizeBackendLabel()
		o.before.set(func(w write) error {
			if w.kind == managers.Deployment.Kind {
				return forbidden("deployments")
			}
			return nil
		})
		change(o.apiServer, "corp", func(c *v1beta1.MCPOIDCConfig) { c.Generation, c.Spec.Inline.Issuer = 2, "https://new.example.com" })
		o.rest()
		o.expectContested("web", true, "a label was taken")
		giveBack()
		o.expectContested("web", false, "the label has the wanted value")
	})
}

// seizeBackendLabel has another manager take a label of the StatefulSet. The function that it returns gives it the wanted value.
func (o *operating) seizeBackendLabel() (giveBack func()) {
	var ours string
	label := func(value string) {
		changeAs(o.apiServer, "", "helm", "web", func(w *appsv1.StatefulSet) { ours, w.Labels["app"] = w.Labels["app"], value })
		o.rest()
	}
	label("theirs")
	return func() { label(ours) }
}

// An operator that starts while the proxy is held does not know which conflicts the status reports. It takes none for ended before it
// has tried the proxy.
func TestConflictsFromBeforeARestartAreNotTakenForEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, authenticated("web"), issuer("https://idp.example.com"))
		o := start(t, s, nil)
		o.rest()
		o.becomeReady("web")
		giveBackendBack := o.seizeBackendLabel()
		giveBack := o.seizeLabel("web")
		remove[*v1beta1.MCPOIDCConfig](o.apiServer, "corp")
		o.rest()
		if _, _, message := o.condition("web", v1beta1.ConditionFieldsOwned); !strings.HasSuffix(message, " (+1 more)") {
			t.Fatalf("FieldsOwned does not count two conflicts: %s", message)
		}
		o.end()

		o = start(t, s, nil)
		defer o.end()
		o.rest()
		o.expectContested("web", true, "after a restart")
		giveBackendBack()
		if owned, _, _ := o.condition("web", v1beta1.ConditionFieldsOwned); owned != metav1.ConditionFalse {
			t.Errorf("FieldsOwned is %s while it is not known whether the other conflict stands", owned)
		}
		o.add(issuer("https://idp.example.com"))
		o.rest()
		o.expectContested("web", true, "the issuer is back, and the label of the proxy is not")
		giveBack()
		o.expectContested("web", false, "the label has the wanted value")
	})
}

// What goes on while the proxy waits for its turn to be replaced is no different.
func TestAConflictStandsWhileItsProxyWaitsForItsTurn(t *testing.T) {
	threeOfOneIssuer(t, func(t *testing.T, o *operating, names []string) {
		giveBack := o.seizeLabel("b")
		o.expectContested("b", true, "a label was taken")
		o.changeIssuer(2, "https://new.example.com")
		o.expectContested("b", true, "another proxy is replaced, and an attempt was in vain")
		o.changeIssuer(3, "https://newer.example.com")
		if waiting := o.waitingForTurn(names...); len(waiting) != 2 || !slices.Contains(waiting, "b") {
			t.Fatalf("%v wait", waiting)
		}
		o.expectContested("b", true, "another proxy is replaced, and this one is to be another")
		giveBack()
		if waiting := o.waitingForTurn("b"); len(waiting) == 0 {
			t.Error("b waits no more")
		}
		o.expectContested("b", false, "the label has the wanted value")
	})
}

// Neither is a conflict about an object that must not move away from a proxy that is not replaced. All such conflicts are reported.
func TestAConflictBehindAnotherIsReported(t *testing.T) {
	operate(t, []runtime.Object{authenticated("web"), issuer("https://idp.example.com")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.seizeLabel("web")
		seize(t, o, "evil")
		o.rest()
		remove[*v1beta1.MCPOIDCConfig](o.apiServer, "corp")
		change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Generation++; s.Spec.MCPPort = 9999 })
		o.rest()
		var contested []string
		for _, conflict := range o.Conflicts() {
			contested = append(contested, conflict.Object.Kind.Kind)
		}
		slices.Sort(contested)
		if want := []string{managers.Deployment.Kind, managers.StatefulSet.Kind}; !slices.Equal(contested, want) {
			t.Errorf("conflicts about %v, want %v", contested, want)
		}
		if _, _, message := o.condition("web", v1beta1.ConditionFieldsOwned); !strings.Contains(message, "(+1 more)") {
			t.Errorf("the condition does not report both: %s", message)
		}
	})
}

// A conflict about the number of replicas ends with the workload, although the workload cannot be created again yet.
func TestConflictAboutReplicasEndsWithTheWorkload(t *testing.T) {
	server := newServer("web")
	server.Spec.Replicas = new(int32(1))
	operate(t, []runtime.Object{server}, nil, func(_ *testing.T, o *operating) {
		o.becomeReady("web")
		workloads["proxy"].scale(o.apiServer, 3)
		o.rest()
		o.expectContested("web", true, "it was scaled")
		o.backend(0)
		o.expectContested("web", true, "the backend is not ready")
		remove[*appsv1.Deployment](o.apiServer, "web")
		o.rest()
		o.expectContested("web", false, "the Deployment is gone")
	})
}

// Freehold does not write what belongs to another owner, so no field of it is contested.
func TestConflictEndsWhereTheObjectIsForeign(t *testing.T) {
	server := newServer("web")
	server.Spec.Replicas = new(int32(1))
	operate(t, []runtime.Object{server}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.seizeLabel("web")
		workloads["proxy"].scale(o.apiServer, 3)
		o.rest()
		if found := len(o.Conflicts()); found != 2 {
			t.Fatalf("%d conflicts are counted, want 2", found)
		}
		change(o.apiServer, "web", func(d *appsv1.Deployment) {
			d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "other", UID: "other", Controller: new(true)}}
		})
		o.rest()
		if status, reason, message := o.condition("web", v1beta1.ConditionFieldsOwned); reason != v1beta1.ReasonObjectNotOurs {
			t.Errorf("FieldsOwned is %s because of %s: %s", status, reason, message)
		}
		if found := o.Conflicts(); len(found) > 0 {
			t.Errorf("conflicts about an object of another owner are counted: %v", found)
		}
	})
}

// A conflict of an object that waits for what it depends on is one conflict.
func TestAConflictBehindARefusalIsOneConflict(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.seizeLabel("web")
		o.before.set(func(w write) error {
			if w.kind == managers.ConfigMap.Kind {
				return forbidden("configmaps")
			}
			return nil
		})
		change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Generation++; s.Spec.Image = "example.com/another" })
		o.rest()
		if status, reason, message := o.condition("web", v1beta1.ConditionApplied); status != metav1.ConditionFalse {
			t.Fatalf("Applied is %s because of %s: %s", status, reason, message)
		}
		o.expectContested("web", true, "what the proxy depends on is refused")
		if _, _, message := o.condition("web", v1beta1.ConditionFieldsOwned); strings.Contains(message, "more)") {
			t.Errorf("the conflict counts more than once: %s", message)
		}
	})
}

// While a reference cannot be used, the spec is invalid, or a new proxy would wait for its backend, no write finds a proxy that has lost its
// label. The operator looks for it, and so does one that starts then.
func TestAProxyThatIsNotWrittenAndHasNoLabelIsFound(t *testing.T) {
	unwritten := map[string]struct {
		begin func(o *operating)
		says  string
		// writes are made when the proxy is found.
		writes []string
	}{
		"a reference that is gone": {
			func(o *operating) { remove[*v1beta1.MCPOIDCConfig](o.apiServer, "corp") }, "The proxy keeps the configuration that it has", nil,
		},
		"a backend that is not ready any more": {
			func(o *operating) {
				o.backend(0)
				<-time.After(time.Hour)
			}, "MCP server is running", []string{"apply Deployment/web freehold-proxy"},
		},
		"an invalid spec": {func(o *operating) { change(o.apiServer, "web", func(s *v1beta1.MCPServer) { s.Spec.Image = "" }) }, "spec.image", nil},
	}
	for name, test := range unwritten {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{authenticated("web"), issuer("https://idp.example.com")}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				test.begin(o)
				o.rest()
				before := o.server("web").Status
				if !strings.Contains(before.Message, test.says) || before.ReadyReplicas != 1 {
					t.Errorf("the status is %+v", before)
				}
				expectSame := func(when string, writes []string, reads bool) {
					t.Helper()
					<-time.After(time.Hour)
					o.rest()
					o.expect(writes, when)
					gets := slices.DeleteFunc(o.reads(), func(read string) bool { return !strings.HasPrefix(read, "get ") })
					if len(gets) > 0 != reads || len(gets) > 16 {
						t.Errorf("%s: reads in an hour: %v", when, gets)
					}
					if diff := cmp.Diff(before, o.server("web").Status); diff != "" {
						t.Errorf("%s: the status is another (-before +after):\n%s", when, diff)
					}
				}
				o.took()
				change(o.apiServer, "web", func(proxy *appsv1.Deployment) { proxy.Labels = nil })
				expectSame("the label is gone", test.writes, true)
				o.restart(nil)
				expectSame("another operator has started", nil, test.writes == nil)
			})
		})
	}
}
