// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	release "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/hack/operator"
)

// deploy is the directory of the manifests.
var deploy = filepath.Join("..", "..", "..", "deploy")

// values are those that a user gives.
type values = map[string]any

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(filepath.Join(deploy, "chart"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// template is helm template, for a cluster that serves more versions of APIs.
func template(t *testing.T, given values, serves ...string) (*release.Release, error) {
	t.Helper()
	install := action.NewInstall(action.NewConfiguration())
	install.ReleaseName, install.Namespace, install.DryRunStrategy = releaseName, operator.Namespace, action.DryRunClient
	install.KubeVersion, install.APIVersions = &common.KubeVersion{Version: "v1.37.1", Major: "1", Minor: "37"}, serves
	out, err := install.Run(load(t), given)
	if err != nil {
		return nil, err
	}
	return out.(*release.Release), nil
}

// rendered are the objects of helm template, but for those of helm test, by kind, namespace and name.
func rendered(t *testing.T, given values, serves ...string) map[string]*unstructured.Unstructured {
	t.Helper()
	r, err := template(t, given, serves...)
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, r.Manifest)
}

// objects are those of a manifest, by kind, namespace and name.
func objects(t *testing.T, manifest string) map[string]*unstructured.Unstructured {
	t.Helper()
	all := map[string]*unstructured.Unstructured{}
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		if len(object.Object) > 0 {
			all[id(object.GetKind(), object.GetNamespace(), object.GetName())] = object
		}
	}
	return all
}

func id(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

// manifest are the objects of a file of deploy, but for the namespace of the release, which Helm makes if it is to.
func manifest(t *testing.T, path ...string) map[string]*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{deploy}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, string(content))
	delete(all, id("Namespace", "", operator.Namespace))
	return all
}

// The chart renders what the manifests have.
func TestChartRendersTheManifests(t *testing.T) {
	t.Parallel()
	for file, given := range map[string]values{
		"install-without-crd.yaml": nil,
		"install-namespaced.yaml":  {"operator": values{"rbac": values{"scope": "namespace", "allowedNamespaces": []any{"mcp-servers"}}}},
		"install.yaml":             {"crds": values{"install": true, "keep": false}},
		filepath.Join("testdata", "owner-references-permission", "rendered.yaml"): {},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			var serves []string
			if strings.HasPrefix(file, "testdata") {
				serves = []string{"security.openshift.io/v1"}
			}
			if diff := cmp.Diff(manifest(t, file), rendered(t, given, serves...)); diff != "" {
				t.Errorf("the objects (-of the manifest +of the chart):\n%s", diff)
			}
		})
	}
}

// A release that is uninstalled leaves the CRDs, and with them all MCPServers, unless its values say otherwise.
func TestChartKeepsTheDefinitions(t *testing.T) {
	t.Parallel()
	definitions := 0
	for name, object := range rendered(t, values{"crds": values{"install": true}}) {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		definitions++
		if object.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
			t.Errorf("%s has the annotations %v", name, object.GetAnnotations())
		}
	}
	if definitions == 0 {
		t.Error("there are none")
	}
}

