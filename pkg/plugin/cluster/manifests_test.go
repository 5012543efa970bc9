// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// deployed returns the Deployment of a file of deploy/.
func deployed(t *testing.T, file string) *appsv1.Deployment {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", file))
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		found := &appsv1.Deployment{}
		if strings.Contains(document, "\nkind: Deployment\n") {
			if err := yaml.Unmarshal([]byte(document), found); err != nil {
				t.Fatal(err)
			}
			return found
		}
	}
	t.Fatalf("there is no Deployment in %s", file)
	return nil
}

// The Deployments that deploy/ makes are known, also with the API server's defaults and in another version.
func TestTheDeploymentsOfTheManifestsAreKnown(t *testing.T) {
	everywhere, namespaced := []string{"-f", "deploy/install-without-crd.yaml"}, []string{"-k", "deploy/namespaced"}
	for file, want := range map[string][]string{"install.yaml": everywhere, "install-without-crd.yaml": everywhere, "install-namespaced.yaml": namespaced} {
		d := deployed(t, file)
		pod := &d.Spec.Template.Spec
		if diff := cmp.Diff(want, ManifestsOf(d)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
		pod.RestartPolicy, pod.DNSPolicy, pod.SchedulerName, pod.DeprecatedServiceAccount = corev1.RestartPolicyAlways, corev1.DNSClusterFirst, "default-scheduler", "freehold"
		pod.Containers[0].TerminationMessagePath, pod.Containers[0].Env[0].ValueFrom.FieldRef.APIVersion = "/dev/termination-log", "v1"
		pod.Containers[0].LivenessProbe.SuccessThreshold = 1
		pod.Containers[0].Image = releasedImage + "@sha256:0000"
		if diff := cmp.Diff(want, ManifestsOf(d)); diff != "" {
			t.Errorf("%s with defaults (-want +got):\n%s", file, diff)
		}
	}
}

// A Deployment that has settings of its own is none of deploy/'s.
func TestACustomisedDeploymentIsNotKnown(t *testing.T) {
	for name, change := range map[string]func(d *appsv1.Deployment, pod *corev1.PodSpec, container *corev1.Container){
		"another name":      func(d *appsv1.Deployment, _ *corev1.PodSpec, _ *corev1.Container) { d.Name = "freehold-a" },
		"another namespace": func(d *appsv1.Deployment, _ *corev1.PodSpec, _ *corev1.Container) { d.Namespace = "platform" },
		"a ServiceAccount":  func(_ *appsv1.Deployment, pod *corev1.PodSpec, _ *corev1.Container) { pod.ServiceAccountName = "mine" },
		"a selector": func(_ *appsv1.Deployment, _ *corev1.PodSpec, c *corev1.Container) {
			c.Args = append(c.Args, "--mcpserver-selector=shard=a", "--leader-elect-resource-name=freehold")
		},
		"a Lease": func(_ *appsv1.Deployment, _ *corev1.PodSpec, c *corev1.Container) {
			c.Args = append(c.Args, "--leader-elect-resource-name=mine")
		},
		"an argument less": func(_ *appsv1.Deployment, _ *corev1.PodSpec, c *corev1.Container) { c.Args = c.Args[1:] },
		"a proxyrunner": func(_ *appsv1.Deployment, _ *corev1.PodSpec, c *corev1.Container) {
			at := slices.IndexFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == "TOOLHIVE_RUNNER_IMAGE" })
			c.Env[at].Value = "example.com/runner:mine"
		},
		"namespaces": func(_ *appsv1.Deployment, _ *corev1.PodSpec, c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "WATCH_NAMESPACE", Value: "shop"})
		},
		"memory": func(_ *appsv1.Deployment, _ *corev1.PodSpec, c *corev1.Container) {
			c.Resources.Limits[corev1.ResourceMemory] = resource.MustParse("1Gi")
		},
		"a registry": func(_ *appsv1.Deployment, _ *corev1.PodSpec, c *corev1.Container) {
			c.Image = "registry.example.com/freehold-dev/freehold:v0.1.0"
		},
		"an image whose name begins like ours": func(_ *appsv1.Deployment, _ *corev1.PodSpec, c *corev1.Container) {
			c.Image = releasedImage + "-fork:v0.1.0"
		},
		"a priority": func(_ *appsv1.Deployment, pod *corev1.PodSpec, _ *corev1.Container) { pod.PriorityClassName = "mine" },
		"tolerations": func(_ *appsv1.Deployment, pod *corev1.PodSpec, _ *corev1.Container) {
			pod.Tolerations = []corev1.Toleration{{Key: "infra"}}
		},
		"a sidecar": func(_ *appsv1.Deployment, pod *corev1.PodSpec, _ *corev1.Container) {
			pod.Containers = append(pod.Containers, corev1.Container{Name: "mesh"})
		},
	} {
		d := deployed(t, "install.yaml")
		change(d, &d.Spec.Template.Spec, &d.Spec.Template.Spec.Containers[0])
		if got := ManifestsOf(d); got != nil {
			t.Errorf("with %s it is taken for that of %q", name, got)
		}
	}
}
