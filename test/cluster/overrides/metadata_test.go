// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// forged are the keys that the operator sets itself, with values that would break what they are for.
var forged = struct{ labels, annotations map[string]string }{
	labels: map[string]string{
		"app": "forged", "app.kubernetes.io/name": "forged", "app.kubernetes.io/instance": "forged",
		"toolhive": "false", "toolhive-name": "forged",
	},
	annotations: map[string]string{
		v1beta1.AnnotationRunConfigChecksum: "forged",
		v1beta1.AnnotationRestartedAt:       "2001-02-03T04:05:06Z",
		v1beta1.AnnotationSource:            "forged/999999",
		v1beta1.AnnotationReferences:        "mcpoidcconfig/idp=forged/999999@999999",
	},
}

// override is a user's metadata with a key of his own besides the forged ones.
func override(value string) v1beta1.ResourceMetadataOverrides {
	with := func(keys map[string]string) map[string]string {
		all := map[string]string{"example.com/team": value, "example.com/on-" + value: "here", "example.com/empty": ""}
		maps.Copy(all, keys)
		return all
	}
	return v1beta1.ResourceMetadataOverrides{Labels: with(forged.labels), Annotations: with(forged.annotations)}
}

const restartedAt = "2026-01-02T03:04:05Z"

func overrideAll(server *v1beta1.MCPServer) {
	service, deployment, template := override("service"), override("deployment"), override("template")
	server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{
		ProxyService: &service,
		ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
			ResourceMetadataOverrides: deployment, PodTemplateMetadataOverrides: &template,
		},
	}
	server.Annotations = map[string]string{v1beta1.AnnotationRestartedAt: restartedAt}
}

// TestMetadataOverrides shows that neither side loses keys: not the operator to a user who overrides them, not the
// user to the operator, and not others who write to the objects.
func TestMetadataOverrides(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	operator := s.Operate(t)
	const name = "overridden"
	s.Create(t, harness.HTTPServer(name, overrideAll))
	s.AwaitStatus(t, name, harness.Fine...)
	s.AwaitSettled(t, name)
	s.AwaitRest(t)
	s.checkOverrides(t, name)
	s.CheckOwnership(t, name)
	sum := s.RunConfigChecksum(t, name)

	// Others write to the objects as well.
	for _, component := range []harness.Component{harness.Proxy, harness.ProxyService} {
		s.MustPatch(t, harness.Hand, component, name,
			harness.Add("/metadata/labels/foreign", "here"), harness.Add("/metadata/annotations/foreign", "here"))
	}
	s.MustPatch(t, harness.Hand, harness.Proxy, name,
		harness.Add("/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt", restartedAt))
	s.AwaitSettled(t, name)
	s.AwaitRest(t)
	s.Quiet(t, s.Mark(t), harness.Rest)

	// The RunConfig changes, and the proxies are restarted for it (toolhive #5149).
	s.Edit(t, name, harness.Environment("NEW", "1"))
	harness.Eventually(t, "another checksum", func(context.Context) error {
		if s.RunConfigChecksum(t, name) == sum {
			return fmt.Errorf("it is still %s", sum)
		}
		return nil
	})
	s.AwaitSettled(t, name)
	s.AwaitRest(t)
	s.checkOverrides(t, name)

	restarted := s.Mark(t)
	s.ReplaceOperator(t, operator)
	s.AwaitRest(t)
	if tried := s.Writes(t, restarted); len(tried) > 0 {
		t.Errorf("a restart costs writes: %v", tried)
	}

	// The user takes back what is his. What is the operator's or somebody else's stays.
	s.Edit(t, name, func(server *v1beta1.MCPServer) { server.Spec.ResourceOverrides = nil })
	s.AwaitStatus(t, name, harness.Fine...)
	s.AwaitSettled(t, name)
	s.AwaitRest(t)
	deployment, service := s.proxy(t, name), s.proxyService(t, name)
	for what, keys := range map[string]map[string]string{
		"labels of the Deployment": deployment.Labels, "annotations of the Deployment": deployment.Annotations,
		"labels of the Service": service.Labels, "annotations of the Service": service.Annotations,
	} {
		if keys["foreign"] != "here" {
			t.Errorf("the %s have lost a foreign key: %v", what, keys)
		}
		if _, found := keys["example.com/team"]; found {
			t.Errorf("the %s still have a key that is not asked for any more: %v", what, keys)
		}
	}
	if template := deployment.Spec.Template; template.Annotations["kubectl.kubernetes.io/restartedAt"] != restartedAt {
		t.Errorf("the pod template has lost a foreign key: %v", template.Annotations)
	}
	if diff := cmp.Diff(map[string]string{
		"app": "mcpserver", "app.kubernetes.io/name": "mcpserver", "app.kubernetes.io/instance": name,
		"toolhive": "true", "toolhive-name": name,
	}, deployment.Spec.Template.Labels); diff != "" {
		t.Errorf("labels of the pod template (-want +got):\n%s", diff)
	}
}

