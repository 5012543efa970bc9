// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// What another manager has given an alternative, such as a variable another source, is a conflict about the whole, which either command
// in the message ends. The API server would refuse what Freehold sends as invalid.
func TestAnotherAlternativeIsAConflictAboutTheWhole(t *testing.T) {
	variable := func(pod *corev1.PodSpec, name string) *corev1.EnvVar {
		env := pod.Containers[0].Env
		return &env[slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == name })]
	}
	configMap := &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "site"}, Key: "region"},
	}
	backend, proxy := inventory.Backend.Ref("shop", "web").String(), inventory.Proxy.Ref("shop", "web").String()
	for name, test := range map[string]struct {
		object, whole, contested, writer string
		// edit gives it the alternative, and isOurs reports whether it has that of the MCPServer alone.
		edit   func(pod *corev1.PodSpec)
		isOurs func(pod *corev1.PodSpec) bool
		// takeOnly is set where it cannot be left to others.
		takeOnly bool
	}{
		"a value": {
			object: backend, writer: "freehold-backend",
			whole: `.spec.template.spec.containers[name="mcp"].env[name="REGION"]`, contested: ".valueFrom.configMapKeyRef",
			edit: func(pod *corev1.PodSpec) {
				*variable(pod, "REGION") = corev1.EnvVar{Name: "REGION", ValueFrom: configMap}
			},
			isOurs: func(pod *corev1.PodSpec) bool {
				v := variable(pod, "REGION")
				return v.Value == "eu" && v.ValueFrom == nil
			},
		},
		"a source": {
			object: backend, writer: "freehold-backend",
			whole: `.spec.template.spec.containers[name="mcp"].env[name="KEY"]`, contested: ".valueFrom.configMapKeyRef",

			edit: func(pod *corev1.PodSpec) { variable(pod, "KEY").ValueFrom = configMap },
			isOurs: func(pod *corev1.PodSpec) bool {
				from := variable(pod, "KEY").ValueFrom
				return from.SecretKeyRef != nil && from.ConfigMapKeyRef == nil
			},
		},
		"a probe": {
			object: proxy, writer: "freehold-proxy",
			whole: `.spec.template.spec.containers[name="toolhive"].livenessProbe`, contested: ".tcpSocket.port",
			edit: func(pod *corev1.PodSpec) {
				pod.Containers[0].LivenessProbe.ProbeHandler = corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}
			},
			isOurs: func(pod *corev1.PodSpec) bool {
				probe := pod.Containers[0].LivenessProbe
				return probe.HTTPGet != nil && probe.TCPSocket == nil
			},
		},
		"a port": {
			object: proxy, writer: "freehold-proxy", takeOnly: true,
			whole: `.spec.template.spec.containers[name="toolhive"].ports[containerPort=8081,protocol="TCP"]`,
			edit:  func(pod *corev1.PodSpec) { pod.Containers[0].Ports[0].ContainerPort = 8081 },
			isOurs: func(pod *corev1.PodSpec) bool {
				ports := pod.Containers[0].Ports
				return len(ports) == 1 && ports[0].ContainerPort == 8080
			},
		},
	} {
		for annotation, take := range map[string]bool{v1beta1.AnnotationTake: true, v1beta1.AnnotationYield: false} {
			if test.takeOnly && !take {
				continue
			}
			t.Run(name+" "+annotation, func(t *testing.T) {
				server := newServer("web")
				server.Spec.Env = []v1beta1.EnvVar{{Name: "REGION", Value: "eu"}}
				server.Spec.Secrets = []v1beta1.SecretRef{{Name: "keys", Key: "key", TargetEnvName: "KEY"}}
				operate(t, []runtime.Object{server}, nil, func(t *testing.T, o *operating) {
					o.becomeReady("web")
					if test.object == backend {
						changeAs(o.apiServer, "", "kubectl-edit", "web", func(set *appsv1.StatefulSet) { test.edit(&set.Spec.Template.Spec) })
					} else {
						changeAs(o.apiServer, "", "kubectl-edit", "web", func(d *appsv1.Deployment) { test.edit(&d.Spec.Template.Spec) })
					}
					o.took()
					o.rest()
					if got := o.toChildren(); len(got) != 0 {
						t.Errorf("requests %q to what another manager has given an alternative", got)
					}
					o.expectCondition("after the edit", v1beta1.ConditionFieldsOwned, metav1.ConditionFalse, v1beta1.ReasonFieldManagerConflict)
					_, _, message := o.condition("web", v1beta1.ConditionFieldsOwned)
					request := test.object + ":" + test.whole
					for _, part := range []string{
						`field manager "kubectl-edit" owns ` + test.whole + test.contested + " of", test.writer + " removes it.", "'" + annotation + "=" + request + "'",
					} {
						if !strings.Contains(message, part) {
							t.Errorf("FieldsOwned says %s, without %s", message, part)
						}
					}
					o.annotate("web", annotation, request)
					o.rest()
					o.expectCondition("once it is settled", v1beta1.ConditionFieldsOwned, metav1.ConditionTrue, v1beta1.ReasonNoConflict)
					conditionType, reason := v1beta1.ConditionFieldsYielded, v1beta1.ReasonYielded
					if take {
						conditionType, reason = v1beta1.ConditionFieldsTaken, v1beta1.ReasonTaken
					}
					o.expectCondition("once it is settled", conditionType, metav1.ConditionTrue, reason)
					var pod *corev1.PodSpec
					if set, _ := get[*appsv1.StatefulSet](o.apiServer, "web"); test.object == backend {
						pod = &set.Spec.Template.Spec
					} else {
						d, _ := get[*appsv1.Deployment](o.apiServer, "web")
						pod = &d.Spec.Template.Spec
					}
					if got := test.isOurs(pod); got != take {
						t.Errorf("the MCPServer has its way: %t; the pods are to be %+v", got, pod)
					}
				})
			})
		}
	}
}
