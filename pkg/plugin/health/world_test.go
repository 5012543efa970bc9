// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/freehold-dev/freehold/deploy/crd"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
)

// now is the time of the tests.
var now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// leading is the pod that holds the Lease.
const leading = "freehold-5d8f7c-aaaaa"

// content is an object, or a part of one.
type content = map[string]any

// world is a cluster with a healthy installation of Freehold, until a test changes it.
type world struct {
	t       *testing.T
	objects []*unstructured.Unstructured
	// denied are rights that the operator lacks, as VERB RESOURCE; mayNot are those that the user lacks.
	denied, mayNot []string
	// broken is set where no request gets an answer, and lost are those that get none, as VERB RESOURCE.
	broken bool
	lost   []string
	// settings of the examination.
	operator, plugin string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, operator: cluster.DefaultOperator, plugin: "v0.1.0"}
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "install-without-crd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w.add(string(text))
	definitions, err := crd.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range definitions {
		w.objects = append(w.objects, definition)
		definition.Object["status"] = content{
			"storedVersions": []any{crd.Stored(definition).Version},
			"conditions":     []any{content{"type": "NamesAccepted", "status": "True"}, content{"type": "Established", "status": "True"}},
		}
		holdBy(definition.Object, "kubectl", `{"f:spec":{"f:versions":{}}}`)
	}
	w.at("Deployment", "freehold", func(c content) {
		c["metadata"].(content)["generation"] = int64(1)
		c["status"] = content{"observedGeneration": int64(1), "replicas": int64(2), "updatedReplicas": int64(2), "availableReplicas": int64(2)}
	})
	for _, pod := range []string{leading, "freehold-5d8f7c-bbbbb"} {
		w.add(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: %s
  namespace: freehold-system
  labels: {app.kubernetes.io/name: freehold, app.kubernetes.io/component: operator, pod-template-hash: 5d8f7c}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: freehold-5d8f7c, uid: u, controller: true}]
