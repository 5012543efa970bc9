// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"fmt"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/test/harness"
	"github.com/freehold-dev/freehold/test/mcpclient"
)

// world is a namespace in which ToolHive made the fleet.
type world struct {
	*harness.Namespace

	kubectl *harness.Kubectl
}

// settle makes the members and lets ToolHive, whose operator runs, and the others write their histories. All answer
// afterwards. Only as many are made at a time as tests run: pods that start take all of a small machine's processors, and
// the kubelet's probes, which give up after seconds, would restart what starts too slowly, again and again.
func settle(t *testing.T, ns *harness.Namespace, members []*member) *world {
	t.Helper()
	w := &world{Namespace: ns, kubectl: ns.Kubectl(t)}
	for _, m := range members {
		objects, err := operator.Decode([]byte(m.before))
		if err != nil {
			t.Fatalf("%s: %v", m.server.Name, err)
		}
		if err := operator.Apply(t.Context(), ns.Config, ns.Name, objects); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("made", func(t *testing.T) {
		for _, m := range members {
			t.Run(m.server.Name, func(t *testing.T) {
				t.Parallel()
				ns.Create(t, m.server)
				w.awaitRest(t, m)
				for _, d := range m.history {
					t.Log(d.what)
					d.do(t, w, m.server.Name)
					w.awaitRest(t, m)
				}
				if !m.unanswered {
					mcpclient.AwaitAnswers(t, ns, machine, m.server, 3)
					return
				}
				mcpclient.AwaitRoute(t, ns, machine, m.server.Name)
				if steps := mcpclient.Call(t, ns, mcpclient.To(m.server)...); len(steps) == 0 || steps[0].Error == "" {
					t.Errorf("a client without a token is let in: %+v", steps)
				}
			})
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return w
}

// awaitRest waits until an MCPServer is Ready, and what it was asked for last runs in the pods of both workloads and in
// no others.
func (w *world) awaitRest(t *testing.T, m *member) {
	t.Helper()
	w.AwaitServer(t, m.server.Name, "is at rest", func(server *v1beta1.MCPServer) error {
		if server.Status.ObservedGeneration != server.Generation || server.Status.Phase != v1beta1.PhaseReady {
			return fmt.Errorf("generation %d of %d is %s: %s", server.Status.ObservedGeneration, server.Generation,
				server.Status.Phase, server.Status.Message)
		}
		deployment, err := w.Core.AppsV1().Deployments(w.Name).Get(t.Context(), server.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		statefulSet, err := w.Core.AppsV1().StatefulSets(w.Name).Get(t.Context(), server.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		generation := strconv.FormatInt(server.Generation, 10)
		if gate := statefulSet.Spec.Template.Annotations[v1beta1.AnnotationGeneration]; gate != generation {
			return fmt.Errorf("the runner has not written generation %s, only %s", generation, gate)
		}
		return rolledOut(deployment, statefulSet)
	})
}

func rolledOut(deployment *appsv1.Deployment, statefulSet *appsv1.StatefulSet) error {
	d, wanted := deployment.Status, *deployment.Spec.Replicas
	if d.ObservedGeneration != deployment.Generation || d.UpdatedReplicas != wanted || d.Replicas != wanted ||
		d.AvailableReplicas != wanted || d.TerminatingReplicas != nil && *d.TerminatingReplicas > 0 {
		return fmt.Errorf("the Deployment is on its way to %d pods: %+v", wanted, d)
	}
	b, wanted := statefulSet.Status, *statefulSet.Spec.Replicas
	if b.ObservedGeneration != statefulSet.Generation || b.CurrentRevision != b.UpdateRevision || b.Replicas != wanted ||
		b.AvailableReplicas != wanted {
		return fmt.Errorf("the StatefulSet is on its way to %d pods: %+v", wanted, b)
	}
	return nil
}
