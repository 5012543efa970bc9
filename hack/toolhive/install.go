// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package toolhive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/freehold-dev/freehold/hack/cluster/binaries"
	"github.com/freehold-dev/freehold/hack/operator"
)

// Namespace, ServiceAccount and ClusterRole of ToolHive's operator, as its chart names them.
const (
	Namespace      = "toolhive-system"
	ServiceAccount = "toolhive-operator"
	ClusterRole    = "toolhive-operator-manager-role"
)

// Where the module of ToolHive has its definitions, and the rights of its operator.
var (
	definitionsDir = filepath.Join("deploy", "charts", "operator-crds", "files", "crds")
	rightsFile     = filepath.Join("deploy", "charts", "operator", "templates", "clusterrole", "role.yaml")
)

// pollInterval is how often the API server is asked whether it serves a new kind, and the operator whether it is up.
const pollInterval = 100 * time.Millisecond

// installTimeout is how long the API server may take to serve new kinds.
const installTimeout = 30 * time.Second

var definitionResource = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// Install makes what ToolHive's operator needs but for its pods: the definitions that are not there, a namespace, a
// ServiceAccount and its rights. Definitions that are there, Freehold's for example, stay as they are. It returns
// when the API server serves all the kinds, and can be repeated.
func Install(ctx context.Context, config *rest.Config) error {
	source, err := binaries.Source(ctx, binaries.ToolHiveOperator)
	if err != nil {
		return err
	}
	definitions, err := definitionsIn(source)
	if err != nil {
		return err
	}
	rights, err := decodeFile(filepath.Join(source, rightsFile))
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	err = define(ctx, client.Resource(definitionResource), definitions, func(definition *unstructured.Unstructured) error {
		_, err := client.Resource(definitionResource).Create(ctx, definition, metav1.CreateOptions{FieldManager: helmManager})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return operator.Apply(ctx, config, Namespace, append(rights, accounts()...))
}

// Helm is a major version of Helm, by how that writes.
type Helm int

// Helm 3 creates objects, and Helm 4 applies them server-side, by default.
const (
	Helm3 Helm = 3
	Helm4 Helm = 4
)

// ReleaseOfDefinitions is the name of the Helm release that has the definitions, as ToolHive's documentation calls it.
const ReleaseOfDefinitions = "toolhive-operator-crds"

// helmManager is the field manager of both versions of Helm.
const helmManager = "helm"

// DefineByHelm makes the definitions of ToolHive's chart as Helm leaves them when it installs that: with the marks of the release, the
// annotation by which they outlive it, and Helm as their field manager. None may be there. It returns their names when the API server
// serves all the kinds.
func DefineByHelm(ctx context.Context, config *rest.Config, version Helm) (names []string, err error) {
	source, err := binaries.Source(ctx, binaries.ToolHiveOperator)
	if err != nil {
		return nil, err
	}
	definitions, err := definitionsIn(source)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	for _, definition := range definitions {
		annotations, labels := map[string]string{}, map[string]string{}
		maps.Copy(annotations, definition.GetAnnotations())
		maps.Copy(labels, definition.GetLabels())
		annotations["helm.sh/resource-policy"] = "keep"
		annotations["meta.helm.sh/release-name"], annotations["meta.helm.sh/release-namespace"] = ReleaseOfDefinitions, Namespace
		labels["app.kubernetes.io/managed-by"] = "Helm"
		definition.SetAnnotations(annotations)
		definition.SetLabels(labels)
		names = append(names, definition.GetName())
	}
	return names, define(ctx, client.Resource(definitionResource), definitions, func(definition *unstructured.Unstructured) (err error) {
		switch version {
		case Helm3:
			_, err = client.Resource(definitionResource).Create(ctx, definition, metav1.CreateOptions{FieldManager: helmManager})
		case Helm4:
			options := metav1.ApplyOptions{FieldManager: helmManager}
			_, err = client.Resource(definitionResource).Apply(ctx, definition.GetName(), definition, options)
		default:
			err = fmt.Errorf("no such version of Helm: %d", version)
		}
		return err
	})
}

// definitionsIn returns the definitions of all the kinds that ToolHive's operator watches. It needs them all: it ends
// when the API server does not serve one of them.
func definitionsIn(source string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(source, definitionsDir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("module ToolHive has no definitions in %s", definitionsDir)
	}
	var definitions []*unstructured.Unstructured
	for _, file := range files {
		objects, err := decodeFile(file)
		if err != nil {
			return nil, err
		}
		definitions = append(definitions, objects...)
	}
	return definitions, nil
}

func decodeFile(path string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	objects, err := operator.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	return objects, nil
}

// define makes the definitions, and waits until their kinds are served.
func define(
	ctx context.Context, client dynamic.ResourceInterface, definitions []*unstructured.Unstructured, install func(*unstructured.Unstructured) error,
) error {
	for _, definition := range definitions {
		if err := install(definition); err != nil {
			return fmt.Errorf("cannot define %s: %w", definition.GetName(), err)
		}
	}
	for _, definition := range definitions {
		var last error
		err := wait.PollUntilContextTimeout(ctx, pollInterval, installTimeout, true, func(ctx context.Context) (bool, error) {
			live, err := client.Get(ctx, definition.GetName(), metav1.GetOptions{})
			last = err
			return err == nil && established(live), nil
		})
		if err != nil {
			return fmt.Errorf("the API server does not serve %s: %w", definition.GetName(), errors.Join(err, last))
		}
	}
	return nil
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, err := unstructured.NestedSlice(definition.Object, "status", "conditions")
	if err != nil {
		return false
	}
	for _, item := range conditions {
		condition, ok := item.(map[string]any)
		if ok && condition["type"] == "Established" && condition["status"] == "True" {
			return true
		}
	}
	return false
}

// accounts returns the operator's namespace and ServiceAccount, and the binding of its rights, for all namespaces.
func accounts() []*unstructured.Unstructured {
	object := func(apiVersion, kind, name string, fields map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		maps.Copy(o.Object, fields)
		o.SetAPIVersion(apiVersion)
		o.SetKind(kind)
		o.SetName(name)
		return o
	}
	const rbac = "rbac.authorization.k8s.io"
	return []*unstructured.Unstructured{
		object("v1", "Namespace", Namespace, nil),
		object("v1", "ServiceAccount", ServiceAccount, nil),
		object(rbac+"/v1", "ClusterRoleBinding", "toolhive-operator-manager-rolebinding", map[string]any{
			"roleRef": map[string]any{"apiGroup": rbac, "kind": "ClusterRole", "name": ClusterRole},
			"subjects": []any{
				map[string]any{"kind": "ServiceAccount", "name": ServiceAccount, "namespace": Namespace},
			},
		}),
	}
}
