// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// TestConfigurationIsThatOfThePage shows that the overlay has the patches of docs/configuration.md, word for word.
func TestConfigurationIsThatOfThePage(t *testing.T) {
	page := read(t, filepath.Join("..", "docs", "configuration.md"))
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) < 2 {
		t.Fatalf("the page has %d blocks of YAML", len(blocks))
	}
	_, want, _ := strings.Cut(blocks[0][1], "\npatches:\n")
	want += blocks[1][1]
	_, got, _ := strings.Cut(read(t, filepath.Join("testdata", "configuration", "kustomization.yaml")), "\npatches:\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("patches (-of the page +of the overlay):\n%s", diff)
	}
}

// These patches set a flag, variables and the memory, and change nothing else.
func TestPatchesOfTheConfigurationChangeNothingElse(t *testing.T) {
	plain, patched := installed(t), rendered(t, "configuration")
	want, got := one(t, plain.deployments), one(t, patched.deployments)
	container, changed := &want.Spec.Template.Spec.Containers[0], &got.Spec.Template.Spec.Containers[0]

	variables, names := map[string]corev1.EnvVar{}, map[string]int{}
	for _, variable := range container.Env {
		variables[variable.Name] = variable
	}
	for name, value := range map[string]string{
		"GOMEMLIMIT": "423MiB", "TOOLHIVE_RUNNER_IMAGE": "registry.example.com/toolhive/proxyrunner:v0.63.0",
		"TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS": "registry-credentials",
	} {
		variables[name] = corev1.EnvVar{Name: name, Value: value}
	}
	for _, variable := range changed.Env {
		names[variable.Name]++
		if diff := cmp.Diff(variables[variable.Name], variable); diff != "" || names[variable.Name] > 1 {
			t.Errorf("variable %s, there %d times (-want +got):\n%s", variable.Name, names[variable.Name], diff)
		}
	}
	if len(names) != len(variables) {
		t.Errorf("variables %v, want %d of them", names, len(variables))
	}

	container.Args = append(container.Args, "--workers=32")
	container.Resources.Limits[corev1.ResourceMemory] = resource.MustParse("473Mi")
	container.Env, changed.Env = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Deployment (-want +got):\n%s", diff)
	}
	plain.deployments, patched.deployments, plain.definitions = nil, nil, nil
	if diff := cmp.Diff(plain, patched, cmp.AllowUnexported(objects{})); diff != "" {
		t.Errorf("the rest (-without +with the patches):\n%s", diff)
	}
}

// TestReadmeShowsTheSample shows that the first MCPServer of the README is the sample that it then applies, but for the limits.
func TestReadmeShowsTheSample(t *testing.T) {
	_, section, _ := strings.Cut(read(t, filepath.Join("..", "README.md")), "### A first MCPServer, and a first call\n")
	_, block, _ := strings.Cut(section, "```yaml\n")
	block, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatal("the README shows no MCPServer")
	}
	sample := strict[v1beta1.MCPServer](t, []byte(read(t, filepath.Join("samples", "streamable-http.yaml"))))
	sample.Spec.Resources, sample.Spec.PodTemplateSpec = v1beta1.ResourceRequirements{}, nil
	if diff := cmp.Diff(sample, strict[v1beta1.MCPServer](t, []byte(block))); diff != "" {
		t.Errorf("MCPServer (-of the sample +of the README):\n%s", diff)
	}
}