func (s *stage) proxy(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	found, err := s.Core.AppsV1().Deployments(s.Name).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (s *stage) proxyService(t *testing.T, name string) *corev1.Service {
	t.Helper()
	found, err := s.Core.CoreV1().Services(s.Name).Get(t.Context(), "mcp-"+name+"-proxy", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// checkOverrides looks at the metadata of the proxy's objects.
func (s *stage) checkOverrides(t *testing.T, name string) {
	t.Helper()
	server := s.AwaitReady(t, name)
	deployment, service := s.proxy(t, name), s.proxyService(t, name)
	runConfig, err := s.Core.CoreV1().ConfigMaps(s.Name).Get(t.Context(), s.MustNameOf(t, harness.RunConfig, name), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]string{
		"app": "mcpserver", "app.kubernetes.io/name": "mcpserver", "app.kubernetes.io/instance": name,
		"toolhive": "true", "toolhive-name": name,
	}
	for _, object := range []struct {
		what, team          string
		labels, annotations map[string]string
		// ours are the annotations of the operator on it.
		ours map[string]string
	}{
		{"the Deployment", "deployment", deployment.Labels, deployment.Annotations, nil},
		{"the Service", "service", service.Labels, service.Annotations, nil},
		{"the pod template", "template", deployment.Spec.Template.Labels, deployment.Spec.Template.Annotations, map[string]string{
			v1beta1.AnnotationRunConfigChecksum: runConfig.Annotations[v1beta1.AnnotationContentChecksum],
			v1beta1.AnnotationRestartedAt:       restartedAt,
		}},
	} {
		for key, value := range own {
			if object.labels[key] != value {
				t.Errorf("label %s of %s is %q, not %q", key, object.what, object.labels[key], value)
			}
		}
		for key, value := range object.ours {
			if object.annotations[key] != value || value == "" {
				t.Errorf("annotation %s of %s is %q, not %q", key, object.what, object.annotations[key], value)
			}
		}
		for _, keys := range []map[string]string{object.labels, object.annotations} {
			empty, found := keys["example.com/empty"]
			if keys["example.com/team"] != object.team || empty != "" || !found {
				t.Errorf("%s has not the user's keys: %v", object.what, keys)
			}
			for _, team := range []string{"deployment", "template", "service"} {
				if _, found := keys["example.com/on-"+team]; found != (team == object.team) {
					t.Errorf("%s has keys that are meant for another object: %v", object.what, keys)
				}
			}
		}
	}
	for _, object := range []metav1.Object{deployment, service} {
		source, ok := apply.ParseSource(object.GetAnnotations()[v1beta1.AnnotationSource])
		if !ok || source.UID != server.UID || source.Generation > server.Generation {
			t.Errorf("%s says that it was written from %+v", object.GetName(), object.GetAnnotations())
		}
		if references, found := object.GetAnnotations()[v1beta1.AnnotationReferences]; found {
			t.Errorf("%s says that it was written from %q, and the MCPServer refers to nothing", object.GetName(), references)
		}
	}
	s.checkOwner(t, harness.Proxy, name, managers.Proxy,
		".metadata.annotations.example.com/team", ".metadata.labels.app", ".metadata.annotations."+v1beta1.AnnotationSource,
		".spec.template.metadata.annotations.example.com/team", ".spec.template.metadata.labels.app",
		".spec.template.metadata.annotations."+v1beta1.AnnotationRunConfigChecksum)
	s.checkOwner(t, harness.ProxyService, name, managers.Service, ".metadata.labels.example.com/team", ".metadata.labels.app")
}

// checkOwner fails the test unless a manager, and nobody else, owns the fields.
func (s *stage) checkOwner(t *testing.T, component harness.Component, server, manager string, paths ...string) {
	t.Helper()
	object := s.MustObject(t, component, server)
	for _, path := range paths {
		if got := harness.ManagersOf(object, path); !slices.Equal(got, []string{manager}) {
			t.Errorf("%s of %s is owned by %v, not by %s", path, object.GetName(), got, manager)
		}
	}
}

// contested are overrides of keys that others write as well, or that are unusual in another way.
var contested = map[string]v1beta1.ResourceMetadataOverrides{
	"revision":   {Annotations: map[string]string{"deployment.kubernetes.io/revision": "7"}},
	"kubectl":    {Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}},
	"restart":    {Annotations: map[string]string{"kubectl.kubernetes.io/restartedAt": restartedAt}},
	"hash":       {Labels: map[string]string{"pod-template-hash": "forged"}},
	"generation": {Annotations: map[string]string{v1beta1.AnnotationGeneration: "1"}},
	"endpoints":  {Labels: map[string]string{"service.kubernetes.io/headless": "", "endpointslice.kubernetes.io/managed-by": "x"}},
	"large":      {Annotations: map[string]string{"example.com/large": strings.Repeat("x", 200<<10)}},
}

// TestContestedOverrides overrides keys that others want as well. Whatever comes of it, it does not go round in
// circles, and a restart of the operator brings none about.
func TestContestedOverrides(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	s := newStage(t, env)
	operator := s.Operate(t)
	for name, keys := range contested {
		s.Create(t, harness.HTTPServer(name, func(server *v1beta1.MCPServer) {
			server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{
				ProxyService: &keys,
				ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
					ResourceMetadataOverrides: keys, PodTemplateMetadataOverrides: &keys,
				},
			}
		}))
	}
	for name := range contested {
		// The Deployment's own controller has the last word on its revision.
		if name == "revision" {
			s.AwaitStatus(t, name, harness.Expectation{
				Condition: v1beta1.ConditionFieldsOwned, Status: metav1.ConditionFalse, Reason: "FieldManagerConflict",
				Message: []string{"kube-controller-manager", "deployment.kubernetes.io/revision", "deployment.apps/revision"},
			})
			continue
		}
		s.AwaitStatus(t, name, harness.Fine...)
		s.AwaitSettled(t, name)
	}
	s.AwaitRest(t)
	s.Quiet(t, s.Mark(t), harness.Calm)

	restarted := s.Mark(t)
	s.ReplaceOperator(t, operator)
	s.AwaitRest(t)
	for _, e := range s.Writes(t, restarted) {
		if e.Resource != "deployments" || e.Name != "revision" || e.Succeeded() {
			t.Errorf("a restart costs a write: %v", e)
		}
	}
	for name := range contested {
		if name != "revision" {
			s.Edit(t, name, harness.Environment("NEW", "1"))
			s.AwaitStatus(t, name, harness.Fine...)
			s.AwaitSettled(t, name)
		}
	}
	s.AwaitRest(t)
	s.Quiet(t, s.Mark(t), harness.Calm)
}