// Each value reaches the Deployment of the operator, and nothing else changes there.
func TestValuesReachTheOperator(t *testing.T) {
	t.Parallel()
	variables := func(pairs ...string) values {
		var all []any
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, values{"name": pairs[i], "value": pairs[i+1]})
		}
		return values{"env": all}
	}
	const redis = "TOOLHIVE_DEFAULT_REDIS_"
	for name, c := range map[string]struct {
		operator values
		global   values
		// container and pod are the fields that differ from those of the default; of env, those that are added or changed.
		container, pod values
	}{
		"image":           {operator: values{"image": "a/b:c"}, container: values{"image": "a/b:c"}},
		"pull policy":     {operator: values{"imagePullPolicy": "Never"}, container: values{"imagePullPolicy": "Never"}},
		"pull secrets":    {operator: values{"imagePullSecrets": []any{values{"name": "a"}}}, pod: values{"imagePullSecrets": []any{values{"name": "a"}}}},
		"runner":          {operator: values{"toolhiveRunnerImage": "a/b:c"}, container: variables("TOOLHIVE_RUNNER_IMAGE", "a/b:c")},
		"address":         {operator: values{"proxyHost": "127.0.0.1"}, container: variables("TOOLHIVE_PROXY_HOST", "127.0.0.1")},
		"default secrets": {operator: values{"defaultImagePullSecrets": []any{"a", values{"name": "b"}}}, container: variables("TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS", "a,b")},
		"Redis":           {operator: values{"defaultRedis": values{"addr": "r:1"}}, container: variables(redis+"ADDR", "r:1")},
		"Redis with a password": {
			operator:  values{"defaultRedis": values{"addr": "r:1", "existingSecret": "s"}},
			container: variables(redis+"ADDR", "r:1", redis+"SECRET_NAME", "s", redis+"SECRET_KEY", "redis-password"),
		},
		"Redis with TLS": {
			operator: values{"defaultRedis": values{"addr": "r:1", "tls": values{"enabled": true, "caCertSecretRef": values{"name": "ca"}}}},
			container: variables(redis+"ADDR", "r:1", redis+"TLS_ENABLED", "true",
				redis+"TLS_CA_SECRET_NAME", "ca", redis+"TLS_CA_SECRET_KEY", "ca.crt"),
		},
		"Redis of a parent chart": {
			global:    values{"redis": values{"host": "r", "existingSecret": "s", "existingSecretKey": "k"}},
			container: variables(redis+"ADDR", "r:6379", redis+"SECRET_NAME", "s", redis+"SECRET_KEY", "k"),
		},
		"Redis of its own, not of the parent chart": {
			operator:  values{"defaultRedis": values{"addr": "r:1"}},
			global:    values{"redis": values{"host": "other", "port": 7}},
			container: variables(redis+"ADDR", "r:1"),
		},
		"OpenShift":           {operator: values{"openshift": true}, container: variables("OPERATOR_OPENSHIFT", "true")},
		"no OpenShift":        {operator: values{"openshift": "false"}, container: variables("OPERATOR_OPENSHIFT", "false")},
		"flags":               {operator: values{"args": []any{"--workers=3"}}, container: values{"args": []any{"--workers=3"}}},
		"variables":           {operator: values{"env": []any{values{"name": "A", "value": "b"}}}, container: variables("A", "b")},
		"memory":              {operator: values{"gc": values{"gomemlimit": "423MiB"}}, container: variables("GOMEMLIMIT", "423MiB")},
		"resources":           {operator: values{"resources": values{"limits": values{"memory": "473Mi"}}}, container: values{"resources": values{"limits": values{"memory": "473Mi"}, "requests": values{"cpu": "50m", "memory": "64Mi"}}}},
		"priority":            {operator: values{"priorityClassName": "system-cluster-critical"}, pod: values{"priorityClassName": "system-cluster-critical"}},
		"a volume":            {operator: values{"volumes": []any{values{"name": "v"}}}, pod: values{"volumes": []any{values{"name": "v"}}}},
		"a mount":             {operator: values{"volumeMounts": []any{values{"name": "v"}}}, container: values{"volumeMounts": []any{values{"name": "v"}}}},
		"nodes":               {operator: values{"nodeSelector": values{"a": "b"}}, pod: values{"nodeSelector": values{"a": "b"}}},
		"tolerations":         {operator: values{"tolerations": []any{values{"key": "a"}}}, pod: values{"tolerations": []any{values{"key": "a"}}}},
		"affinity":            {operator: values{"affinity": values{"nodeAffinity": values{}}}, pod: values{"affinity": values{"nodeAffinity": values{}}}},
		"security of the pod": {operator: values{"podSecurityContext": values{"fsGroup": 1}}, pod: values{"securityContext": values{"fsGroup": float64(1), "runAsNonRoot": true, "seccompProfile": values{"type": "RuntimeDefault"}}}},
		"security":            {operator: values{"containerSecurityContext": values{"runAsUser": 7}}, container: values{"securityContext": values{"runAsUser": float64(7), "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true, "capabilities": values{"drop": []any{"ALL"}}, "seccompProfile": values{"type": "RuntimeDefault"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := values{}
			if c.operator != nil {
				given["operator"] = c.operator
			}
			if c.global != nil {
				given["global"] = c.global
			}
			wantPod, want := containerOf(t, rendered(t, nil))
			gotPod, got := containerOf(t, rendered(t, given))
			for field, value := range c.container {
				switch field {
				case "env":
					want[field] = with(want[field].([]any), value.([]any))
				case "args":
					want[field] = append(want[field].([]any), value.([]any)...)
				default:
					want[field] = value
				}
			}
			maps.Copy(wantPod, c.pod)
			want["env"], got["env"] = byName(want["env"]), byName(got["env"])
			if diff := cmp.Diff(want, got) + cmp.Diff(wantPod, gotPod); diff != "" {
				t.Errorf("the pod (-want +got):\n%s", diff)
			}
		})
	}
}

// containerOf takes the operator's container out of the pod of the Deployment.
func containerOf(t *testing.T, all map[string]*unstructured.Unstructured) (pod, container values) {
	t.Helper()
	pod, _, err := unstructured.NestedMap(all[id("Deployment", operator.Namespace, operatorName)].Object, "spec", "template", "spec")
	if err != nil {
		t.Fatal(err)
	}
	container = pod["containers"].([]any)[0].(values)
	delete(pod, "containers")
	return pod, container
}

// with adds variables to others, or replaces those of the same name.
func with(all, more []any) (result []any) {
	added := byName(more)
	for _, variable := range all {
		if _, replaced := added[variable.(values)["name"].(string)]; !replaced {
			result = append(result, variable)
		}
	}
	return append(result, more...)
}

func byName(variables any) map[string]any {
	all := map[string]any{}
	for _, variable := range variables.([]any) {
		all[variable.(values)["name"].(string)] = variable
	}
	return all
}

