// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/test/harness"
)

// Managers that write as others do.
const (
	helm   = "helm"
	argo   = "argocd-controller"
	scaler = "kube-controller-manager"
)

// scene is an MCPServer, web, with everything that the operator makes for it.
type scene struct {
	*harness.Namespace
	kubectl  *harness.Kubectl
	operator *operator.Process
}

// web is the name of the MCPServer, and of its workloads.
const web = "web"

// newScene makes the MCPServer and waits until the operator is done with it.
func newScene(t *testing.T, changes ...harness.Change) *scene {
	t.Helper()
	return newSceneOf(t, env, changes...)
}

// newSceneOf is newScene on another control plane than that of the suite.
func newSceneOf(t *testing.T, env *harness.Env, changes ...harness.Change) *scene {
	t.Helper()
	s := &scene{Namespace: env.Namespace(t)}
	s.kubectl = s.Kubectl(t)
	s.operator = s.Operate(t)
	s.Create(t, harness.Server(web, v1beta1.TransportStreamableHTTP, changes...))
	s.await(t, "there is a backend", func(ctx context.Context) error {
		_, err := s.Object(ctx, harness.Backend, web)
		return err
	})
	// As the controller of StatefulSets does once the pod is ready.
	s.patch(t, "statefulsets", "status", scaler, map[string]any{
		"status": map[string]any{"replicas": 1, "readyReplicas": 1, "observedGeneration": 1},
	})
	s.await(t, "there is a proxy", func(ctx context.Context) error {
		_, err := s.Object(ctx, harness.Proxy, web)
		return err
	})
	s.settled(t)
	return s
}

// stop ends the operator.
func (s *scene) stop(t *testing.T) {
	t.Helper()
	harness.Stop(t, s.operator)
}

// settled waits until the operator has told that it is done.
func (s *scene) settled(t *testing.T) {
	t.Helper()
	s.AwaitServer(t, web, "is settled", func(server *v1beta1.MCPServer) error {
		if server.Status.ObservedGeneration != server.Generation {
			return errors.New("its generation is not in the status")
		}
		if !meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionFieldsOwned) {
			return errors.New("FieldsOwned is not True")
		}
		// The proxy comes after the first status. A number of replicas that nobody owns yet could be scaled without a trace.
		deployment, err := s.Object(t.Context(), harness.Proxy, web)
		if err != nil {
			return err
		}
		for _, manager := range harness.Managers(server, harness.Proxy) {
			if ownership.ApplyEntry(deployment, manager, "") == nil {
				return fmt.Errorf("%s owns nothing of the Deployment yet", manager)
			}
		}
		return nil
	})
}

// contested waits until the operator tells of a conflict.
func (s *scene) contested(t *testing.T) {
	t.Helper()
	s.AwaitServer(t, web, "is contested", func(server *v1beta1.MCPServer) error {
		if !meta.IsStatusConditionFalse(server.Status.Conditions, v1beta1.ConditionFieldsOwned) {
			return errors.New("FieldsOwned is not False")
		}
		return nil
	})
}

func (s *scene) await(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	harness.Eventually(t, what, check)
}

// patch changes a workload, or a subresource of it, as a manager that knows nothing of server-side apply.
func (s *scene) patch(t *testing.T, resource, subresource, manager string, body map[string]any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request := s.Core.AppsV1().RESTClient().Patch(types.MergePatchType).Namespace(s.Name).Resource(resource).Name(web).
		VersionedParams(&metav1.PatchOptions{FieldManager: manager}, metav1.ParameterCodec).Body(text)
	if subresource != "" {
		request = request.SubResource(subresource)
	}
	if err := request.Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
}

// others writes to the Deployment as helm, Argo CD, an autoscaler and humans do, without taking anything from the
// operator.
func (s *scene) others(t *testing.T) {
	t.Helper()
	s.patch(t, "deployments", "", helm, map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{"meta.helm.sh/release-name": "tools"},
	}})
	s.MustApply(t, argo, harness.Proxy, web, false, map[string]any{
		"metadata": map[string]any{
			"annotations": map[string]any{"argocd.argoproj.io/tracking-id": "tools:apps/Deployment:web"},
			// The same value as the operator: both own it.
			"labels": map[string]any{"toolhive": "true"},
		},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"tolerations": []any{
			map[string]any{"key": "gpu", "operator": "Exists"},
		}}}},
	})
	s.patch(t, "deployments", "status", scaler, map[string]any{"status": map[string]any{"observedGeneration": 1}})
	s.kubectl.Run(t, "set", "env", "deployment/"+web, "EXTRA=here")
	s.kubectl.Run(t, "annotate", "deployment/"+web, "example.com/note=line 1\nline 2")
}
