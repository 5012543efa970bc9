// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/deploy/policy"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/test/harness"
)

// guarded is the MCPServer whose proxies others try to have an older policy.
const guarded = "guarded"

// earlier is what an editor of workloads finds of an MCPServer whose policy has changed.
type earlier struct {
	*harness.Namespace
	kubectl *harness.Kubectl
	// deployment is the proxy's, revision is its ReplicaSet of before the change, and pod is a proxy of after it.
	deployment *appsv1.Deployment
	revision   *appsv1.ReplicaSet
	pod        *corev1.Pod
	// foreign are a Deployment and a pod that are of no MCPServer.
	foreign    *appsv1.Deployment
	foreignPod *corev1.Pod
}

// newEarlier makes the MCPServer and changes its policy.
func newEarlier(t *testing.T) *earlier {
	t.Helper()
	ns := env.Namespace(t)
	ns.Operate(t)
	ns.Create(t, harness.HTTPServer(guarded, harness.InlineAuthorization))
	ns.AwaitSettled(t, guarded)
	ns.Edit(t, guarded, func(server *v1beta1.MCPServer) {
		server.Spec.AuthzConfig.Inline.Policies = []string{"forbid(principal, action, resource);"}
	})
	ns.AwaitSettled(t, guarded)
	e := &earlier{Namespace: ns, kubectl: ns.Kubectl(t)}
	apps, core := ns.Core.AppsV1(), ns.Core.CoreV1()
	var err error
	if e.deployment, err = apps.Deployments(ns.Name).Get(t.Context(), guarded, metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	selector := metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(e.deployment.Spec.Selector)}
	sets, err := apps.ReplicaSets(ns.Name).List(t.Context(), selector)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sets.Items {
		if *sets.Items[i].Spec.Replicas == 0 {
			e.revision = &sets.Items[i]
		}
	}
	pods, err := core.Pods(ns.Name).List(t.Context(), selector)
	if err != nil || len(sets.Items) != 2 || e.revision == nil || len(pods.Items) == 0 {
		t.Fatalf("%d ReplicaSets and %d pods: %v", len(sets.Items), len(pods.Items), err)
	}
	e.pod = &pods.Items[0]

	e.foreign = e.another("foreign")
	if e.foreign, err = apps.Deployments(ns.Name).Create(t.Context(), e.foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.foreignPod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}, Spec: corev1.PodSpec{Containers: mainContainer()}}
	if e.foreignPod, err = core.Pods(ns.Name).Create(t.Context(), e.foreignPod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return e
}

func mainContainer() []corev1.Container {
	return []corev1.Container{{Name: "main", Image: harness.OtherImage}}
}

// another is a Deployment of no MCPServer, with no pods.
func (e *earlier) another(name string) *appsv1.Deployment {
	none, labels := int32(0), map[string]string{"mine": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: mainContainer()}},
	}}
}

// template is the pod template of before the change of the policy, as a Deployment has it.
func (e *earlier) template() corev1.PodTemplateSpec {
	template := *e.revision.Spec.Template.DeepCopy()
	delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return template
}

// client is a user who may do everything, under a name.
func (e *earlier) client(t *testing.T, name string) kubernetes.Interface {
	t.Helper()
	config := restclient.CopyConfig(e.Config)
	config.Impersonate = restclient.ImpersonationConfig{UserName: name, Groups: []string{"system:masters"}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Attempts that change nothing.
var (
	dryCreate = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	dryUpdate = metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}
	dryPatch  = metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: harness.Hand}
)

