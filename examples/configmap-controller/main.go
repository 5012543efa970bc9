// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Configmap-controller makes a ConfigMap of each Greeting, a kind of its own (crd.yaml), with Freehold's packages as a
// library. It owns one key and the owner reference and never forces: who holds the key instead is told in the status.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/applyconfigurations"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

var path = fieldmanager.Path

var (
	greetings = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "greetings"}
	configMap = schema.GroupKind{Kind: "ConfigMap"}
	greeter   = fieldmanager.Writer{Name: "greeter", Kind: configMap, Claim: fieldmanager.Claim{Within: []fieldpath.Path{
		path("data", "greeting"), path("metadata", "ownerReferences"), path("metadata", "annotations", source),
	}}}
	editor   = fieldmanager.Writer{Name: "greeter-ownership", Kind: configMap} // edits managedFields, and owns nothing
	reporter = fieldmanager.Writer{
		Name: "greeter-status", Kind: schema.GroupKind{Group: "example.com", Kind: "Greeting"}, Subresource: "status",
		Claim: fieldmanager.Claim{Within: []fieldpath.Path{path("status", "problem")}},
	}
)

type intent = corev1ac.ConfigMapApplyConfiguration

const source = "example.com/greeting" // the annotation that tells which generation of the Greeting was applied last

type controller struct {
	greetings  dynamic.ResourceInterface
	known      cache.SharedIndexInformer // Greetings
	configMaps cache.SharedIndexInformer
	applier    *apply.Applier
	writer     apply.Writer
}

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig of the cluster; empty for that of the pod")
	namespace := flag.String("namespace", "default", "namespace of the Greetings")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		klog.Fatal(err)
	}
	core, other := kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	typed := informers.NewSharedInformerFactoryWithOptions(core, 0, informers.WithNamespace(*namespace))
	untyped := dynamicinformer.NewFilteredDynamicSharedInformerFactory(other, 0, *namespace, nil)
	c := &controller{
		greetings: other.Resource(greetings).Namespace(*namespace), known: untyped.ForResource(greetings).Informer(),
		configMaps: typed.Core().V1().ConfigMaps().Informer(), applier: apply.NewApplier(nil),
	}
	registry := &fieldmanager.Registry{}
	registry.MustRegister(greeter, editor, reporter)
	client := core.CoreV1().ConfigMaps(*namespace)
	c.writer, err = apply.NewWriter(registry, greeter, apply.Target[*corev1.ConfigMap, *intent]{
		Apply: func(ctx context.Context, _ string, config *intent, options metav1.ApplyOptions) (*corev1.ConfigMap, error) {
			return client.Apply(ctx, config, options)
		},
		Edits: apply.Edits[*corev1.ConfigMap]{Manager: editor.Name, Clock: clock.RealClock{}, Send: func(
			ctx context.Context, _, name string, patch []byte, options metav1.PatchOptions,
		) (*corev1.ConfigMap, error) {
			return client.Patch(ctx, name, types.JSONPatchType, patch, options)
		}},
		Extract: corev1ac.ExtractConfigMap, Schema: applyconfigurations.NewTypeConverter(scheme.Scheme), Source: source,
	})
	if err != nil {
		klog.Fatal(err)
	}
	c.run(ctx)
}

// run calls sync for every Greeting or ConfigMap that changes, by the name that both have, until the context ends.
func (c *controller) run(ctx context.Context) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	context.AfterFunc(ctx, queue.ShutDown)
	changed := func(obj any) {
		if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
			queue.Add(name)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, now any) { changed(now) }, DeleteFunc: changed}
	for _, informer := range []cache.SharedIndexInformer{c.configMaps, c.known} {
		_, _ = informer.AddEventHandler(handler)
		go informer.RunWithContext(ctx)
	}
	cache.WaitForCacheSync(ctx.Done(), c.configMaps.HasSynced, c.known.HasSynced)
	for name, ended := queue.Get(); !ended; name, ended = queue.Get() {
		if err := c.sync(ctx, name); err != nil {
			klog.ErrorS(err, "Trying again", "greeting", name)
			queue.AddRateLimited(name)
		} else {
			queue.Forget(name)
		}
		queue.Done(name)
	}
}

// sync is one pass. An error means that it is to be tried again; everything else waits for an event.
func (c *controller) sync(ctx context.Context, name cache.ObjectName) error {
	ref := apply.ObjectRef{Kind: configMap, NamespacedName: name.AsNamespacedName()}
	found, exists, err := c.known.GetStore().GetByKey(name.String())
	if err != nil || !exists {
		c.applier.Forget(ref) // The garbage collector deletes the ConfigMap.
		return err
	}
	if !c.applier.Written().Seen(ref, c.configMaps.LastSyncResourceVersion()) {
		return nil // The event of our own last write comes here again.
	}
	greeting := found.(*unstructured.Unstructured)
	text, _, _ := unstructured.NestedString(greeting.Object, "spec", "text")
	request := apply.Request{
		Object: ref, Source: apply.Source{UID: greeting.GetUID(), Generation: greeting.GetGeneration()},
		Config: corev1ac.ConfigMap(name.Name, name.Namespace).WithData(map[string]string{"greeting": text}).
			WithOwnerReferences(metav1ac.OwnerReference().WithAPIVersion(greeting.GetAPIVersion()).WithKind(greeting.GetKind()).
				WithName(name.Name).WithUID(greeting.GetUID()).WithController(true)),
	}
	if live, exists, err := c.configMaps.GetStore().GetByKey(name.String()); err == nil && exists {
		request.Live = live.(*corev1.ConfigMap)
		if ownership.ApplyEntry(request.Live, greeter.Name, "") == nil && !metav1.IsControlledBy(request.Live, greeting) {
			return c.report(ctx, greeting, "a ConfigMap of this name is there already and not ours")
		}
	}
	out := c.applier.Sync(ctx, c.writer, request)
	policy := apply.Policies()[apply.ClassOf(out.Err)]
	switch {
	case out.Err != nil && policy.Retry != apply.RetryOnChange:
		return out.Err
	case policy.Reason != "": // A refusal without one is no news to the user.
		return c.report(ctx, greeting, out.Err.Error())
	}
	return c.report(ctx, greeting, "")
}

// report applies the one field of the status that is ours.
func (c *controller) report(ctx context.Context, greeting *unstructured.Unstructured, problem string) error {
	if told, _, _ := unstructured.NestedString(greeting.Object, "status", "problem"); told == problem {
		return nil
	}
	_, err := c.greetings.ApplyStatus(ctx, greeting.GetName(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": greeting.GetAPIVersion(), "kind": greeting.GetKind(),
		"metadata": map[string]any{"name": greeting.GetName(), "uid": string(greeting.GetUID())},
		"status":   map[string]any{"problem": problem},
	}}, metav1.ApplyOptions{FieldManager: reporter.Name})
	return err
}
