// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestReplay has what made backends fall back to old images (https://github.com/stacklok/toolhive/issues/5023): proxies
// of an old and a new image are alive together, again and again, and beside them all the time a proxyrunner without a
// gate that insists on an old image. In the first half its Role stops it, in the second deploy/policy alone. What
// happens to the backend is watched: no version of it is missing.
func TestReplay(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t, "--runner-image="+images.ProxyRunner)
	mark := ns.Mark(t)
	two := int32(2) // A proxy ends when the backend has no pod for a moment.
	ns.Create(t, harness.Server(served, v1beta1.TransportStreamableHTTP, func(server *v1beta1.MCPServer) {
		server.Spec.Image, server.Spec.BackendReplicas = images.Server, &two
	}))
	ns.AwaitSettled(t, served)
	backend := recordBackend(t, ns)
	servers := ns.Record(t, harness.FormOf(harness.ServerItself).Resource)
	pods := ns.Record(t, corev1.SchemeGroupVersion.WithResource("pods"))
	attack(t, ns, served, images.Server, 1)

	began := time.Now()
	rounds := 20
	if testing.Short() {
		rounds = 6
	}
	var policy string
	for round := 1; round <= rounds; round++ {
		if round == rounds/2+1 {
			policy = installPolicies(t, ns, served)
			grantUpstreamRole(t, ns, served)
		}
		changed := ns.Edit(t, served, func(server *v1beta1.MCPServer) {
			server.Spec.Image = other(server.Spec.Image)
		})
		// A new one starts at once; those that have failed a few times wait for longer and longer.
		if err := ns.Core.CoreV1().Pods(ns.Name).DeleteCollection(t.Context(), metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: "app=" + legacy}); err != nil {
			t.Fatal(err)
		}
		awaitRollout(t, ns, changed.Spec.Image)
		// On a slow node, an attacker may not have begun when its pod is deleted, or be refused by the fence of the other half.
		harness.Eventually(t, "the attacker of this round has tried", func(context.Context) error {
			if tried, _ := writesOf(requestsOf(t, ns, mark)); len(tried) < round {
				return fmt.Errorf("%d attempts in %d rounds", len(tried), round)
			}
			return nil
		})
	}
	server := ns.AwaitSettled(t, served)
	took := harness.Since(began)

	tried, ours := writesOf(requestsOf(t, ns, mark))
	byRole, byPolicy := checkRefusedByEither(t, tried, policy, rounds/2)
	for _, r := range ours {
		t.Errorf("a runner of Freehold's wrote: %v", r)
	}
	generations := generationsOf(t, servers, rounds)
	versions := backend.checkOwners(t, server)
	checkImages(t, harness.Named(served, backend[harness.Backend].Complete(t)), generations)
	started, again := checkTogether(t, pods.Complete(t), generations)
	if !meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionFieldsOwned) {
		t.Errorf("there is a conflict: %+v", server.Status.Conditions)
	}
	checkAnswers(t, ns, "1") // After an even number of changes.
	t.Logf("%d rounds in %v, in each of which an older and a newer proxy were alive together; %d versions of the backend", rounds, took, versions)
	t.Logf("%d attempts of the attackers, %d refused by the Role and %d by the policy; %d attackers, started again by the kubelet %d times",
		len(tried), byRole, byPolicy, started, again)
	t.Logf("%d attempts of Freehold's proxies, started again by the kubelet %d times", len(ours), startedAgain(t, ns, "mcpserver"))
}

// checkRefusedByEither checks that each of the two fences refused one attempt in each of its rounds, or more, and
// that all were refused.
func checkRefusedByEither(t *testing.T, tried []request, policy string, rounds int) (byRole, byPolicy int) {
	t.Helper()
	for _, r := range tried {
		if strings.Contains(r.answer, refusedByRole) {
			byRole++
			checkRefused(t, []request{r}, refusedByRole)
			continue
		}
		byPolicy++
		checkRefused(t, []request{r}, refusedByPolicy(policy))
	}
	if byRole < rounds || byPolicy < rounds {
		t.Errorf("the Role refused %d attempts and the policy %d", byRole, byPolicy)
	}
	return byRole, byPolicy
}

// other is the image that it is not.
func other(image string) string {
	if image == images.Server {
		return images.NextServer
	}
	return images.Server
}

