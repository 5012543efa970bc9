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

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// A variable that another manager has given another source is a conflict about the whole variable, which either command in the message
// ends. The API server would refuse what Freehold sends as invalid.
func TestVariableWithAnotherSource(t *testing.T) {
	const name = "statefulset.apps/web:" + `.spec.template.spec.containers[name="mcp"].env[name="REGION"]`
	variable := func(set *appsv1.StatefulSet) *corev1.EnvVar {
		env := set.Spec.Template.Spec.Containers[0].Env
		return &env[slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == "REGION" })]
	}
	for annotation, ours := range map[string]bool{v1beta1.AnnotationTake: true, v1beta1.AnnotationYield: false} {
		t.Run(annotation, func(t *testing.T) {
			server := newServer("web")
			server.Spec.Env = []v1beta1.EnvVar{{Name: "REGION", Value: "eu"}}
			operate(t, []runtime.Object{server}, nil, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				changeAs(o.apiServer, "", "kubectl-edit", "web", func(set *appsv1.StatefulSet) {
					*variable(set) = corev1.EnvVar{Name: "REGION", ValueFrom: &corev1.EnvVarSource{
						ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "site"}, Key: "region"},
					}}
				})
				o.took()
				o.rest()
				if got := o.toChildren(); len(got) != 0 {
					t.Errorf("requests %q to a variable that another manager has given another source", got)
				}
				o.expectCondition("after the edit", v1beta1.ConditionFieldsOwned, metav1.ConditionFalse, v1beta1.ReasonFieldManagerConflict)
				_, _, message := o.condition("web", v1beta1.ConditionFieldsOwned)
				for _, part := range []string{
					`field manager "kubectl-edit" owns .spec.template.spec.containers[name="mcp"].env[name="REGION"].valueFrom.configMapKeyRef of`,
					"freehold-backend removes it.", "'" + annotation + "=" + name + "'",
				} {
					if !strings.Contains(message, part) {
						t.Errorf("FieldsOwned says %s, without %s", message, part)
					}
				}
				o.annotate("web", annotation, name)
				o.rest()
				o.expectCondition("once it is settled", v1beta1.ConditionFieldsOwned, metav1.ConditionTrue, v1beta1.ReasonNoConflict)
				conditionType := map[bool]string{true: v1beta1.ConditionFieldsTaken, false: v1beta1.ConditionFieldsYielded}[ours]
				reason := map[bool]string{true: v1beta1.ReasonTaken, false: v1beta1.ReasonYielded}[ours]
				o.expectCondition("once it is settled", conditionType, metav1.ConditionTrue, reason)
				set, _ := get[*appsv1.StatefulSet](o.apiServer, "web")
				if now := variable(set); ours != (now.Value == "eu" && now.ValueFrom == nil) || !ours && (now.Value != "" || now.ValueFrom == nil) {
					t.Errorf("the variable is %+v", now)
				}
			})
		})
	}
}
