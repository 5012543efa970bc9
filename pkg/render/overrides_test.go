// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// These are the cases of toolhive#5149: whatever the user adds to the proxy's objects, the keys by which it is rolled
// and selected stay ours, the user's other keys are there, and what is meant for the Deployment does not show on its
// pods.
func TestPodTemplateOverridesLeaveOurKeys(t *testing.T) {
	ours := ProxySelector("fetch")
	type metadata = v1beta1.ResourceMetadataOverrides
	for name, c := range map[string]struct {
		deployment metadata
		template   *metadata
		// wanted beside our own keys
		deploymentLabels, deploymentAnnotations, podLabels, podAnnotations map[string]string
	}{
		"none": {},
		"deployment only": {
			deployment:            metadata{Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"}},
			deploymentLabels:      map[string]string{"l": "1"},
			deploymentAnnotations: map[string]string{"a": "1"},
		},
		"template only": {
			template:       &metadata{Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"}},
			podLabels:      map[string]string{"l": "1"},
			podAnnotations: map[string]string{"a": "1"},
		},
		"both": {
			deployment:            metadata{Annotations: map[string]string{"a": "1", "b": "1"}},
			template:              &metadata{Annotations: map[string]string{"a": "2"}},
			deploymentAnnotations: map[string]string{"a": "1", "b": "1"},
			podAnnotations:        map[string]string{"a": "2"},
		},
		"our own keys": {
			deployment: metadata{
				Labels:      map[string]string{"app": "evil", "toolhive-name": "evil", "l": "1"},
				Annotations: map[string]string{v1beta1.AnnotationRunConfigChecksum: "evil"},
			},
			template: &metadata{
				Labels:      map[string]string{"app": "evil", "app.kubernetes.io/instance": "evil", "l": "2"},
				Annotations: map[string]string{v1beta1.AnnotationRunConfigChecksum: "evil", v1beta1.AnnotationRestartedAt: "evil", "a": "2"},
			},
			deploymentLabels: map[string]string{"l": "1"},
			// On the Deployment this key is nobody's but the user's.
			deploymentAnnotations: map[string]string{v1beta1.AnnotationRunConfigChecksum: "evil"},
			podLabels:             map[string]string{"l": "2"},
			podAnnotations:        map[string]string{"a": "2"},
		},
		"who manages it": {
			deployment:       metadata{Labels: map[string]string{v1beta1.LabelAppManagedBy: "somebody"}},
			deploymentLabels: map[string]string{v1beta1.LabelAppManagedBy: "somebody"},
		},
		"empty": {template: &metadata{Labels: map[string]string{}, Annotations: map[string]string{}}},
	} {
		t.Run(name, func(t *testing.T) {
			result := renderServer(t, func(s *v1beta1.MCPServer) {
				s.Annotations = map[string]string{v1beta1.AnnotationRestartedAt: "2026-01-02T03:04:05Z"}
				s.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
					ResourceMetadataOverrides: c.deployment, PodTemplateMetadataOverrides: c.template,
				}}
			})
			checksum := configOf[*corev1ac.ConfigMapApplyConfiguration](t, result).Annotations[v1beta1.AnnotationContentChecksum]
			if len(checksum) != 64 {
				t.Fatalf("checksum is %q", checksum)
			}
			ourPod := map[string]string{
				v1beta1.AnnotationRunConfigChecksum: checksum, v1beta1.AnnotationRestartedAt: "2026-01-02T03:04:05Z",
			}
			deployment := deploymentOf(t, result)
			for what, pair := range map[string][2]map[string]string{
				"Deployment labels":      {withOperatorKeys(withOperatorKeys(managed, c.deploymentLabels), ours), deployment.Labels},
				"Deployment annotations": {c.deploymentAnnotations, deployment.Annotations},
				"pod labels":             {withOperatorKeys(c.podLabels, ours), deployment.Spec.Template.Labels},
				"pod annotations":        {withOperatorKeys(c.podAnnotations, ourPod), deployment.Spec.Template.Annotations},
				"selector":               {ours, deployment.Spec.Selector.MatchLabels},
			} {
				if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
		})
	}
}

// The same for the proxy's Service.
func TestServiceOverridesLeaveOurKeys(t *testing.T) {
	result := renderServer(t, withTransport("stdio"), func(s *v1beta1.MCPServer) {
		s.Spec.SessionAffinity = "None"
		s.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyService: &v1beta1.ResourceMetadataOverrides{
			Labels: map[string]string{"app": "evil", "l": "1"}, Annotations: map[string]string{"a": "1"},
		}}
	})
	service := configOf[*corev1ac.ServiceApplyConfiguration](t, result)
	want := withOperatorKeys(map[string]string{"l": "1", v1beta1.LabelAppManagedBy: "freehold"}, ProxySelector("fetch"))
	if diff := cmp.Diff(want, service.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "1"}, service.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if *service.Spec.SessionAffinity != "None" {
		t.Errorf("session affinity is %s", *service.Spec.SessionAffinity)
	}
}

// An RFC 3339 time is carried to the proxy's pods as it is, anything else is reported.
func TestARestartRequestIsCarriedAsItIs(t *testing.T) {
	for name, c := range map[string]struct {
		annotations map[string]string
		want        string
		notice      *Problem
	}{
		"none":    {},
		"rolling": {annotations: map[string]string{v1beta1.AnnotationRestartedAt: "2026-01-02T03:04:05+02:00"}, want: "2026-01-02T03:04:05+02:00"},
		"immediate": {
			annotations: map[string]string{v1beta1.AnnotationRestartedAt: "2026-01-02T03:04:05Z", v1beta1.AnnotationRestartStrategy: "immediate"},
			want:        "2026-01-02T03:04:05Z",
		},
		"no time": {
			map[string]string{v1beta1.AnnotationRestartedAt: "now"},
			"",
			&Problem{"SpecValid", "RestartRequestIgnored", `The annotation mcpserver.toolhive.stacklok.dev/restarted-at is "now", ` +
				"which is not an RFC 3339 time; nothing is restarted."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := renderServer(t, func(s *v1beta1.MCPServer) { s.Annotations = c.annotations })
			if got := deploymentOf(t, result).Spec.Template.Annotations[v1beta1.AnnotationRestartedAt]; got != c.want {
				t.Errorf("on the proxy's pods: got %q, want %q", got, c.want)
			}
			if _, ok := statefulSetOf(t, result).Spec.Template.Annotations[v1beta1.AnnotationRestartedAt]; ok {
				t.Error("the backend would be restarted as well")
			}
			var want []Problem
			if c.notice != nil {
				want = append(want, *c.notice)
			}
			if diff := cmp.Diff(want, result.Notices); diff != "" {
				t.Errorf("notices (-want +got):\n%s", diff)
			}
		})
	}
}
