// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/freehold-dev/freehold/deploy"
	"github.com/freehold-dev/freehold/deploy/crd"
)

// Namespace and ServiceAccount of the operator, as deploy/ names them.
const (
	Namespace      = "freehold-system"
	ServiceAccount = "freehold"
)

// definitionKind is the kind of what defines kinds.
const definitionKind = "CustomResourceDefinition"

// installer is the field manager of what is installed.
const installer = "installer"

// pollInterval is how often the API server is asked whether it serves a new kind.
const pollInterval = 100 * time.Millisecond

// notLocal are kinds of deploy/install.yaml that make the operator's own pods. Here it is a process.
var notLocal = []string{"Deployment", "PodDisruptionBudget", "NetworkPolicy", "Service"}

// Install applies deploy/install.yaml without the operator's own pods, and returns when the API server serves the kinds that it
// defines. It can be repeated. It leaves a definition alone that has fields which Freehold's lacks, or that another field manager
// has installed otherwise, and writes that to progress.
func Install(ctx context.Context, config *rest.Config, progress io.Writer) error {
	objects, err := Decode([]byte(deploy.Install))
	if err != nil {
		return fmt.Errorf("cannot read install.yaml: %w", err)
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return slices.Contains(notLocal, o.GetKind())
	})
	if objects, err = withoutOthers(ctx, config, progress, objects); err != nil {
		return err
	}
	return Apply(ctx, config, Namespace, objects)
}

// Record applies the operator's Deployment without pods, as a record of the arguments with which it runs as a process: kubectl freehold
// reads them there.
func Record(ctx context.Context, config *rest.Config, args ...string) error {
	objects, err := Decode([]byte(deploy.Operator))
	if err != nil {
		return fmt.Errorf("cannot read the operator's Deployment: %w", err)
	}
	deployment := objects[0]
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if err != nil {
		return err
	}
	container := containers[0].(map[string]any)
	for _, arg := range args {
		container["args"] = append(container["args"].([]any), arg)
	}
	err = errors.Join(unstructured.SetNestedSlice(deployment.Object, containers, "spec", "template", "spec", "containers"),
		unstructured.SetNestedField(deployment.Object, int64(0), "spec", "replicas"))
	if err != nil {
		return err
	}
	return Apply(ctx, config, Namespace, objects)
}

// withoutOthers leaves those definitions out by which the API server would drop fields from what is stored, and those that it
// would refuse, since nothing is forced.
func withoutOthers(
	ctx context.Context, config *rest.Config, progress io.Writer, objects []*unstructured.Unstructured,
) (kept []*unstructured.Unstructured, err error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	definitions := client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	for _, object := range objects {
		why, err := standsInTheWay(ctx, definitions, object)
		if err != nil {
			return nil, err
		}
		if why != "" {
			fmt.Fprintf(progress, "freehold: CustomResourceDefinition %s stays as it is: %s\n", object.GetName(), why)
			continue
		}
		kept = append(kept, object)
	}
	return kept, nil
}

// standsInTheWay says why a definition in the cluster is not to be replaced by this one; nothing for any other object.
func standsInTheWay(ctx context.Context, definitions dynamic.ResourceInterface, object *unstructured.Unstructured) (string, error) {
	if object.GetKind() != definitionKind {
		return "", nil
	}
	live, err := definitions.Get(ctx, object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read CustomResourceDefinition %s: %w", object.GetName(), err)
	}
	if lost := crd.Replace(live, object).Narrowed; len(lost) > 0 {
		return "it has what Freehold's lacks: " + strings.Join(lost, ", "), nil
	}
	held, err := crd.Held(live, object, installer)
	if err != nil || len(held) == 0 {
		return "", err
	}
	return fmt.Sprintf("field manager %s owns %s", held[0].Owner.Manager, strings.Join(held[0].Fields, ", ")), nil
}

// Samples returns the sample MCPServers of deploy/samples.
func Samples() ([]*unstructured.Unstructured, error) {
	files, err := deploy.Samples.ReadDir("samples")
	if err != nil {
		return nil, err
	}
	var samples []*unstructured.Unstructured
	for _, file := range files {
		text, err := deploy.Samples.ReadFile("samples/" + file.Name())
		if err != nil {
			return nil, err
		}
		objects, err := Decode(text)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", file.Name(), err)
		}
		samples = append(samples, slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == "Kustomization"
		})...)
	}
	return samples, nil
}

// Decode reads the objects of a YAML file.
func Decode(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case object.Object != nil:
			objects = append(objects, object)
		}
	}
}

// Apply applies objects in their order and without force, those without a namespace in the given one. It waits for kinds
// that the API server does not serve yet, since a definition takes a moment to become one, and returns when the API server serves
// MCPServers and the kinds that the objects define.
func Apply(ctx context.Context, config *rest.Config, namespace string, objects []*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer))
	for _, object := range objects {
		mapping, err := mappingOf(ctx, mapper, object.GroupVersionKind())
		if err != nil {
			return fmt.Errorf("the API server does not serve %s: %w", object.GroupVersionKind(), err)
		}
		var resource dynamic.ResourceInterface = client.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			in := object.GetNamespace()
			if in == "" {
				in = namespace
			}
			resource = client.Resource(mapping.Resource).Namespace(in)
		}
		options := metav1.ApplyOptions{FieldManager: installer}
		if _, err := resource.Apply(ctx, object.GetName(), object, options); err != nil {
			return fmt.Errorf("cannot apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	defined := []schema.GroupVersionKind{{Group: "toolhive.stacklok.dev", Version: "v1beta1", Kind: "MCPServer"}}
	for _, object := range objects {
		if object.GetKind() == definitionKind {
			kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
			defined = append(defined, crd.Stored(object).GroupVersion().WithKind(kind))
		}
	}
	for _, kind := range defined {
		if _, err := mappingOf(ctx, mapper, kind); err != nil {
			return fmt.Errorf("the API server does not serve %s: %w", kind, err)
		}
	}
	return nil
}

func mappingOf(
	ctx context.Context, mapper *restmapper.DeferredDiscoveryRESTMapper, kind schema.GroupVersionKind,
) (mapping *meta.RESTMapping, err error) {
	waited := wait.PollUntilContextTimeout(ctx, pollInterval, 30*time.Second, true, func(context.Context) (bool, error) {
		if mapping, err = mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
			mapper.Reset()
			return false, nil
		}
		return true, nil
	})
	if waited != nil && err == nil {
		err = waited
	}
	return mapping, err
}
