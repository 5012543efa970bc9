// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestKrewManifest changes the manifest of a release, and the archives that it names, in ways that krew would refuse or that
// would break an installation.
func TestKrewManifest(t *testing.T) {
	out := rehearse(t)
	opts, err := parse(arguments(t, out))
	if err != nil {
		t.Fatal(err)
	}
	good := read(t, out, krewManifest)
	if err := checkKrewManifest([]byte(good), opts); err != nil {
		t.Fatal(err)
	}
	version := versionOf(t)
	first := "kubectl-freehold_" + version + "_linux_amd64.tar.gz"
	if uri := website + "/releases/download/" + version + "/" + first; !strings.Contains(good, "uri: "+uri+"\n") {
		t.Errorf("no %s in\n%s", uri, good)
	}
	checksum := sum([]byte(read(t, out, first)))
	_, entries, _ := strings.Cut(good, "  platforms:\n")
	for name, tc := range map[string]struct{ before, after, want string }{
		"a field that krew does not know": {"  homepage:", "  home:", "unknown field"},
		"another kind":                    {"kind: Plugin", "kind: Plugins", "it is a Plugins"},
		"another apiVersion":              {"v1alpha2", "v1alpha3", "v1alpha3"},
		"a name that the file has not":    {"  name: freehold", "  name: other", `the plugin's name is "other"`},
		"no semantic version":             {"version: " + version, "version: v1", "v1"},
		"the version of another release":  {"version: " + version, "version: v9.9.9", "v9.9.9"},
		"a long short description":        {"shortDescription: ", "shortDescription: " + strings.Repeat("x", 50), "at most 50"},
		"no description":                  {"homepage: https", `homepage: "" # https`, "a description and a homepage"},
		"a wide caveat":                   {"    Try:", "    " + strings.Repeat("Try ", 21), "more than 80"},
		"another checksum":                {checksum, strings.Repeat("a", 64), "the manifest says aaaa"},
		"a short checksum":                {checksum, checksum[1:], "checksum"},
		"an archive that is not there":    {first, "nothing.tar.gz", "no such file"},
		"the archive of another platform": {first, strings.Replace(first, "amd64", "arm64", 1), "has the checksum"},
		"a program that is not in it":     {"bin: kubectl-freehold\n", "bin: freehold\n", "want the program freehold"},
		"a plain address":                 {"uri: https:", "uri: http:", "address"},
		"a platform twice":                {"arch: arm64", "arch: amd64", "2 entries fit linux/amd64"},
		"a platform that is not made":     {"os: linux", "os: plan9", "0 entries fit linux/amd64"},
		"another label":                   {"os: linux", "system: linux", `select by "system"`},
		"no platform":                     {entries, "", "it has no platform"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(good, tc.before, tc.after, 1)
			if text == good {
				t.Fatalf("there is no %q to change", tc.before)
			}
			if err := checkKrewManifest([]byte(text), opts); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
	t.Run("an entry for nobody", func(t *testing.T) {
		fewer := opts
		fewer.platforms = opts.platforms[1:]
		if err := checkKrewManifest([]byte(good), fewer); err == nil || !strings.Contains(err.Error(), "is for 0 of the platforms") {
			t.Errorf("got error %v", err)
		}
	})
	for name, tc := range map[string]struct {
		files []file
		want  string
	}{
		"no licence": {[]file{{pluginName, 0o755, nil}, {"LICENSE", 0o644, nil}}, "and its licences"},
		"not executable": {
			[]file{{pluginName, 0o644, nil}, {"LICENSE", 0o644, nil}, {licenceList, 0o644, nil}}, "want the program kubectl-freehold",
		},
		"something else": {
			[]file{{pluginName, 0o755, nil}, {"LICENSE", 0o644, nil}, {licenceList, 0o644, nil}, {"notes", 0o644, nil}}, "want the program",
		},
		"no program of Go": {[]file{{pluginName, 0o755, nil}, {"LICENSE", 0o644, nil}, {licenceList, 0o644, nil}}, "unrecognized file format"},
	} {
		t.Run(name, func(t *testing.T) {
			other, err := pack(opts.created, tc.files)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(out, first), string(other))
			text := strings.Replace(good, checksum, sum(other), 1)
			if err := checkKrewManifest([]byte(text), opts); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
}