status: {phase: Running, containerStatuses: [{name: freehold, restartCount: 0, state: {running: {}}}]}
`, pod))
	}
	w.add(fmt.Sprintf(`
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: freehold, namespace: freehold-system}
spec: {holderIdentity: %s_6c5b8e20, leaseDurationSeconds: 15, renewTime: "2026-06-01T11:59:57.000000Z"}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: shop}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {toolhive: "true"}}
spec: {template: {spec: {containers: [{name: toolhive, image: "ghcr.io/stacklok/toolhive/proxyrunner:v0.63.0"}]}}}
`, leading))
	w.at("Deployment", "web", func(c content) { holdBy(c, "freehold-proxy", `{"f:spec":{"f:template":{}}}`) })
	w.server("shop", "web", "")
	return w
}

// holdBy gives a field manager fields of an object, by apply.
func holdBy(c content, manager, fields string) {
	var set content
	if err := json.Unmarshal([]byte(fields), &set); err != nil {
		panic(err)
	}
	entries, _ := c["metadata"].(content)["managedFields"].([]any)
	c["metadata"].(content)["managedFields"] = append(entries, content{
		"manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": set,
	})
}

// server adds an MCPServer with conditions, as TYPE=STATUS/REASON/MESSAGE one a line, since an hour and a half.
func (w *world) server(namespace, name, conditions string) {
	w.t.Helper()
	w.add(fmt.Sprintf("apiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPServer\nmetadata: {name: %s, namespace: %s}\n"+
		"spec: {image: \"example.com/mcp:v1\"}\nstatus: {phase: Ready}\n", name, namespace))
	w.at("MCPServer", name, func(c content) {
		c["status"].(content)["conditions"] = append(conditionsOf(conditions), conditionsOf("Ready=True/Ready/-")...)
	})
}

func conditionsOf(text string) []any {
	list := []any{}
	for line := range strings.Lines(text) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), "=")
		parts := strings.SplitN(rest, "/", 3)
		list = append(list, content{
			"type": kind, "status": parts[0], "reason": parts[1], "message": parts[2], "lastTransitionTime": "2026-06-01T10:30:00Z",
		})
	}
	return list
}

// add adds objects of a YAML text.
func (w *world) add(text string) {
	w.t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), len(text)+1)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			w.t.Fatalf("%v: %s", err, text)
		}
		if object.Object != nil {
			w.objects = append(w.objects, object)
		}
	}
}

// at changes the last object of a kind and a name.
func (w *world) at(kind, name string, change func(content)) {
	w.t.Helper()
	for _, object := range slices.Backward(w.objects) {
		if object.GetKind() == kind && object.GetName() == name {
			change(object.Object)
			return
		}
	}
	w.t.Fatalf("there is no %s %s", kind, name)
}

// set sets a field of an object. The path is of fields, with indices into lists.
func (w *world) set(kind, name string, value any, path ...any) {
	w.t.Helper()
	w.at(kind, name, func(c content) {
		var in any = c
		for _, step := range path[:len(path)-1] {
			switch step := step.(type) {
			case int:
				in = in.([]any)[step]
			case string:
				of := in.(content)
				if of[step] == nil {
					of[step] = content{}
				}
				in = of[step]
			}
		}
		switch last := path[len(path)-1].(type) {
		case int:
			in.([]any)[last] = value
		case string:
			in.(content)[last] = value
		}
	})
}

// remove removes an object.
func (w *world) remove(kind, name string) {
	w.t.Helper()
	before := len(w.objects)
	w.objects = slices.DeleteFunc(w.objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	if len(w.objects) == before {
		w.t.Fatalf("there is no %s %s", kind, name)
	}
}

// served are the kinds of the API server, beside those of the objects. In no namespace are those in clusterScoped.
var served = []string{
	"v1/Pod", "v1/Namespace", "v1/ConfigMap", "v1/Service", "v1/ServiceAccount", "apps/v1/Deployment", "apps/v1/StatefulSet",
	"coordination.k8s.io/v1/Lease", "apiextensions.k8s.io/v1/CustomResourceDefinition",
	"rbac.authorization.k8s.io/v1/Role", "rbac.authorization.k8s.io/v1/RoleBinding",
	"rbac.authorization.k8s.io/v1/ClusterRole", "rbac.authorization.k8s.io/v1/ClusterRoleBinding",
	"admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding",
	"toolhive.stacklok.dev/v1beta1/MCPServer", "toolhive.stacklok.dev/v1beta1/MCPOIDCConfig",
	"toolhive.stacklok.dev/v1beta1/MCPAuthzConfig", "toolhive.stacklok.dev/v1beta1/MCPExternalAuthConfig", "toolhive.stacklok.dev/v1beta1/MCPToolConfig",
	"toolhive.stacklok.dev/v1beta1/MCPTelemetryConfig", "toolhive.stacklok.dev/v1beta1/MCPWebhookConfig", "toolhive.stacklok.dev/v1beta1/MCPGroup",
	"policy/v1/PodDisruptionBudget", "networking.k8s.io/v1/NetworkPolicy",
}

// subject is the installation, on an API server in memory.
func (w *world) subject() Subject {
	w.t.Helper()
	var kinds []*apiserver.Kind
	for _, name := range served {
		at := strings.LastIndexByte(name, '/')
		gv, err := schema.ParseGroupVersion(name[:at])
		if err != nil {
			w.t.Fatal(err)
		}
		gvk := gv.WithKind(name[at+1:])
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		kinds = append(kinds, &apiserver.Kind{
			GroupVersionKind: gvk, Resource: plural.Resource, New: func() runtime.Object { return &unstructured.Unstructured{} },
			Fields: managedfields.NewDeducedTypeConverter(), Scheme: runtime.NewScheme(),
		})
	}
	server, err := apiserver.New(kinds...)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, object := range w.objects {
		kind := server.KindOf(object.GroupVersionKind().Group, object.GetKind())
		if kind == nil {
			w.t.Fatalf("%s is not served", object.GroupVersionKind())
		}
		server.Put(kind, object.DeepCopy())
	}
	flags := genericclioptions.NewConfigFlags(false)
	config, url, directory := os.DevNull, "http://apiserver.invalid", w.t.TempDir()
	flags.KubeConfig, flags.APIServer, flags.CacheDir = &config, &url, &directory
	flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.Transport = server.Connect("jane", w.between, false).Transport
		return config
	}
	client, err := cluster.New(flags)
	if err != nil {
		w.t.Fatal(err)
	}
	return Subject{Client: client, Operator: w.operator, Plugin: w.plugin, Now: now}
}

// between refuses what the user may not do, and answers reviews.
func (w *world) between(r *apiserver.Request, serve func() apiserver.Answer) apiserver.Answer {
	if w.broken {
		return apiserver.Answer{Broken: errors.New("connection refused")}
	}
	group, resource := "", r.Path[strings.LastIndexByte(r.Path, '/')+1:]
	if r.Kind != nil {
		group, resource = r.Kind.Group, r.Kind.Resource
	}
	if slices.Contains(w.lost, r.Verb+" "+resource) {
		return apiserver.Answer{Broken: errors.New("connection lost")}
	}
	if slices.Contains(w.mayNot, r.Verb+" "+resource) {
		scope := "at the cluster scope"
		if r.Namespace != "" {
			scope = fmt.Sprintf("in the namespace %q", r.Namespace)
		}
		return apiserver.Refuse(apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: resource}, r.Name,
			fmt.Errorf("User \"jane\" cannot %s resource %q in API group %q %s", r.Verb, resource, group, scope)))
	}
	if resource != "subjectaccessreviews" {
		return serve()
	}
	review := &authorizationv1.SubjectAccessReview{}
	if err := json.Unmarshal(r.Body, review); err != nil {
		w.t.Error(err)
	}
	asked := review.Spec.ResourceAttributes
	review.Status.Allowed = review.Spec.User == "system:serviceaccount:freehold-system:freehold" && !slices.Contains(w.denied, asked.Verb+" "+asked.Resource)
	body, err := json.Marshal(review)
	if err != nil {
		w.t.Error(err)
	}
	return apiserver.Answer{Code: 201, Body: body}
}

// examine makes the checks.
func (w *world) examine() Diagnosis {
	w.t.Helper()
	found, err := Examine(w.subject())
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// check returns what came of one check.
func (d Diagnosis) check(name string) Check {
	return d.Checks[slices.IndexFunc(d.Checks, func(c Check) bool { return c.Name == name })]
}