// edits are merge patches and strategic merge patches of the proxy's Deployment by which its pods run something else than the MCPServer
// asks for, or stay those of an earlier template.
func (e *earlier) edits() map[string]string {
	inPod := func(spec string) string { return `{"spec":{"template":{"spec":` + spec + `}}}` }
	inProxy := func(fields string) string { return inPod(`{"containers":[{"name":"toolhive",` + fields + `}]}`) }
	older := ""
	for _, volume := range e.revision.Spec.Template.Spec.Volumes {
		if volume.Name == "runconfig" {
			older = volume.ConfigMap.Name
		}
	}
	return map[string]string{
		"the older RunConfig":        inPod(`{"volumes":[{"name":"runconfig","configMap":{"name":"` + older + `"}}]}`),
		"a file over the RunConfig":  inPod(`{"volumes":[{"name":"mine","configMap":{"name":"mine"}}],"containers":[{"name":"toolhive","volumeMounts":[{"name":"mine","mountPath":"/etc/runconfig/runconfig.json","subPath":"runconfig.json"}]}]}`),
		"an argument":                inProxy(`"args":["run","--authz-config=/tmp/mine","example.com/mcp:1"]`),
		"a variable":                 inProxy(`"env":[{"name":"MINE","value":"yes"}]`),
		"a command":                  inProxy(`"command":["/bin/sh"]`),
		"an image":                   inProxy(`"image":"example.com/other:1"`),
		"another ServiceAccount":     inPod(`{"serviceAccountName":"default","serviceAccount":"default"}`),
		"another address of a name":  inPod(`{"hostAliases":[{"ip":"192.0.2.1","hostnames":["issuer.example.com"]}]}`),
		"a sidecar":                  inPod(`{"containers":[{"name":"mine","image":"example.com/mine:1"}]}`),
		"a node that does not exist": inPod(`{"nodeSelector":{"kubernetes.io/hostname":"none"}}`),
		"an annotation of the pods":  `{"spec":{"template":{"metadata":{"annotations":{"sidecar.example.com/inject":"mine"}}}}}`,
		"one annotation less":        `{"spec":{"template":{"metadata":{"annotations":{"` + v1beta1.AnnotationRunConfigChecksum + `":null}}}}}`,
		"a label of the pods":        `{"spec":{"template":{"metadata":{"labels":{"mine":"yes"}}}}}`,
		"a pause":                    `{"spec":{"paused":true}}`,
		"a long wait for readiness":  `{"spec":{"minReadySeconds":1000000,"progressDeadlineSeconds":1000001}}`,
	}
}

// ways are those in which an editor of workloads has requests answered by something else than the MCPServer asks for.
func (e *earlier) ways(ctx context.Context, t *testing.T) map[string]error {
	t.Helper()
	client := e.client(t, "editor")
	apps, pods := client.AppsV1(), client.CoreV1().Pods(e.Name)
	deployments, sets := apps.Deployments(e.Name), apps.ReplicaSets(e.Name)
	results := map[string]error{}

	_, results["kubectl rollout undo"] = e.kubectl.Try(ctx, harness.Call{Args: []string{"rollout", "undo", "deployment/" + guarded, "--dry-run=server"}})
	_, results["kubectl set image"] = e.kubectl.Try(ctx, harness.Call{Args: []string{"set", "image", "deployment/" + guarded, "toolhive=example.com/other:1", "--dry-run=server"}})
	put := e.deployment.DeepCopy()
	put.ResourceVersion, put.Spec.Template = "", e.template()
	_, results["a PUT of the earlier template"] = deployments.Update(ctx, put, dryUpdate)
	for what, patch := range e.edits() {
		_, results[what] = deployments.Patch(ctx, guarded, types.StrategicMergePatchType, []byte(patch), dryPatch)
	}
	_, results["a patch of scale and of a volume"] = deployments.Patch(ctx, guarded, types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/template/spec/volumes/0/configMap/name","value":"mine"}]`), dryPatch)

	other := e.another("other")
	other.Spec.Template = e.template()
	other.Spec.Selector.MatchLabels = e.deployment.Spec.Selector.MatchLabels
	_, results["another Deployment"] = deployments.Create(ctx, other, dryCreate)
	turned := e.foreign.DeepCopy()
	turned.ResourceVersion = ""
	maps.Copy(turned.Spec.Template.Labels, e.deployment.Spec.Selector.MatchLabels)
	_, results["a Deployment that becomes one"] = deployments.Update(ctx, turned, dryUpdate)

	_, results["kubectl scale of the earlier ReplicaSet"] = e.kubectl.Try(ctx, harness.Call{Args: []string{"scale", "replicaset/" + e.revision.Name, "--replicas=1", "--dry-run=server"}})
	_, results["a patch of the earlier ReplicaSet"] = sets.Patch(ctx, e.revision.Name, types.MergePatchType, []byte(`{"spec":{"replicas":1}}`), dryPatch)
	_, results["a patch of its scale"] = sets.Patch(ctx, e.revision.Name, types.MergePatchType, []byte(`{"spec":{"replicas":1}}`), dryPatch, "scale")
	_, results["a patch of its template"] = sets.Patch(ctx, e.revision.Name, types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"toolhive","image":"example.com/other:1"}]}}}}`), dryPatch)
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: *e.revision.Spec.DeepCopy()}
	_, results["another ReplicaSet"] = sets.Create(ctx, set, dryCreate)

	pod := e.earlierPod("other")
	_, results["a pod of the earlier template"] = pods.Create(ctx, pod, dryCreate)
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(e.revision, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	_, results["a pod that claims to be of the earlier ReplicaSet"] = pods.Create(ctx, pod, dryCreate)
	label := `{"metadata":{"labels":{"app":"mcpserver","toolhive":"true","toolhive-name":"` + guarded + `"}}}`
	_, results["a pod that becomes a proxy"] = pods.Patch(ctx, e.foreignPod.Name, types.MergePatchType, []byte(label), dryPatch)
	_, results["an image of a proxy's pod"] = pods.Patch(ctx, e.pod.Name, types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/spec/containers/0/image","value":"example.com/other:1"}]`), dryPatch)
	for name, kind := range map[string]string{"statefulset-controller": "StatefulSet", "job-controller": "Job", "replicaset-controller": "ReplicationController"} {
		pod.OwnerReferences[0].Kind = kind
		_, results["a pod of a "+kind] = e.client(t, "system:serviceaccount:kube-system:"+name).CoreV1().Pods(e.Name).Create(ctx, pod, dryCreate)
	}
	return results
}

