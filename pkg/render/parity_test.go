// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/runconfig"
)

// TestParityWithUpstream compares all that is rendered with what ToolHive's own operator and proxyrunner
// made of the same MCPServers. Whatever differs is explained in differences.yaml, and whatever is explained
// there does differ.
func TestParityWithUpstream(t *testing.T) {
	known := readLedger(t)
	compared, refused := 0, 0
	recorded := readUpstream(t)
	for _, c := range slices.Concat(recorded, deriveCases(t, recorded)) {
		t.Run(c.name, func(t *testing.T) {
			c.options.RunnerImage = upstreamRunnerImage
			result, err := Render(Input{Server: c.server}, c.options)
			switch {
			case err == nil && len(result.Held) > 0:
				refused++ // What it refers to is not among the files; see TestReferencesParityWithUpstream.
			case c.refused():
				refused++
				checkRefusedByBoth(t, c, err)
			case err != nil:
				t.Fatal(err)
			default:
				compared++
				compareWithUpstream(t, known, c, result)
			}
		})
	}
	for _, text := range known.stale() {
		t.Error(text)
	}
	t.Logf("%d cases compared, %d refused", compared, refused)
	if compared == 0 {
		t.Error("no case was compared")
	}
}

// checkRefusedByBoth: what ToolHive refuses we refuse as well.
func checkRefusedByBoth(t *testing.T, c upstreamCase, err error) {
	t.Helper()
	if _, ok := errors.AsType[*InvalidError](err); !ok {
		t.Errorf("ToolHive refuses it (%s), we got error %v", bytes.TrimSpace(c.files["ERROR.txt"]), err)
	}
}

