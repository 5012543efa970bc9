// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/version"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/runconfig"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

const (
	// sinceRestarts is the first release of ToolHive whose operator restarts a proxy that has no StatefulSet.
	sinceRestarts = "v0.45.0"
	// podPatch is the flag with the pod template that a user asks for.
	podPatch = "--k8s-pod-patch="
)

// needsRunners reports whether the operator of a release of ToolHive comes to rest only if proxyrunners run.
func needsRunners(release string) bool {
	return version.MustParseSemantic(release).AtLeast(version.MustParseSemantic(sinceRestarts))
}

// runners plays the proxyrunners of ToolHive, since pods do not run here. It begins when a pod appears: a real one has written before its
// pod is ready, and kwok makes pods ready at once. It does not ask every five seconds whether the backend runs, as real ones do beside
// either operator.
type runners struct {
	core  kubernetes.Interface
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]
	say   func(format string, args ...any)
}

// playRunners begins to play the proxyrunners of all namespaces, until end is called.
func (s *site) playRunners(ctx context.Context, say func(format string, args ...any)) (end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	r := &runners{core: s.core, say: say, queue: workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]())}
	factory := informers.NewSharedInformerFactoryWithOptions(s.core, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = render.AnyProxySelector()
	}))
	var working sync.WaitGroup
	end = func() {
		cancel()
		r.queue.ShutDown()
		working.Wait()
		factory.Shutdown()
	}
	pods := factory.Core().V1().Pods()
	handle, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		if pod, ok := obj.(*corev1.Pod); ok {
			r.queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		}
	}})
	if err != nil {
		end()
		return nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), handle.HasSynced) {
		end()
		return nil, fmt.Errorf("the watch of proxies did not start: %w", context.Cause(ctx))
	}
	for range creators {
		working.Go(func() {
			for r.next(ctx, func(key types.NamespacedName) (*corev1.Pod, error) {
				return pods.Lister().Pods(key.Namespace).Get(key.Name)
			}) {
			}
		})
	}
	return end, nil
}

// next plays the proxyrunner of one pod, and reports whether there may be more. A real one ends after an error and is started again.
func (r *runners) next(ctx context.Context, get func(types.NamespacedName) (*corev1.Pod, error)) bool {
	key, shutdown := r.queue.Get()
	if shutdown {
		return false
	}
	defer r.queue.Done(key)
	pod, err := get(key)
	if err == nil && pod.DeletionTimestamp == nil {
		err = r.play(ctx, pod)
	}
	switch {
	// A pod, or the MCPServer that it is of, may be gone by now.
	case err == nil, pod == nil, ctx.Err() != nil:
		r.queue.Forget(key)
		return true
	case !apierrors.IsNotFound(err):
		r.say("the played proxyrunner %s: %v", key, err)
	}
	r.queue.AddRateLimited(key)
	return true
}

// play does what the proxyrunner in a pod does at its start.
func (r *runners) play(ctx context.Context, pod *corev1.Pod) error {
	i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "runconfig" && v.ConfigMap != nil })
	if i < 0 {
		return errors.New("it has no RunConfig")
	}
	config, err := r.core.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, pod.Spec.Volumes[i].ConfigMap.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	b, err := readBackend(&pod.ObjectMeta, &pod.Spec, config.Data[runconfig.Key])
	if err != nil {
		return err
	}
	sets := r.core.AppsV1().StatefulSets(pod.Namespace)
	live, err := sets.Get(ctx, b.config.ContainerName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	case takeover.Gate(live.Spec.Template.Annotations[v1beta1.AnnotationGeneration]) > b.generation:
		return nil // A newer proxy has written already.
	}
	options := metav1.ApplyOptions{FieldManager: managers.ToolHiveRunner, Force: true}
	set, err := sets.Apply(ctx, b.statefulSet(pod.Namespace), options)
	if err != nil {
		return err
	}
	for _, service := range b.services(pod.Namespace, set.UID) {
		if _, err := r.core.CoreV1().Services(pod.Namespace).Apply(ctx, service, options); err != nil {
			return err
		}
	}
	return nil
}

// backend is what a proxyrunner knows of its backend.
type backend struct {
	config     runconfig.RunConfig
	generation int64
	template   corev1ac.PodTemplateSpecApplyConfiguration
}

// readBackend reads the pod of a proxy, or its template, and its RunConfig.
func readBackend(meta *metav1.ObjectMeta, spec *corev1.PodSpec, document string) (*backend, error) {
	b := &backend{generation: takeover.Gate(meta.Annotations[v1beta1.AnnotationGeneration])}
	if err := json.Unmarshal([]byte(document), &b.config); err != nil {
		return nil, fmt.Errorf("cannot read the RunConfig: %w", err)
	}
	for _, arg := range spec.Containers[0].Args {
		if patch, ok := strings.CutPrefix(arg, podPatch); ok {
			if err := json.Unmarshal([]byte(patch), &b.template); err != nil {
				return nil, fmt.Errorf("cannot read the pod template: %w", err)
			}
		}
	}
	return b, nil
}