// awaitRollout waits until a proxy for the image is available.
func awaitRollout(t *testing.T, ns *harness.Namespace, image string) {
	t.Helper()
	harness.Eventually(t, "the proxy for "+image, func(ctx context.Context) error {
		d, err := ns.Core.AppsV1().Deployments(ns.Name).Get(ctx, served, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return rolledOut(d, image)
	})
}

func rolledOut(d *appsv1.Deployment, image string) error {
	if args := d.Spec.Template.Spec.Containers[0].Args; args[len(args)-1] != image {
		return fmt.Errorf("it is for %v", args)
	}
	// The pods that are not up to date are the older ones. One of them goes once a new one is available.
	if status := d.Status; status.ObservedGeneration != d.Generation || status.UpdatedReplicas != *d.Spec.Replicas ||
		status.Replicas != status.UpdatedReplicas {
		return fmt.Errorf("it is on its way: %+v", status)
	}
	return nil
}

// generation is when an MCPServer asked for an image.
type generation struct {
	number int64
	from   harness.Revision
	image  string
}

func generationsOf(t *testing.T, servers *harness.History, changes int) []generation {
	t.Helper()
	var generations []generation
	for _, v := range harness.Named(served, servers.Complete(t)) {
		if n := len(generations); n > 0 && generations[n-1].number == v.GetGeneration() {
			continue
		}
		var server v1beta1.MCPServer
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(v.Object, &server); err != nil {
			t.Fatal(err)
		}
		generations = append(generations, generation{v.GetGeneration(), v.Revision, server.Spec.Image})
	}
	if len(generations) != changes+1 {
		t.Fatalf("the MCPServer had %d generations, want %d", len(generations), changes+1)
	}
	return generations
}

// checkImages checks that the StatefulSet went through the images as the MCPServer did: each came after the MCPServer
// had asked for it, and none came back once the next was there.
func checkImages(t *testing.T, statefulSets []harness.Version, generations []generation) {
	t.Helper()
	at := -1
	for _, v := range statefulSets {
		image := backendImage(t, v)
		if at < 0 || image != generations[at].image {
			at++
			if at == len(generations) {
				t.Fatalf("an old image, %s, is back in version %d", image, v.Revision)
			}
		}
		asked := generations[at]
		if image != asked.image || v.Revision < asked.from && at > 0 {
			t.Errorf("version %d has image %s; generation %d asked for %s at %d", v.Revision, image, asked.number, asked.image, asked.from)
		}
		source := v.GetAnnotations()[v1beta1.AnnotationSource]
		if _, number, _ := strings.Cut(source, "/"); number != fmt.Sprint(asked.number) {
			t.Errorf("version %d has the image of generation %d, and comes from %s", v.Revision, asked.number, source)
		}
	}
	if at != len(generations)-1 {
		t.Errorf("the StatefulSet had the images of %d generations, want %d", at+1, len(generations))
	}
}

// checkTogether checks that in each generation but the first a proxy of that generation ran while one of an older
// generation still did. It returns how many attackers there were, and how often the kubelet has started them again.
func checkTogether(t *testing.T, pods []harness.Version, generations []generation) (attackers int, again int32) {
	t.Helper()
	type state struct {
		made    harness.Revision
		running bool
	}
	states, legacies, together := map[string]*state{}, map[string]int32{}, map[int64]string{}
	at := 0
	for _, v := range pods {
		for at+1 < len(generations) && v.Revision >= generations[at+1].from {
			at++
		}
		var pod corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(v.Object, &pod); err != nil {
			t.Fatal(err)
		}
		if isLegacy(pod.Name) && len(pod.Status.ContainerStatuses) > 0 {
			legacies[pod.Name] = max(legacies[pod.Name], pod.Status.ContainerStatuses[0].RestartCount)
		}
		if pod.Labels["app"] != "mcpserver" {
			continue
		}
		if states[pod.Name] == nil {
			states[pod.Name] = &state{made: v.Revision}
		}
		states[pod.Name].running = !v.Deleted && len(pod.Status.ContainerStatuses) == 1 &&
			pod.Status.ContainerStatuses[0].State.Running != nil
		var older, newer string
		for name, state := range states {
			switch {
			case !state.running:
			case state.made < generations[at].from:
				older = name
			default:
				newer = name
			}
		}
		if at > 0 && older != "" && newer != "" {
			together[generations[at].number] = older + " and " + newer
		}
	}
	for _, generation := range generations[1:] {
		if together[generation.number] == "" {
			t.Errorf("generation %d: no older proxy was alive together with a newer one", generation.number)
		}
	}
	for _, count := range legacies {
		again += count
	}
	return len(legacies), again
}
