// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package krew checks the manifest of the kubectl plugin.
package krew

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"text/template"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// manifest is what krew reads (krew.googlecontainertools.github.com/v1alpha2).
type manifest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Version          string `json:"version"`
		Homepage         string `json:"homepage"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Caveats          string `json:"caveats"`
		Platforms        []struct {
			Selector metav1.LabelSelector `json:"selector"`
			URI      string               `json:"uri"`
			Sha256   string               `json:"sha256"`
			Bin      string               `json:"bin"`
		} `json:"platforms"`
	} `json:"spec"`
}

// TestManifest fills the template in as a release does, and reads the result as krew does.
func TestManifest(t *testing.T) {
	const tag, sum = "v1.2.3", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	source, err := os.ReadFile("freehold.yaml")
	if err != nil {
		t.Fatal(err)
	}
	funcs := template.FuncMap{"addURIAndSha": func(uri, tag string) string {
		return fmt.Sprintf("uri: %s\n    sha256: %s", strings.ReplaceAll(uri, "{{ .TagName }}", tag), sum)
	}}
	var filled bytes.Buffer
	parsed, err := template.New("manifest").Funcs(funcs).Parse(string(source))
	if err != nil {
		t.Fatal(err)
	}
	if err := parsed.Execute(&filled, map[string]string{"TagName": tag}); err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := yaml.UnmarshalStrict(filled.Bytes(), &m); err != nil {
		t.Fatalf("%v\n%s", err, &filled)
	}
	if m.Kind != "Plugin" || m.Name != "freehold" || len(validation.IsDNS1123Label(m.Name)) > 0 || m.Spec.Version != tag {
		t.Errorf("it is a %s %s of version %s", m.Kind, m.Name, m.Spec.Version)
	}
	// What is longer is cut in krew's list.
	if n := len(m.Spec.ShortDescription); n == 0 || n > 50 {
		t.Errorf("the short description has %d bytes", n)
	}
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"} {
		os, arch, _ := strings.Cut(platform, "/")
		fits := 0
		for _, p := range m.Spec.Platforms {
			selector, err := metav1.LabelSelectorAsSelector(&p.Selector)
			if err != nil {
				t.Fatal(err)
			}
			if !selector.Matches(labels.Set{"os": os, "arch": arch}) {
				continue
			}
			fits++
			if !strings.HasSuffix(p.URI, fmt.Sprintf("/%s/kubectl-freehold_%s_%s_%s.tar.gz", tag, tag, os, arch)) || p.Sha256 != sum ||
				strings.HasSuffix(p.Bin, ".exe") != (os == "windows") || !strings.HasPrefix(p.Bin, "kubectl-freehold") {
				t.Errorf("%s: %+v", platform, p)
			}
		}
		if fits != 1 {
			t.Errorf("%d archives fit %s", fits, platform)
		}
	}
}