func compareWithUpstream(t *testing.T, known *ledger, c upstreamCase, result *Result) {
	t.Helper()
	ours := objects(t, result)
	theirs := map[string]any{}
	for file, data := range c.files {
		if strings.HasSuffix(file, ".json") {
			continue
		}
		var object any
		if err := yaml.Unmarshal(data, &object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		theirs[upstreamObject(c.server.Name, file)] = treeOf(t, object)
	}
	theirs["RunConfig"] = parseJSON(t, c.files["runconfig.json"])
	for _, d := range compareMaps("", ours, theirs) {
		if !strings.Contains(d.path, "/") && d.change != changed {
			for _, text := range known.unexplained(d.path, c.server, []difference{{path: "rendered", change: d.change}}) {
				t.Error(text)
			}
			delete(ours, d.path)
		}
	}
	for name, our := range ours {
		differences := compareTrees("", normalise(t, name, our), normalise(t, name, theirs[name]))
		for _, text := range known.unexplained(name, c.server, differences) {
			t.Error(text)
		}
	}
	if c.recorded && !leftOut(c) {
		compareText(t, runConfigText(t, result), string(c.files["runconfig.json"]))
	}
}

// leftOut reports whether ToolHive's RunConfig names a Redis that ours leaves out, see differences.yaml.
func leftOut(c upstreamCase) bool {
	storage := c.server.Spec.SessionStorage
	return c.options.DefaultRedis != nil && storage != nil && storage.Provider == v1beta1.SessionStorageMemory
}

// objects are our objects by kind and role, each as the API server would have it after all applies to it.
func objects(t *testing.T, result *Result) map[string]any {
	t.Helper()
	found := map[string]any{}
	for _, intent := range result.Intents {
		name := intent.Kind.Kind + " " + intent.Name
		tree := treeOf(t, intent.Config)
		if earlier, ok := found[name]; ok {
			tree = overlay(earlier, tree)
		}
		found[name] = tree
	}
	server := func() string {
		for _, intent := range result.Intents {
			if intent.Kind == kindDeployment {
				return intent.Name
			}
		}
		t.Fatal("no Deployment is rendered")
		return ""
	}()
	named := map[string]any{"RunConfig": parseJSON(t, []byte(runConfigText(t, result)))}
	for name, tree := range found {
		named[strings.ReplaceAll(withoutDigest(name), server, "<n>")] = tree
	}
	return named
}

// withoutDigest is an object's kind and name without what tells its content.
func withoutDigest(object string) string {
	kind, name, _ := strings.Cut(object, " ")
	if kind == kindConfigMap.Kind && inventory.HasDigest(name) {
		name = name[:strings.LastIndexByte(name, '-')]
	}
	return kind + " " + name
}

// upstreamObject is the name under which objects knows the content of one of ToolHive's files.
func upstreamObject(server, file string) string {
	name := strings.TrimSuffix(file, ".yaml")
	switch name {
	case "deployment":
		return "Deployment <n>"
	case "service-proxy":
		return "Service mcp-<n>-proxy"
	}
	name = strings.ReplaceAll(strings.TrimPrefix(name, "ssa-"), server, "<n>")
	kinds := map[string]string{
		"configmap": "ConfigMap", "role": "Role", "rolebinding": "RoleBinding", "service": "Service",
		"serviceaccount": "ServiceAccount", "statefulset": "StatefulSet",
	}
	kind, rest, _ := strings.Cut(name, "-")
	return kinds[kind] + " " + rest
}

// normalise reads an object as the API server would, into the type of its kind: what is not set and what is
// set to nothing are the same there (resources: {}, stdin: false, an empty value of a variable). It removes
// what depends on how ToolHive's files were made (type, namespace, resourceVersion of a fake client), and the
// RunConfig, which is compared by itself.
func normalise(t *testing.T, name string, object any) any {
	t.Helper()
	if name == "RunConfig" {
		return object
	}
	kind, _, _ := strings.Cut(name, " ")
	typed := map[string]any{
		"ConfigMap": &corev1.ConfigMap{}, "Deployment": &appsv1.Deployment{}, "Role": &rbacv1.Role{},
		"RoleBinding": &rbacv1.RoleBinding{}, "Service": &corev1.Service{},
		"ServiceAccount": &corev1.ServiceAccount{}, "StatefulSet": &appsv1.StatefulSet{},
	}[kind]
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, typed); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	m := treeOf(t, typed).(map[string]any)
	delete(m, "apiVersion")
	delete(m, "kind")
	meta := m["metadata"].(map[string]any)
	delete(meta, "namespace")
	delete(meta, "resourceVersion")
	if data, ok := m["data"].(map[string]any); ok {
		delete(data, runconfig.Key)
	}
	if subjects, ok := m["subjects"].([]any); ok {
		for _, subject := range subjects {
			delete(subject.(map[string]any), "namespace")
		}
	}
	return m
}

func runConfigText(t *testing.T, result *Result) string {
	t.Helper()
	for _, intent := range result.Intents {
		if config, ok := intent.Config.(*corev1ac.ConfigMapApplyConfiguration); ok {
			if text, ok := config.Data[runconfig.Key]; ok {
				return text
			}
		}
	}
	t.Fatal("no RunConfig is rendered")
	return ""
}

func parseJSON(t *testing.T, data []byte) any {
	t.Helper()
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// compareText checks that the two documents are the same text, but for the lines that are known to differ:
// same keys, same order, same indentation at all depths.
func compareText(t *testing.T, ours, theirs string) {
	t.Helper()
	if diff := cmp.Diff(comparableLines(theirs), comparableLines(ours)); diff != "" {
		t.Errorf("lines of the RunConfig (-theirs +ours):\n%s", diff)
	}
}

// onlyBackendReplicas is a scaling_config that holds nothing else.
var onlyBackendReplicas = regexp.MustCompile(`  "scaling_config": \{\n    "backend_replicas": \d+\n  \},?\n`)

func comparableLines(text string) []string {
	text = onlyBackendReplicas.ReplaceAllString(text, "")
	var lines []string
	skipping := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, ",\n")
		switch {
		case line == `  "middleware_configs": [`:
			skipping = true
		case skipping:
			skipping = line != "  ]"
		case strings.HasPrefix(line, `  "target_host": `), strings.HasPrefix(line, `    "backend_replicas": `):
		default:
			lines = append(lines, line)
		}
	}
	return lines
}
