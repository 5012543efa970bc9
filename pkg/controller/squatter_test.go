// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

// squat puts an object of a client who may delete and create ConfigMaps under a name, with the marks of the one that was there.
func (o *operating) squat(name, uid string) {
	config, there := get[*corev1.ConfigMap](o.apiServer, name)
	theirs := config.DeepCopy()
	theirs.UID, theirs.ManagedFields, theirs.Immutable = types.UID(uid), nil, nil
	theirs.Data = map[string]string{runconfig.AuthzKey: "{}"}
	if there {
		remove[*corev1.ConfigMap](o.apiServer, name)
	}
	o.add(theirs)
	o.rest()
}

// rollOut has the pod of the proxy be one of the present template, and ready.
func (o *operating) rollOut(name string) {
	deployment, _ := get[*appsv1.Deployment](o.apiServer, name)
	change(o.apiServer, name+"-5d8f9-x2x4z", func(pod *corev1.Pod) { pod.Spec.Volumes = deployment.Spec.Template.Spec.Volumes })
	proxyReady(o.apiServer, name)
	o.rest()
}

// A ConfigMap that another client has put in the place of one of ours is read by no further pod, and not touched: the proxy is replaced by one that
// reads the same policy under another name, and until then the MCPServer has failed. Whatever becomes of the object afterwards replaces no
// proxy. Who repeats it has one proxy replaced at once, and further ones after waits that grow.
func TestAPolicyThatAnotherClientReplacesIsReadUnderAnotherName(t *testing.T) {
	operate(t, []runtime.Object{guarded("web", permitAll)}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.rollOut("web")
		name, policy := o.configNamed("web-authz-inline"), o.read("web")
		o.took()
		o.squat(name, "theirs")
		if got := o.read("web"); got != policy {
			t.Errorf("the next pod reads %s", got)
		}
		status, reason, message := o.condition("web", v1beta1.ConditionFieldsOwned)
		if status != metav1.ConditionFalse || reason != v1beta1.ReasonObjectNotOurs || !strings.Contains(message, "kubectl delete configmap -n shop "+name) {
			t.Errorf("FieldsOwned is %s because of %s: %s", status, reason, message)
		}
		if server := o.server("web"); server.Status.Phase != v1beta1.PhaseFailed {
			t.Errorf("its pod may have read another policy, and it is %s: %s", server.Status.Phase, server.Status.Message)
		}
		o.annotate("web", v1beta1.AnnotationTake, "configmap/"+name+":.data")
		o.rollOut("web")
		if status, _, message := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue || o.server("web").Status.Phase != v1beta1.PhaseReady {
			t.Errorf("its pods read its policy, and FieldsOwned is %s: %s", status, message)
		}
		if theirs, _ := get[*corev1.ConfigMap](o.apiServer, name); theirs.UID != "theirs" || !cmp.Equal(theirs.Data, map[string]string{runconfig.AuthzKey: "{}"}) {
			t.Errorf("theirs is %s with %v", theirs.UID, theirs.Data)
		}
		toChildren := func() []string {
			return slices.DeleteFunc(o.took(), func(w string) bool { return strings.HasPrefix(w, "apply MCPServer/") })
		}
		toChildren()
		remove[*corev1.ConfigMap](o.apiServer, name)
		o.rest()
		<-time.After(time.Hour)
		if got := toChildren(); len(got) > 0 {
			t.Errorf("the object in the way is gone, and there are the writes %v", got)
		}

		second := o.policyInTemplate("web")
		rolled := 0
		for round := range 20 {
			o.squat(second, "again-"+string(rune('a'+round)))
			<-time.After(30 * time.Second)
			if now := o.policyInTemplate("web"); now != second {
				second = now
				rolled++
			}
		}
		if rolled < 2 || rolled > 5 {
			t.Errorf("in ten minutes the proxy was replaced %d times", rolled)
		}
		if status, reason, _ := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionFalse || reason != v1beta1.ReasonObjectNotOurs {
			t.Errorf("FieldsOwned is %s because of %s", status, reason)
		}
	})
}