// Labels and annotations that a user adds are there beside the chart's own; the rest of the values reaches its object.
func TestValuesReachOtherObjects(t *testing.T) {
	t.Parallel()
	all := rendered(t, values{
		"operator": values{
			"replicaCount": 1, "podLabels": values{"a": "b"}, "podAnnotations": values{"c": "d"},
			"serviceAccount": values{"labels": values{"e": "f"}, "annotations": values{"g": "h"}}, "rbac": values{"userRoles": false},
		},
		"networkPolicy": values{"apiServerPorts": []any{16443}},
	})
	for what, c := range map[string]struct {
		object string
		path   []string
		want   any
	}{
		"replicas":        {id("Deployment", operator.Namespace, "freehold"), []string{"spec", "replicas"}, float64(1)},
		"pod label":       {id("Deployment", operator.Namespace, "freehold"), []string{"spec", "template", "metadata", "labels", "a"}, "b"},
		"own pod label":   {id("Deployment", operator.Namespace, "freehold"), []string{"spec", "template", "metadata", "labels", "app.kubernetes.io/component"}, "operator"},
		"pod annotation":  {id("Deployment", operator.Namespace, "freehold"), []string{"spec", "template", "metadata", "annotations", "c"}, "d"},
		"account's label": {id("ServiceAccount", operator.Namespace, "freehold"), []string{"metadata", "labels", "e"}, "f"},
		"account's role":  {id("ServiceAccount", operator.Namespace, "freehold"), []string{"metadata", "annotations", "g"}, "h"},
	} {
		got, _, err := unstructured.NestedFieldNoCopy(all[c.object].Object, c.path...)
		if err != nil || got != c.want {
			t.Errorf("%s: %v (%v), want %v", what, got, err, c.want)
		}
	}
	for _, name := range []string{"freehold-view", "freehold-edit"} {
		if all[id("ClusterRole", "", name)] != nil {
			t.Errorf("%s is there", name)
		}
	}
	egress, _, _ := unstructured.NestedSlice(all[id("NetworkPolicy", operator.Namespace, "freehold")].Object, "spec", "egress")
	if got := fmt.Sprint(egress[1]); got != "map[ports:[map[port:16443 protocol:TCP]]]" {
		t.Errorf("the API server is reached by %s", got)
	}
	if without := rendered(t, values{"networkPolicy": values{"enabled": false}}); without[id("NetworkPolicy", operator.Namespace, "freehold")] != nil {
		t.Error("a NetworkPolicy that is turned off is there")
	}
}

// What cannot be honoured is refused, with the value's name.
func TestRefusedValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		given values
		want  string
	}{
		"a value of ToolHive's chart alone": {values{"operator": values{"vmcpImage": "a"}}, "vmcpImage"},
		"a typo":                            {values{"operator": values{"toolhiverunnerImage": "a"}}, "toolhiverunnerImage"},
		"replicas as a text":                {values{"operator": values{"replicaCount": "two"}}, "replicaCount"},
		"a secret without name":             {values{"operator": values{"defaultImagePullSecrets": []any{values{}}}}, "defaultImagePullSecrets"},
		"no namespaces":                     {values{"operator": values{"rbac": values{"scope": "namespace"}}}, "operator.rbac.allowedNamespaces"},
		"namespaces for a scope":            {values{"operator": values{"rbac": values{"allowedNamespaces": []any{"a"}}}}, "operator.rbac.scope=namespace"},
		"TLS without Redis":                 {values{"operator": values{"defaultRedis": values{"tls": values{"enabled": true}}}}, "operator.defaultRedis.addr"},
		"authorities without TLS":           {values{"operator": values{"defaultRedis": values{"addr": "r:1", "tls": values{"caCertSecretRef": values{"name": "a"}}}}}, "operator.defaultRedis.tls.enabled"},
		"no ports":                          {values{"networkPolicy": values{"apiServerPorts": []any{}}}, "apiServerPorts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := template(t, c.given); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one about %s", err, c.want)
			}
		})
	}
}

// The notes say what is missing, and what to do before the release is uninstalled.
func TestNotes(t *testing.T) {
	t.Parallel()
	const missing = "The cluster does not serve MCPServers"
	for name, c := range map[string]struct {
		given  values
		serves []string
		want   bool
	}{
		"no CRDs":               {nil, nil, true},
		"CRDs installed before": {nil, []string{"toolhive.stacklok.dev/v1beta1/MCPServer"}, false},
		"CRDs of this release":  {values{"crds": values{"install": true}}, nil, false},
	} {
		r, err := template(t, c.given, c.serves...)
		if err != nil {
			t.Fatal(err)
		}
		if notes := r.Info.Notes; strings.Contains(notes, missing) != c.want || !strings.Contains(notes, "for MCPServers of all namespaces.\n") ||
			!strings.Contains(notes, "Before you uninstall this release, delete the MCPServers") {
			t.Errorf("%s: the notes are\n%s", name, notes)
		}
	}
}

// testPod is the pod of helm test.
func testPod(t *testing.T, r *release.Release) (pod corev1.Pod) {
	t.Helper()
	for _, hook := range r.Hooks {
		if hook.Kind == "Pod" {
			if err := yaml.UnmarshalStrict([]byte(hook.Manifest), &pod); err != nil {
				t.Fatal(err)
			}
			return pod
		}
	}
	t.Fatal("there is none")
	return pod
}
