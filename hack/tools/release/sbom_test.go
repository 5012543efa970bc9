// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
)

// sample is an artefact with modules as Go lists them.
func sample() artefact {
	return artefact{
		name: "kubectl-freehold_v1.2.3_linux_amd64", program: pluginName, sha256: strings.Repeat("1", 64),
		described: spdx.Package{
			PackageName: "kubectl-freehold_v1.2.3_linux_amd64.tar.gz", PackageDownloadLocation: noAssertion,
			PackageChecksums: []common.Checksum{{Algorithm: common.SHA256, Value: strings.Repeat("2", 64)}},
		},
		build: &debug.BuildInfo{GoVersion: "go1.26.8", Deps: []*debug.Module{
			{Path: "github.com/Azure/go-ansiterm", Version: "v0.1.0", Sum: "h1:abc="},
			{Path: "github.com/peterbourgon/diskv", Version: "v2.0.1+incompatible"},
			{Path: "example.com/original", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1"}},
		}},
	}
}

var sampleLicences = map[string]string{
	standardLibrary: "BSD-3-Clause", "github.com/Azure/go-ansiterm": "MIT", "github.com/peterbourgon/diskv": "MIT",
	"example.com/fork": "Apache-2.0, BSD-3-Clause",
}

func TestBill(t *testing.T) {
	opts := options{version: "v1.2.3", build: "v1.2.3", commit: "abc"}
	document, err := bill(opts, sampleLicences, sample())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range document.Packages {
		line := []string{string(p.PackageSPDXIdentifier), p.PackageName, p.PackageVersion, p.PackageLicenseConcluded}
		for _, r := range p.PackageExternalReferences {
			line = append(line, r.Locator)
		}
		got = append(got, strings.Join(line, " | "))
	}
	want := []string{
		"Artefact | kubectl-freehold_v1.2.3_linux_amd64.tar.gz | v1.2.3 | Apache-2.0 AND BSD-3-Clause AND MIT",
		"Program | kubectl-freehold | v1.2.3 | Apache-2.0 | pkg:golang/github.com/freehold-dev/freehold@v1.2.3#cmd/kubectl-freehold",
		"Module-stdlib | stdlib | 1.26.8 | BSD-3-Clause | pkg:golang/stdlib@1.26.8",
		"Module-github.com-Azure-go-ansiterm | github.com/Azure/go-ansiterm | v0.1.0 | MIT | pkg:golang/github.com/azure/go-ansiterm@v0.1.0",
		"Module-github.com-peterbourgon-diskv | github.com/peterbourgon/diskv | v2.0.1+incompatible | MIT | " +
			"pkg:golang/github.com/peterbourgon/diskv@v2.0.1%2Bincompatible",
		"Module-example.com-fork | example.com/fork | v1.0.1 | Apache-2.0 AND BSD-3-Clause | pkg:golang/example.com/fork@v1.0.1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("packages\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	fewer := map[string]string{standardLibrary: "BSD-3-Clause"}
	if _, err := bill(opts, fewer, sample()); err == nil || !strings.Contains(err.Error(), "has no licence in THIRD_PARTY_LICENCES.md") {
		t.Errorf("a module that the list does not have: %v", err)
	}
}

// TestCheckBill breaks a bill in ways that a reader would trip over.
func TestCheckBill(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*spdx.Document)
		want   string
	}{
		"nothing": {func(*spdx.Document) {}, ""},
		"a relation to nothing": {func(d *spdx.Document) {
			d.Relationships[2].RefB.ElementRefID = "Module-gone"
		}, "no such package"},
		"nothing described": {func(d *spdx.Document) { d.Relationships = d.Relationships[1:] }, "no DESCRIBES"},
		"an identifier twice": {func(d *spdx.Document) {
			d.Packages = append(d.Packages, d.Packages[2])
		}, "is there twice"},
		"no licence":          {func(d *spdx.Document) { d.Packages[3].PackageLicenseConcluded = "" }, "incomplete"},
		"no version":          {func(d *spdx.Document) { d.Packages[4].PackageVersion = "" }, "incomplete"},
		"a version of no one": {func(d *spdx.Document) { d.SPDXVersion = "SPDX-9" }, "unsupported"},
	} {
		t.Run(name, func(t *testing.T) {
			document, err := bill(options{version: "v1.2.3", build: "v1.2.3", commit: "abc"}, sampleLicences, sample())
			if err != nil {
				t.Fatal(err)
			}
			tc.change(document)
			var text bytes.Buffer
			if err := spdxjson.Write(document, &text); err != nil {
				t.Fatal(err)
			}
			switch err := checkBill(text.Bytes()); {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
	if err := checkBill([]byte("{}")); err == nil {
		t.Error("an empty document is none")
	}
}

// TestBillsNameTheirArtefacts shows that a bill is about what is beside it: the image's digest, the archive's checksum.
func TestBillsNameTheirArtefacts(t *testing.T) {
	out := rehearse(t)
	version := versionOf(t)
	bills, err := filepath.Glob(filepath.Join(out, "*.spdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"freehold_" + version + "_linux_amd64": strings.Repeat("b", 64), "freehold_" + version + "_linux_arm64": strings.Repeat("c", 64),
	}
	for _, on := range platforms {
		name := "kubectl-freehold_" + version + "_" + strings.ReplaceAll(on, "/", "_")
		want[name] = sum([]byte(read(t, out, name+".tar.gz")))
	}
	for _, path := range bills {
		document, err := spdxjson.Read(strings.NewReader(read(t, path)))
		if err != nil {
			t.Fatal(err)
		}
		if got := document.Packages[0].PackageChecksums[0].Value; got != want[document.DocumentName] {
			t.Errorf("%s is about %s, want %s", path, got, want[document.DocumentName])
		}
		if document.CreationInfo.Created != "1970-01-02T00:00:00Z" || document.Packages[1].PackageVersion != version+"-dev+abc" {
			t.Errorf("%s is of %s, its program %s", path, document.CreationInfo.Created, document.Packages[1].PackageVersion)
		}
		delete(want, document.DocumentName)
	}
	if len(want) > 0 {
		t.Errorf("no bill for %v", want)
	}
	image := read(t, out, "freehold_"+version+"_linux_amd64.spdx.json")
	locator := "pkg:oci/freehold@sha256%3A" + strings.Repeat("b", 64) + "?arch=amd64&repository_url=ghcr.io%2Ffreehold-dev%2Ffreehold&tag=" + version
	if !strings.Contains(strings.ReplaceAll(image, `\u0026`, "&"), locator) {
		t.Errorf("no %s in\n%s", locator, image)
	}
}
