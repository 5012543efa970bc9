// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestKrewManifest holds the manifest of a rehearsal against its archives. hack/try-krew.sh asks krew itself.
func TestKrewManifest(t *testing.T) {
	out := rehearse(t)
	opts, err := parse(arguments(t, out))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Spec struct {
			Version, Homepage, ShortDescription, Description, Caveats string

			Platforms []struct {
				Selector struct {
					MatchLabels map[string]string
				}
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, out, krewManifest)), &manifest); err != nil {
		t.Fatal(err)
	}
	version := versionOf(t)
	if manifest.Spec.Version != version || len(manifest.Spec.Platforms) != len(opts.platforms) {
		t.Errorf("version %s for %d platforms, want %s for %d", manifest.Spec.Version, len(manifest.Spec.Platforms), version, len(opts.platforms))
	}
	// krew search cuts what is longer; krew's own index asks for the rest.
	if short := manifest.Spec.ShortDescription; short == "" || len(short) > 50 || strings.ContainsAny(short, "\r\n") {
		t.Errorf("the short description is %q, want one line of at most 50 bytes", short)
	}
	if manifest.Spec.Description == "" || manifest.Spec.Homepage == "" {
		t.Error("a description and a homepage are needed")
	}
	for line := range strings.SplitSeq(manifest.Spec.Description+"\n"+manifest.Spec.Caveats, "\n") {
		if len(line) > 80 {
			t.Errorf("a line of more than 80 bytes: %q", line)
		}
	}
	for _, p := range manifest.Spec.Platforms {
		on := p.Selector.MatchLabels
		name := "kubectl-freehold_" + version + "_" + on["os"] + "_" + on["arch"] + ".tar.gz"
		if want := website + "/releases/download/" + version + "/" + name; p.URI != want {
			t.Errorf("the address for %v is %s, want %s", on, p.URI, want)
		}
		if want := sum([]byte(read(t, out, name))); p.SHA256 != want {
			t.Errorf("the checksum for %v is %s, want %s", on, p.SHA256, want)
		}
		if !strings.HasPrefix(p.Bin, pluginName) {
			t.Errorf("the program for %v is %s", on, p.Bin)
		}
	}
}
