// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// The gate and the proxy's port ride along with other changes of the backend's pods, and never make a change by themselves.
func TestTheGateAndThePortRideAlong(t *testing.T) {
	type template = corev1ac.PodTemplateSpecApplyConfiguration
	gate := func(value string) func(*template) {
		return func(t *template) { t.Annotations[v1beta1.AnnotationGeneration] = value }
	}
	port := func(value string) func(*template) {
		return func(t *template) { t.Labels[v1beta1.LabelToolHivePort] = value }
	}
	both := func(changes ...func(*template)) func(*template) {
		return func(t *template) {
			for _, change := range changes {
				change(t)
			}
		}
	}
	for name, c := range map[string]struct {
		// owned is how what we own differs from what we want.
		owned    func(*template)
		wantGate string
		wantPort string
	}{
		"nothing differs":            {func(*template) {}, ClosedGate, "8080"},
		"a closed gate of ToolHive":  {gate("2"), "2", "8080"},
		"a gate that is not closed":  {gate("1"), ClosedGate, "8080"},
		"no gate":                    {func(t *template) { delete(t.Annotations, v1beta1.AnnotationGeneration) }, ClosedGate, "8080"},
		"a gate that is no number":   {gate("x"), ClosedGate, "8080"},
		"a gate above int64":         {gate("9223372036854775808"), ClosedGate, "8080"},
		"a negative gate":            {gate("-5"), ClosedGate, "8080"},
		"another port":               {port("9090"), ClosedGate, "9090"},
		"both":                       {both(gate("7"), port("9090")), "7", "9090"},
		"another port, an open gate": {both(gate("1"), port("9090")), ClosedGate, "8080"},
		"no port":                    {func(t *template) { delete(t.Labels, v1beta1.LabelToolHivePort) }, ClosedGate, "8080"},
		"another image as well":      {both(gate("7"), port("9090"), func(t *template) { t.Spec.Containers[0].WithImage("old") }), ClosedGate, "8080"},
		"another label as well":      {both(gate("7"), func(t *template) { t.Labels["l"] = "v" }), ClosedGate, "8080"},
		"another annotation as well": {both(gate("7"), func(t *template) { t.Annotations["a"] = "v" }), ClosedGate, "8080"},
		"a struct with nothing in it": {both(gate("7"), func(t *template) {
			t.Spec.Containers[0].WithResources(corev1ac.ResourceRequirements()).WithStdin(false)
		}), "7", "8080"},
		"a variable with no value, and with an empty one": {both(gate("7"), func(t *template) {
			for i := range t.Spec.Containers[0].Env {
				if v := &t.Spec.Containers[0].Env[i]; v.Value == nil {
					v.WithValue("")
				}
			}
		}), "7", "8080"},
		"a quantity in other words": {both(gate("7"), func(t *template) {
			t.Spec.Containers[1].Resources.WithLimits(corev1.ResourceList{"memory": resource.MustParse("1024Mi")})
		}), "7", "8080"},
	} {
		t.Run(name, func(t *testing.T) {
			want, owned := preserveFixture(t), preserveFixture(t)
			c.owned(owned.Spec.Template)
			before := jsonOf(t, owned)
			PreserveBackend(want, KeepBackend(owned))
			got := []string{want.Spec.Template.Annotations[v1beta1.AnnotationGeneration], want.Spec.Template.Labels[v1beta1.LabelToolHivePort]}
			if diff := cmp.Diff([]string{c.wantGate, c.wantPort}, got); diff != "" {
				t.Errorf("gate and port (-want +got):\n%s", diff)
			}
			if want.Labels[v1beta1.LabelToolHivePort] != "8080" {
				t.Error("the StatefulSet's own label was changed")
			}
			if diff := cmp.Diff(string(before), string(jsonOf(t, owned))); diff != "" {
				t.Errorf("what is owned was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// The mark of an earlier restart that is inherited from ToolHive's proxyrunner stays until the pods are restarted for another cause, or the
// spec names one.
func TestAnInheritedRestartStaysUntilAnotherCause(t *testing.T) {
	const earlier, later = "2026-01-02T03:04:05Z", "2026-02-03T04:05:06Z"
	for name, c := range map[string]struct {
		gate, asked, image string
		want               string
	}{
		"nothing else differs": {gate: "7", want: earlier},
		"a gate that is open":  {gate: "1"},
		"another image":        {gate: "7", image: "old"},
		"the spec has one":     {gate: "7", asked: later, want: later},
	} {
		t.Run(name, func(t *testing.T) {
			want, owned := preserveFixture(t), preserveFixture(t)
			owned.Spec.Template.WithAnnotations(map[string]string{v1beta1.AnnotationGeneration: c.gate, annotationRolloutRestart: earlier})
			if c.image != "" {
				owned.Spec.Template.Spec.Containers[0].WithImage(c.image)
			}
			if c.asked != "" {
				want.Spec.Template.WithAnnotations(map[string]string{annotationRolloutRestart: c.asked})
			}
			PreserveBackend(want, KeepBackend(owned))
			if got := want.Spec.Template.Annotations[annotationRolloutRestart]; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// preserveFixture is a new StatefulSet of one MCPServer, with a sidecar after the MCP server's container.
func preserveFixture(t *testing.T) *appsv1ac.StatefulSetApplyConfiguration {
	t.Helper()
	return statefulSetOf(t, renderServer(t, withPodTemplate(
		"{spec: {containers: [{name: mcp}, {name: side, image: i, resources: {limits: {memory: 1Gi}}}]}}")))
}

// The mark of a restart stays when it is not asked for any more, until another change.
func TestTheMarkOfARestartStaysUntilAnotherChange(t *testing.T) {
	const earlier, later = "2026-01-02T03:04:05Z", "2026-02-03T04:05:06Z"
	deployment := func(at string) *appsv1ac.DeploymentApplyConfiguration {
		return deploymentOf(t, renderServer(t, func(s *v1beta1.MCPServer) {
			if at != "" {
				s.Annotations = map[string]string{v1beta1.AnnotationRestartedAt: at}
			}
		}))
	}
	for name, c := range map[string]struct {
		asked, owned string
		change       func(*appsv1ac.DeploymentApplyConfiguration)
		want         string
	}{
		"never":              {"", "", nil, ""},
		"first":              {later, "", nil, later},
		"again":              {later, earlier, nil, later},
		"the same":           {earlier, earlier, nil, earlier},
		"not any more":       {"", earlier, nil, earlier},
		"with another image": {"", earlier, func(d *appsv1ac.DeploymentApplyConfiguration) { d.Spec.Template.Spec.Containers[0].WithImage("old") }, ""},
		"with another label": {"", earlier, func(d *appsv1ac.DeploymentApplyConfiguration) { d.Spec.Template.Labels["l"] = "v" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			want, owned := deployment(c.asked), deployment(c.owned)
			if c.change != nil {
				c.change(owned)
			}
			PreserveProxy(want, KeepProxy(owned))
			if got := want.Spec.Template.Annotations[v1beta1.AnnotationRestartedAt]; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhatIsNotTherePreservesNothing(t *testing.T) {
	for name, owned := range map[string]*appsv1ac.StatefulSetApplyConfiguration{
		"nothing": nil, "no spec": appsv1ac.StatefulSet("fetch", "tools"),
		"no template": appsv1ac.StatefulSet("fetch", "tools").WithSpec(appsv1ac.StatefulSetSpec()),
		"no metadata": appsv1ac.StatefulSet("fetch", "tools").WithSpec(appsv1ac.StatefulSetSpec().
			WithTemplate(corev1ac.PodTemplateSpec().WithSpec(corev1ac.PodSpec()))),
	} {
		t.Run(name, func(t *testing.T) {
			want := preserveFixture(t)
			before := jsonOf(t, want)
			PreserveBackend(want, KeepBackend(owned))
			if diff := cmp.Diff(string(before), string(jsonOf(t, want))); diff != "" {
				t.Errorf("changed (-before +after):\n%s", diff)
			}
		})
	}
	PreserveBackend((*appsv1ac.StatefulSetApplyConfiguration)(nil), KeepBackend(preserveFixture(t)))
	PreserveProxy(nil, KeepProxy(nil))
	PreserveProxy(appsv1ac.Deployment("fetch", "tools"), KeepProxy(deploymentOf(t, renderServer(t))))
}