// http reports whether the backend listens itself.
func (b *backend) http() bool { return b.config.Transport != v1beta1.TransportStdio }

// labels are those of all objects.
func (b *backend) labels() map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, b.config.ContainerLabels)
	labels["app"], labels["toolhive"] = b.config.ContainerName, "true"
	return labels
}

// selector selects the pods of the backend.
func (b *backend) selector() map[string]string {
	return map[string]string{"app": b.config.ContainerName}
}

// env are the plain variables, in alphabetical order.
func (b *backend) env() (env []*corev1ac.EnvVarApplyConfiguration) {
	values := map[string]string{}
	maps.Copy(values, b.config.EnvVars)
	if b.http() {
		values["MCP_HOST"] = b.config.TargetHost
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		env = append(env, corev1ac.EnvVar().WithName(name).WithValue(values[name]))
	}
	return env
}

// user is the user and the group that backends run as.
const user = 1000

// statefulSet is what ToolHive's proxyrunner applies for an MCPServer that has no security context and no number of backends, with
// transport stdio or streamable-http. It completes the pod template that was read, so it is called once.
func (b *backend) statefulSet(namespace string) *appsv1ac.StatefulSetApplyConfiguration {
	template := &b.template
	template.WithLabels(b.labels()).WithAnnotations(map[string]string{v1beta1.AnnotationGeneration: strconv.FormatInt(b.generation, 10)})
	if template.Spec == nil {
		template.WithSpec(corev1ac.PodSpec())
	}
	profile := corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault)
	template.Spec.WithRestartPolicy(corev1.RestartPolicyAlways).WithSecurityContext(corev1ac.PodSecurityContext().
		WithRunAsNonRoot(true).WithRunAsUser(user).WithRunAsGroup(user).WithFSGroup(user).WithSeccompProfile(profile))
	containers := template.Spec.Containers
	i := slices.IndexFunc(containers, func(c corev1ac.ContainerApplyConfiguration) bool { return c.Name != nil && *c.Name == "mcp" })
	if i < 0 {
		i = len(containers)
		template.Spec.WithContainers(corev1ac.Container().WithName("mcp"))
	}
	template.Spec.Containers[i].WithImage(b.config.Image).WithArgs(b.config.CmdArgs...).WithEnv(b.env()...).
		WithStdin(!b.http()).WithTTY(false).WithSecurityContext(corev1ac.SecurityContext().
		WithPrivileged(false).WithAllowPrivilegeEscalation(false).WithReadOnlyRootFilesystem(true).
		WithRunAsNonRoot(true).WithRunAsUser(user).WithRunAsGroup(user).WithSeccompProfile(profile).
		WithCapabilities(corev1ac.Capabilities().WithDrop("ALL")))
	return appsv1ac.StatefulSet(b.config.ContainerName, namespace).WithLabels(b.labels()).WithSpec(appsv1ac.StatefulSetSpec().
		WithServiceName(b.config.ContainerName).WithSelector(metav1ac.LabelSelector().WithMatchLabels(b.selector())).WithTemplate(template))
}

// services are what ToolHive's proxyrunner applies for a backend that listens itself. They belong to its StatefulSet.
func (b *backend) services(namespace string, owner types.UID) []*corev1ac.ServiceApplyConfiguration {
	if !b.http() {
		return nil
	}
	service := func(name string) *corev1ac.ServiceApplyConfiguration {
		port := corev1ac.ServicePort().WithName(fmt.Sprintf("port-%d", b.config.TargetPort)).WithPort(b.config.TargetPort).
			WithTargetPort(intstr.FromInt32(b.config.TargetPort)).WithProtocol(corev1.ProtocolTCP)
		set := metav1ac.OwnerReference().WithAPIVersion("apps/v1").WithKind(managers.StatefulSet.Kind).WithName(b.config.ContainerName).
			WithUID(owner).WithController(true).WithBlockOwnerDeletion(true)
		return corev1ac.Service(name, namespace).WithLabels(b.labels()).WithOwnerReferences(set).WithSpec(
			corev1ac.ServiceSpec().WithSelector(b.selector()).WithPorts(port).WithType(corev1.ServiceTypeClusterIP))
	}
	headless, pinned := service(inventory.HeadlessService.Name(b.config.ContainerName)), service(inventory.BackendService.Name(b.config.ContainerName))
	headless.Spec.WithClusterIP(corev1.ClusterIPNone)
	pinned.Spec.WithSessionAffinity(corev1.ServiceAffinityClientIP).WithSessionAffinityConfig(
		corev1ac.SessionAffinityConfig().WithClientIP(corev1ac.ClientIPConfig().WithTimeoutSeconds(1800)))
	return []*corev1ac.ServiceApplyConfiguration{headless, pinned}
}