// However many names of a policy a client has taken, one after the other, the next pod reads the policy.
func TestAClientThatTakesNamesForHoursKeepsNone(t *testing.T) {
	operate(t, []runtime.Object{guarded("web", permitAll)}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.rollOut("web")
		policy := o.read("web")
		for round := range 12 {
			o.squat(o.policyInTemplate("web"), "theirs-"+string(rune('a'+round)))
			<-time.After(11 * time.Minute)
			o.rollOut("web")
			if got := o.read("web"); got != policy {
				t.Fatalf("after %d names were taken the next pod reads %s", round+1, got)
			}
		}
	})
}

// A client that knows the next policy cannot have another one read by making its ConfigMap beforehand. The ConfigMap stays, with Freehold's marks
// as well, and the proxy reads the policy under another name.
func TestANameThatIsTakenBeforehandIsAvoided(t *testing.T) {
	operate(t, []runtime.Object{guarded("web", permitAll)}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		before, _ := get[*corev1.ConfigMap](o.apiServer, o.configNamed("web-authz-inline"))
		text, err := runconfig.InlineDocument([]string{forbidAll}, runconfig.NoEntities)
		if err != nil {
			t.Fatal(err)
		}
		theirs := before.DeepCopy()
		theirs.Name, theirs.UID, theirs.ManagedFields = inventory.InlineAuthz.ContentName("web", map[string]string{runconfig.AuthzKey: text}), "theirs", nil
		o.add(theirs)
		o.rest()
		change(o.apiServer, "web", withPolicies(forbidAll))
		o.rest()
		if got := o.read("web"); !strings.Contains(got, text) {
			t.Errorf("the proxy reads %s", got)
		}
		if !exists[*corev1.ConfigMap](o.apiServer, theirs.Name) || o.policyInTemplate("web") == theirs.Name {
			t.Errorf("theirs is there: %t, and the proxy names %s", exists[*corev1.ConfigMap](o.apiServer, theirs.Name), o.policyInTemplate("web"))
		}
	})
}

// policyInTemplate returns the ConfigMap with the inline policy that the proxy's template names.
func (o *operating) policyInTemplate(name string) string {
	o.t.Helper()
	deployment, _ := get[*appsv1.Deployment](o.apiServer, name)
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		if volume.ConfigMap != nil && strings.HasPrefix(volume.ConfigMap.Name, name+"-authz-inline-") {
			return volume.ConfigMap.Name
		}
	}
	o.t.Fatalf("the template of %s names no policy", name)
	return ""
}

// A ConfigMap of another client's that a pod of the proxy reads, and that bears none of Freehold's labels, is reported, also by an operator
// that begins after it was made.
func TestAConfigMapThatPodsReadIsReportedThoughNoInformerShowsIt(t *testing.T) {
	const theirs, gone = "web-runconfig-0123456789abcdef", "web-runconfig-fedcba9876543210"
	operate(t, []runtime.Object{newServer("web"), configMap(theirs, "theirs")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		pod := proxyPod("web", maps.Clone(render.ProxySelector("web")))
		for _, name := range []string{theirs, gone} {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
			}})
		}
		o.addProxyPod("web", pod)
		o.restart(nil)
		o.rest()
		status, reason, message := o.condition("web", v1beta1.ConditionFieldsOwned)
		if status != metav1.ConditionFalse || reason != v1beta1.ReasonObjectNotOurs || !strings.Contains(message, theirs) {
			t.Errorf("FieldsOwned is %s because of %s: %s", status, reason, message)
		}
		o.reads()
		o.queue.Add(key("web"))
		<-time.After(time.Hour)
		o.rest()
		if reads := o.reads(); len(reads) > 16 {
			t.Errorf("%d reads in an hour: %v", len(reads), reads)
		}
		remove[*corev1.ConfigMap](o.apiServer, theirs)
		<-time.After(apply.LongestWait)
		o.rest()
		if status, reason, message := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue {
			t.Errorf("FieldsOwned is %s because of %s after it has gone: %s", status, reason, message)
		}
	})
}