// earlierPod is a pod as the earlier ReplicaSet would have them.
func (e *earlier) earlierPod(name string) *corev1.Pod {
	template := e.template()
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: template.Labels, Annotations: template.Annotations}, Spec: template.Spec}
}

// others are what an editor of workloads may do all the same.
func (e *earlier) others(ctx context.Context, t *testing.T) map[string]error {
	t.Helper()
	client := e.client(t, "editor")
	deployments, sets, pods := client.AppsV1().Deployments(e.Name), client.AppsV1().ReplicaSets(e.Name), client.CoreV1().Pods(e.Name)
	results := map[string]error{}
	patch := func(what, name, body string, subresources ...string) {
		_, results[what] = deployments.Patch(ctx, name, types.StrategicMergePatchType, []byte(body), dryPatch, subresources...)
	}
	patch("scale", guarded, `{"spec":{"replicas":3}}`, "scale")
	patch("a number of replicas", guarded, `{"spec":{"replicas":3}}`)
	patch("a restart", guarded, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-01T00:00:00Z"}}}}}`)
	patch("a shorter history", guarded, `{"spec":{"revisionHistoryLimit":0}}`)
	patch("a label and an annotation", guarded, `{"metadata":{"labels":{"mine":"yes"},"annotations":{"mine":"yes"}}}`)
	patch("no owners and no records", guarded, `{"metadata":{"ownerReferences":null,"managedFields":[{}]}}`)
	patch("another Deployment", e.foreign.Name, `{"spec":{"paused":true,"template":{"metadata":{"labels":{"app":"mcpserver"}},"spec":{"nodeSelector":{"a":"b"}}}}}`)
	same := e.deployment.DeepCopy()
	same.ResourceVersion = ""
	_, results["a PUT of what is there"] = deployments.Update(ctx, same, dryUpdate)
	results["a deletion"] = deployments.Delete(ctx, guarded, metav1.DeleteOptions{DryRun: dryUpdate.DryRun})

	_, results["a label of a ReplicaSet"] = sets.Patch(ctx, e.revision.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"mine":"yes"}}}`), dryPatch)
	results["a deletion of a ReplicaSet"] = sets.Delete(ctx, e.revision.Name, metav1.DeleteOptions{DryRun: dryUpdate.DryRun})
	_, results["a label of a proxy's pod"] = pods.Patch(ctx, e.pod.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"mine":"yes"}}}`), dryPatch)
	_, results["a proxy's pod that is put aside"] = pods.Patch(ctx, e.pod.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"app":null}}}`), dryPatch)
	results["a deletion of a proxy's pod"] = pods.Delete(ctx, e.pod.Name, metav1.DeleteOptions{DryRun: dryUpdate.DryRun})
	_, results["a label of another pod"] = pods.Patch(ctx, e.foreignPod.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"mcpserver"}}}`), dryPatch)
	backend := &corev1.Pod{Spec: corev1.PodSpec{Containers: mainContainer()}}
	backend.Name, backend.Labels = "backend", render.BackendLabels(harness.HTTPServer(guarded))
	_, results["a pod with the labels of a backend"] = pods.Create(ctx, backend, dryCreate)
	return results
}

// TestPolicyProxies lets an editor of Deployments, ReplicaSets and pods try each way to have requests answered by an earlier policy, or by
// something else, than the MCPServer asks for. Without the policy each is let pass; with it, each is refused, with what to do instead. What
// does not decide what the proxies run is let pass both times.
func TestPolicyProxies(t *testing.T) {
	t.Parallel()
	e := newEarlier(t)
	for what, err := range e.ways(t.Context(), t) {
		if err != nil {
			t.Errorf("without the policy, %s: %v", what, err)
		}
	}
	bound := installPolicyOf(t, e.Namespace, policy.Proxies)
	harness.Eventually(t, "the policy is asked", func(ctx context.Context) error {
		_, err := e.client(t, "editor").CoreV1().Pods(e.Name).Create(ctx, e.earlierPod("any"), dryCreate)
		return refusedBy(bound, err)
	})
	refused := e.ways(t.Context(), t)
	for _, what := range slices.Sorted(maps.Keys(refused)) {
		err := refused[what]
		if problem := refusedBy(bound, err); problem != nil {
			t.Errorf("%s: %v", what, problem)
		} else if !strings.Contains(err.Error(), "Edit MCPServer "+guarded+" instead") {
			t.Errorf("%s: the refusal does not tell what to do: %v", what, err)
		}
	}
	for what, err := range e.others(t.Context(), t) {
		if err != nil {
			t.Errorf("%s should be let pass: %v", what, err)
		}
	}
	if len(refused) < 30 {
		t.Errorf("only %d ways are tried", len(refused))
	}
}

