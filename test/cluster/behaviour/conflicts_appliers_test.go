// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

const (
	hpaOwner = "kube-controller-manager Update scale"
	vpa      = "vpa-updater"
	argo     = "argocd-controller"
	cpuPath  = `.spec.template.spec.containers[name="toolhive"].resources.requests.cpu`
)

// autoscalers are HorizontalPodAutoscalers, with the controller that Kubernetes has for them.
var autoscalers = map[string]otherWriter{
	"hpa": {
		spec: []harness.Change{scaled(1, 1)}, component: harness.Proxy, path: replicasPath,
		write:  autoscales(3),
		then:   standings{value: becomes(int64(3)), owners: []string{hpaOwner}},
		class:  managers.ClassScaler,
		end:    asks(scaled(3, 1)),
		lastly: standings{value: becomes(int64(3)), owners: []string{"freehold-proxy-replicas Apply", hpaOwner}},
	},
	"hpa-left-open": {
		component: harness.Proxy, path: replicasPath,
		write:  autoscales(3),
		then:   standings{value: becomes(int64(3)), count: harness.Once("event"), news: []string{"SessionStorageMissingForReplicas"}},
		end:    asks(image),
		lastly: standings{value: becomes(int64(3)), count: imageWrites},
	},
}

// appliers are tools that know server-side apply.
var appliers = map[string]otherWriter{
	"vpa": {
		spec: []harness.Change{requests("100m")}, component: harness.Proxy, path: cpuPath,
		write:  applies(vpa, true, cpuRequest),
		then:   standings{value: becomes("250m"), owners: []string{vpa + " Apply"}},
		class:  managers.ClassScaler,
		end:    applies(vpa, true, nothing),
		lastly: standings{value: unchanged, owners: []string{"freehold-proxy Apply"}},
	},
	"vpa-polite": {
		spec: []harness.Change{requests("100m")}, component: harness.Proxy, path: cpuPath,
		write: func(t *testing.T, s *scene) {
			t.Helper()
			_, err := s.Apply(t.Context(), vpa, s.component, s.server, false, cpuRequest(s))
			if !apierrors.IsConflict(err) {
				t.Fatalf("it should be refused: %v", err)
			}
		},
		then:   standings{value: unchanged, owners: []string{"freehold-proxy Apply"}},
		end:    asks(image),
		lastly: standings{value: unchanged, owners: []string{"freehold-proxy Apply"}, count: imageWrites},
	},
	"vpa-left-open": {
		component: harness.Proxy, path: cpuPath,
		write:  applies(vpa, false, cpuRequest),
		then:   standings{value: becomes("250m"), owners: []string{vpa + " Apply"}},
		end:    asks(image),
		lastly: standings{value: becomes("250m"), owners: []string{vpa + " Apply"}, count: imageWrites},
	},
	"argo": {
		component: harness.Proxy, path: gracePath,
		write:  applies(argo, true, wholeWith(60)),
		then:   standings{value: becomes(int64(60)), owners: []string{argo + " Apply"}},
		class:  managers.ClassGitOps,
		end:    applies(argo, true, nothing),
		lastly: standings{value: unchanged, owners: []string{"freehold-proxy Apply"}},
	},
	"argo-as-it-is": {
		component: harness.Proxy, path: gracePath,
		write:  applies(argo, true, wholeWith(30)),
		then:   standings{value: unchanged, owners: []string{argo + " Apply", "freehold-proxy Apply"}},
		end:    applies(argo, true, nothing),
		lastly: standings{value: unchanged, owners: []string{"freehold-proxy Apply"}},
	},
}

// autoscales makes a HorizontalPodAutoscaler for the Deployment. It has nothing to measure by, and holds the number at
// its minimum.
func autoscales(minimum int32) step {
	return func(t *testing.T, s *scene) {
		t.Helper()
		autoscaler := &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Name: s.server},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: s.server},
				MinReplicas:    &minimum,
				MaxReplicas:    minimum + 1,
			},
		}
		client := s.Core.AutoscalingV2().HorizontalPodAutoscalers(s.Name)
		if _, err := client.Create(t.Context(), autoscaler, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// applies is a server-side apply.
func applies(manager string, force bool, fields func(s *scene) map[string]any) step {
	return func(t *testing.T, s *scene) {
		t.Helper()
		s.MustApply(t, manager, s.component, s.server, force, fields(s))
	}
}

// nothing are the fields of a manager that gives up all that it has.
func nothing(*scene) map[string]any { return nil }

// cpuRequest are the fields of what adjusts the requests of the proxy.
func cpuRequest(*scene) map[string]any {
	return map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": "toolhive", "resources": map[string]any{"requests": map[string]any{"cpu": "250m"}}},
	}}}}}
}

// requests asks for a share of the CPU.
func requests(cpu string) harness.Change {
	return func(server *v1beta1.MCPServer) {
		server.Spec.Resources.Requests.CPU = cpu
		// Freehold would warn that the MCP server's container has none.
		harness.PodTemplate(`{"spec":{"containers":[{"name":"mcp","resources":{"requests":{"cpu":"10m"}}}]}}`)(server)
	}
}

// wholeWith is the object as it is, but for the grace period, as somebody has it in a repository.
func wholeWith(grace int64) func(*scene) map[string]any {
	return func(s *scene) map[string]any {
		fields := s.before.DeepCopy().Object
		delete(fields, "status")
		// The number of the revision is the Deployment controller's; in no repository it is written.
		unstructured.RemoveNestedField(fields, "metadata", "annotations", "deployment.kubernetes.io/revision")
		for _, field := range []string{"managedFields", "uid", "resourceVersion", "generation", "creationTimestamp"} {
			unstructured.RemoveNestedField(fields, "metadata", field)
		}
		if err := unstructured.SetNestedField(fields, grace, "spec", "template", "spec", "terminationGracePeriodSeconds"); err != nil {
			panic(err) // It is an object like any other.
		}
		return fields
	}
}
