// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Configmap-controller makes a ConfigMap of each Greeting, a kind of its own (crd.yaml), with Freehold's packages as a
// library. It owns one key and the owner reference and never forces: the status names another manager that owns the key.
package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/signal"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
)

const source = "example.com/greeting" // the annotation that records which generation of the Greeting was applied last

var (
	greetings = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "greetings"}
	configMap = schema.GroupKind{Kind: "ConfigMap"}
	greeter   = fieldmanager.Writer{Name: "greeter", Kind: configMap, Claim: fieldmanager.Within(
		fieldmanager.Path("data", "greeting"), fieldmanager.Path("metadata", "ownerReferences"),
		fieldmanager.Path("metadata", "annotations", source),
	)}
	editor   = fieldmanager.Writer{Name: "greeter-ownership", Kind: configMap} // edits managedFields, and owns nothing
	reporter = fieldmanager.Writer{
		Name: "greeter-status", Kind: schema.GroupKind{Group: "example.com", Kind: "Greeting"}, Subresource: "status",
		Claim: fieldmanager.Within(fieldmanager.Path("status", "problem")),
	}
)

type controller struct {
	greetings         dynamic.ResourceInterface
	known, configMaps cache.SharedIndexInformer // known holds Greetings
	applier           *apply.Applier
	writer            apply.Writer
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
	registry, kinds := &fieldmanager.Registry{}, applyconfigurations.NewTypeConverter(scheme.Scheme)
	registry.MustRegister(greeter, editor, reporter)
	target := apply.NewTarget(core.CoreV1().ConfigMaps, corev1ac.ExtractConfigMap, kinds, editor.Name)
	target.Source = source
	c := &controller{
		greetings: other.Resource(greetings).Namespace(*namespace), known: untyped.ForResource(greetings).Informer(),
		configMaps: typed.Core().V1().ConfigMaps().Informer(), applier: apply.NewApplier(nil),
		writer: apply.MustNewWriter(registry, greeter, target),
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

// sync is one pass. An error means that it is to be tried again, which sends nothing while a refusal stands.
func (c *controller) sync(ctx context.Context, name cache.ObjectName) error {
	ref := apply.NewObjectRef(configMap, name.Namespace, name.Name)
	found, exists, err := c.known.GetStore().GetByKey(name.String())
	if err != nil || !exists {
		c.applier.Forget(ref) // The garbage collector deletes the ConfigMap.
		return err
	}
	live, current, err := c.applier.GetCurrent(ref, c.configMaps.GetStore())
	if err != nil || !current {
		return err // The event of our own last write comes here again.
	}
	greeting := found.(*unstructured.Unstructured)
	text, _, _ := unstructured.NestedString(greeting.Object, "spec", "text")
	out := c.applier.Sync(ctx, c.writer, apply.Request{
		Object: ref, Observed: apply.Observed{Live: live}, Source: apply.Source{UID: greeting.GetUID(), Generation: greeting.GetGeneration()},
		Preconditions: apply.Preconditions{Mine: func(live metav1.Object) bool { return metav1.IsControlledBy(live, greeting) }},
		Config: corev1ac.ConfigMap(name.Name, name.Namespace).WithData(map[string]string{"greeting": text}).
			WithOwnerReferences(metav1ac.OwnerReference().WithAPIVersion(greeting.GetAPIVersion()).WithKind(greeting.GetKind()).
				WithName(name.Name).WithUID(greeting.GetUID()).WithController(true)),
	})
	klog.InfoS("Synced the ConfigMap", "greeting", name, "action", out.Action)
	if out.Err == nil || out.Problem() != "" { // Anything else should be over in a moment.
		err = c.report(ctx, greeting, out.Problem())
	}
	return errors.Join(err, out.Err)
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