// TestMountOverTheRunConfigStaysUnreported mounts a file of another client over the RunConfig, without the policy: Freehold owns no field of
// that mount, leaves it to who has added it, and reports nothing. The page about threats says so.
func TestMountOverTheRunConfigStaysUnreported(t *testing.T) {
	t.Parallel()
	e := newEarlier(t)
	patch := e.edits()["a file over the RunConfig"]
	deployments := e.Core.AppsV1().Deployments(e.Name)
	if _, err := deployments.Patch(t.Context(), guarded, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: harness.Hand}); err != nil {
		t.Fatal(err)
	}
	e.AwaitSettled(t, guarded)
	e.AwaitStatus(t, guarded, harness.Fine...)
	e.Quiet(t, e.Mark(t), harness.Calm)
	live, err := deployments.Get(t.Context(), guarded, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(live.Spec.Template.Spec.Containers[0].VolumeMounts, func(mount corev1.VolumeMount) bool { return mount.Name == "mine" }) {
		t.Errorf("the mount is gone: %+v", live.Spec.Template.Spec.Containers[0].VolumeMounts)
	}
}

// TestPolicyProxiesLetsKubernetesWork makes, edits, scales, restarts and deletes MCPServers, and the namespace, under the policy. Nobody who
// has to work is refused anything: the operator, the controllers of Deployments and ReplicaSets, garbage collection, an autoscaler.
func TestPolicyProxiesLetsKubernetesWork(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	bound := installPolicyOf(t, ns, policy.Proxies)
	editor := (&earlier{Namespace: ns}).client(t, "editor").CoreV1().Pods(ns.Name)
	harness.Eventually(t, "the policy is asked", func(ctx context.Context) error {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: mainContainer()}}
		pod.Name, pod.Labels = "any", render.ProxySelector("any")
		_, err := editor.Create(ctx, pod, dryCreate)
		return refusedBy(bound, err)
	})
	mark := ns.Mark(t)
	ns.Operate(t)
	const scaled, stdio = "scaled", "typed"
	ns.Create(t, harness.HTTPServer(scaled, harness.InlineAuthorization))
	ns.Create(t, harness.Server(stdio, v1beta1.TransportStdio))
	for _, name := range []string{scaled, stdio} {
		ns.AwaitSettled(t, name)
	}
	autoscale(t, ns, scaled, 2)
	ns.AwaitReplicas(t, harness.Proxy, scaled, 2)
	ns.Kubectl(t).Run(t, "rollout", "restart", "deployment/"+scaled)
	ns.AwaitSettled(t, scaled)
	ns.Edit(t, scaled, func(server *v1beta1.MCPServer) { server.Spec.AuthzConfig = nil })
	ns.Edit(t, stdio, func(server *v1beta1.MCPServer) { server.Spec.Image = harness.OtherImage })
	for _, name := range []string{scaled, stdio} {
		ns.AwaitSettled(t, name)
	}
	// The operator makes it again, and the controller adopts the ReplicaSets and the pods that are there.
	before := ns.MustObject(t, harness.Proxy, stdio).GetUID()
	orphan := metav1.DeletePropagationOrphan
	if err := ns.Objects(harness.Proxy).Delete(t.Context(), stdio, metav1.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the proxy is made again", func(ctx context.Context) error {
		object, err := ns.Object(ctx, harness.Proxy, stdio)
		if err == nil && object.GetUID() == before {
			err = errors.New("it is the one that was deleted")
		}
		return err
	})
	ns.AwaitSettled(t, stdio)

	ns.Delete(t, scaled, metav1.DeletePropagationForeground)
	ns.Delete(t, stdio, metav1.DeletePropagationBackground)
	for _, name := range []string{scaled, stdio} {
		ns.AwaitGone(t, name)
		awaitNoChildren(t, ns, name)
	}
	checkNobodyRefused(t, ns, mark)

	ns.Create(t, harness.HTTPServer("last"))
	ns.AwaitSettled(t, "last")
	if err := ns.Core.CoreV1().Namespaces().Delete(t.Context(), ns.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the namespace is gone", func(ctx context.Context) error {
		namespace, err := ns.Core.CoreV1().Namespaces().Get(ctx, ns.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("it is there: %+v", namespace.Status)
		}
		return err
	})
}
