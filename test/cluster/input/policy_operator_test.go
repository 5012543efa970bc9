// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestPolicyLetsTheOperatorWork makes, trials, disputes and deletes MCPServers under all policies. Nobody who has to work
// is refused anything: the operator, the control plane, an autoscaler, a user with labels of his own.
func TestPolicyLetsTheOperatorWork(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	admin := as(t, ns, env.Config)
	imitators, runners, owned := installPolicy(t, ns, fieldManagersPolicy), installPolicy(t, ns, runnersPolicy),
		installPolicy(t, ns, ownedFieldsPolicy)
	harness.Eventually(t, "the policies are asked", func(ctx context.Context) error {
		imitation := metav1.CreateOptions{FieldManager: managers.Proxy, DryRun: []string{metav1.DryRunAll}}
		_, imitated := admin.objects(harness.RunConfig).Create(ctx, objectOf(harness.RunConfig, "any"), imitation)
		runner := impersonate(t, ns, "system:serviceaccount:"+ns.Name+":any-proxy-runner")
		_, wrote := runner.objects(harness.Backend).Create(ctx, objectOf(harness.Backend, "any"),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return errors.Join(refusedBy(imitators, imitated), refusedBy(runners, wrote))
	})

	// The third has nothing to warn of yet. What it says is looked at below.
	mark := ns.Mark(t)
	ns.Operate(t)
	const scaled, numbered, single = "scaled", "numbered", "single"
	servers := []*v1beta1.MCPServer{
		harness.Server(scaled, v1beta1.TransportStreamableHTTP, harness.InlineAuthorization),
		harness.Server(numbered, v1beta1.TransportSSE, harness.Replicas(2, 2)),
		harness.Server(single, v1beta1.TransportStdio),
	}
	for _, server := range servers {
		ns.Create(t, server)
	}
	for _, server := range servers {
		ns.AwaitSettled(t, server.Name)
	}
	autoscale(t, ns, scaled, 2)
	ns.AwaitReplicas(t, harness.Proxy, scaled, 2)
	for _, server := range servers {
		ns.Edit(t, server.Name, func(s *v1beta1.MCPServer) { s.Spec.Image = harness.OtherImage })
	}
	ns.Edit(t, numbered, func(s *v1beta1.MCPServer) { s.Spec.Replicas, s.Spec.BackendReplicas = nil, nil })
	ns.Edit(t, scaled, func(s *v1beta1.MCPServer) { s.Spec.AuthzConfig = nil })
	for _, server := range servers {
		ns.AwaitSettled(t, server.Name)
	}

	// A user with labels of his own, and one who meets the warning and settles the conflict.
	theirs := trial{component: harness.Proxy, patch: jsonPatch(harness.Add("/metadata/labels/theirs", "yes"))}
	if err := theirs.do(t.Context(), admin, numbered); err != nil {
		t.Error(err)
	}
	if texts := admin.warnings.take(owned); len(texts) > 0 {
		t.Errorf("a label of a user's own is nothing to warn of: %q", texts)
	}
	ns.MustPatch(t, harness.Hand, harness.Proxy, numbered, otherImage...)
	ns.AwaitConflict(t, numbered, harness.Hand)
	ns.Annotate(t, numbered, v1beta1.AnnotationTake, harness.Hand)
	ns.AwaitServer(t, numbered, "tells that the image was taken", func(server *v1beta1.MCPServer) error {
		if !meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionFieldsTaken) {
			return errors.New("condition FieldsTaken is not True")
		}
		return nil
	})
	if err := trials["another image"].do(t.Context(), admin, numbered); err != nil {
		t.Error(err)
	}
	if texts := admin.warnings.take(owned); len(texts) != 1 {
		t.Errorf("the policy that warns does not: %q", texts)
	}

	// A rollout that is under way would be refused its pods, since their ServiceAccount goes first.
	ns.AwaitSettled(t, numbered)
	for i, propagation := range []metav1.DeletionPropagation{
		metav1.DeletePropagationForeground, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground,
	} {
		ns.Delete(t, servers[i].Name, propagation)
	}
	for _, server := range servers {
		ns.AwaitGone(t, server.Name)
		awaitNoChildren(t, ns, server.Name)
	}
	checkNobodyRefused(t, ns, mark)
}

// autoscale makes a HorizontalPodAutoscaler for the proxy, which it holds at a number.
func autoscale(t *testing.T, ns *harness.Namespace, name string, minimum int32) {
	t.Helper()
	autoscaler := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			MinReplicas:    &minimum, MaxReplicas: minimum + 1,
		},
	}
	client := ns.Core.AutoscalingV2().HorizontalPodAutoscalers(ns.Name)
	if _, err := client.Create(t.Context(), autoscaler, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitNoChildren waits until the garbage collector has done its work.
func awaitNoChildren(t *testing.T, ns *harness.Namespace, name string) {
	t.Helper()
	harness.Eventually(t, "the end of the children of "+name, func(ctx context.Context) error {
		objects, err := ns.ObjectsOf(ctx, name)
		if err == nil && len(objects) > 0 {
			err = errors.New("some are there")
		}
		return err
	})
}

// checkNobodyRefused looks for writes in the namespace that were answered as a policy answers.
func checkNobodyRefused(t *testing.T, ns *harness.Namespace, since audit.Mark) {
	t.Helper()
	ns.Mark(t)
	events, _, err := ns.Audit.Since(since, audit.Writes(), audit.Namespace(ns.Name))
	if err != nil {
		t.Fatal(err)
	}
	writers := map[string]bool{}
	for _, e := range events {
		if e.Code == http.StatusForbidden || e.Code == http.StatusUnprocessableEntity {
			t.Errorf("refused: %v", e)
		}
		writers[e.User] = true
	}
	for _, user := range []string{
		harness.OperatorUser, "system:serviceaccount:kube-system:generic-garbage-collector",
		"system:serviceaccount:kube-system:horizontal-pod-autoscaler",
	} {
		if !writers[user] {
			t.Errorf("%s has written nothing, so this shows nothing about it; there were %d requests by %v",
				user, len(events), slices.Sorted(maps.Keys(writers)))
		}
	}
}
