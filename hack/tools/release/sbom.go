// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdxlib"
)

const (
	noAssertion = "NOASSERTION"
	ownLicence  = "Apache-2.0"
	// standardLibrary is its name in the list of licences.
	standardLibrary = "Go's standard library"
)

// artefact is a file or an image that a bill of materials is about: one program and its licences.
type artefact struct {
	// name of the bill's file, without an extension.
	name string
	// described is the artefact as a package.
	described spdx.Package
	// program in it, and what that records about its build.
	program string
	sha256  string
	build   *buildinfo.BuildInfo
}

// writeBills writes a software bill of materials, in SPDX 2.3, for each image and each archive of the plugin.
func writeBills(opts options, licences map[string]string, i image, archives []pluginArchive) error {
	var all []artefact
	for _, p := range i.platforms {
		algorithm, digest, _ := strings.Cut(p.digest, ":")
		if algorithm != "sha256" {
			return fmt.Errorf("the image for %s has the digest %s", p.platform, p.digest)
		}
		base := opts.image[strings.LastIndex(opts.image, "/")+1:]
		locator := fmt.Sprintf("pkg:oci/%s@sha256%%3A%s?arch=%s&repository_url=%s&tag=%s",
			base, digest, p.arch, url.QueryEscape(opts.image), url.QueryEscape(opts.version))
		a, err := newArtefact(opts, p.platform, operatorName, fmt.Sprintf("%s_%s_%s_%s", operatorName, opts.version, p.os, p.arch), spdx.Package{
			PackageName: opts.image, PrimaryPackagePurpose: "CONTAINER", PackageDownloadLocation: noAssertion,
			PackageChecksums:          []common.Checksum{{Algorithm: common.SHA256, Value: digest}},
			PackageExternalReferences: []*spdx.PackageExternalReference{purl(locator)},
		})
		if err != nil {
			return err
		}
		all = append(all, a)
	}
	for _, archive := range archives {
		a, err := newArtefact(opts, archive.platform, pluginName, strings.TrimSuffix(archive.name, ".tar.gz"), spdx.Package{
			PackageName: archive.name, PackageFileName: archive.name, PrimaryPackagePurpose: "ARCHIVE", PackageDownloadLocation: noAssertion,
			PackageChecksums: []common.Checksum{{Algorithm: common.SHA256, Value: archive.sha256}},
		})
		if err != nil {
			return err
		}
		all = append(all, a)
	}
	for _, a := range all {
		document, err := bill(opts, licences, a)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		var text bytes.Buffer
		if err := spdxjson.Write(document, &text, spdxjson.Indent("  ")); err != nil {
			return err
		}
		if err := checkBill(text.Bytes()); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		if err := os.WriteFile(filepath.Join(opts.out, a.name+".spdx.json"), text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// newArtefact reads the program in an artefact.
func newArtefact(opts options, p platform, program, name string, described spdx.Package) (artefact, error) {
	path := p.file(opts.binaries, program)
	build, err := readBuild(path, p)
	if err != nil {
		return artefact{}, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return artefact{}, err
	}
	return artefact{name: name, described: described, program: program, sha256: sum(data), build: build}, nil
}

// bill lists the contents of an artefact: the program, and the modules that are compiled into it.
func bill(opts options, licences map[string]string, a artefact) (*spdx.Document, error) {
	own := common.Supplier{SupplierType: "Organization", Supplier: "The Freehold Authors"}
	whole := a.described
	whole.PackageSPDXIdentifier, whole.PackageVersion, whole.PackageSupplier = "Artefact", opts.version, &own
	program := spdx.Package{
		PackageSPDXIdentifier: "Program", PackageName: a.program, PackageVersion: opts.build, PackageSupplier: &own,
		PackageDownloadLocation: "git+" + website + "@" + opts.commit, PackageHomePage: website, PrimaryPackagePurpose: "APPLICATION",
		PackageChecksums:        []common.Checksum{{Algorithm: common.SHA256, Value: a.sha256}},
		PackageLicenseConcluded: ownLicence, PackageLicenseDeclared: ownLicence, PackageCopyrightText: "Copyright The Freehold Authors.",
		PackageExternalReferences: []*spdx.PackageExternalReference{purl(golang(project, opts.build) + "#cmd/" + a.program)},
	}
	if opts.commit == "unknown" {
		program.PackageDownloadLocation = noAssertion
	}
	document := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: a.name,
		// Another artefact of the same name is another document.
		DocumentNamespace: fmt.Sprintf("%s/spdx/%s-%s", website, a.name, whole.PackageChecksums[0].Value),
		CreationInfo: &spdx.CreationInfo{
			Created: opts.created.Format(time.RFC3339), Creators: []common.Creator{
				{CreatorType: "Organization", Creator: own.Supplier}, {CreatorType: "Tool", Creator: "freehold-hack-tools-release"},
			},
		},
		Packages: []*spdx.Package{&whole, &program},
		Relationships: []*spdx.Relationship{
			relate("DOCUMENT", common.TypeRelationshipDescribe, "Artefact"), relate("Artefact", common.TypeRelationshipContains, "Program"),
		},
	}
	parts := map[string]bool{}
	modules := append([]*debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(a.build.GoVersion, "go")}}, a.build.Deps...)
	for _, module := range modules {
		if module.Replace != nil {
			module = module.Replace
		}
		name := module.Path
		if name == "stdlib" {
			name = standardLibrary
		}
		licence, ok := licences[name]
		if !ok {
			return nil, fmt.Errorf("%s has no licence in %s", name, licenceList)
		}
		// The list joins them with commas: parts of the module are under each.
		licence = strings.ReplaceAll(licence, ", ", " AND ")
		parts[licence] = true
		id := common.ElementID("Module-" + unsafeForID.ReplaceAllString(module.Path, "-"))
		found := spdx.Package{
			PackageSPDXIdentifier: id, PackageName: module.Path, PackageVersion: module.Version, PrimaryPackagePurpose: "LIBRARY",
			PackageSupplier: &common.Supplier{Supplier: noAssertion}, PackageDownloadLocation: noAssertion, PackageCopyrightText: noAssertion,
			PackageLicenseConcluded: licence, PackageLicenseDeclared: licence,
			PackageExternalReferences: []*spdx.PackageExternalReference{purl(golang(module.Path, module.Version))},
		}
		if module.Sum != "" {
			found.PackageSourceInfo = "go.sum: " + module.Sum
		}
		document.Packages = append(document.Packages, &found)
		document.Relationships = append(document.Relationships, relate("Program", common.TypeRelationshipDependsOn, id))
	}
	whole.PackageLicenseDeclared, whole.PackageLicenseConcluded = ownLicence, everyLicence(parts)
	whole.PackageCopyrightText = noAssertion
	return document, nil
}

// unsafeForID matches characters that an identifier of SPDX may not have.
var unsafeForID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func relate(from common.ElementID, kind string, to common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{
		RefA: common.DocElementID{ElementRefID: from}, RefB: common.DocElementID{ElementRefID: to}, Relationship: kind,
	}
}

func purl(locator string) *spdx.PackageExternalReference {
	return &spdx.PackageExternalReference{
		Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: locator,
	}
}

// golang returns the package URL of a module, whose path package URLs have in lower case.
func golang(path, version string) string {
	return "pkg:golang/" + strings.ToLower(path) + "@" + url.QueryEscape(version)
}

// checkBill reads a bill as others will: with the reader and the validation of SPDX's own library, which looks for elements that
// are not there. What that leaves out is looked at here: whether each package says what SPDX and we demand of it.
func checkBill(text []byte) error {
	document, err := spdxjson.Read(bytes.NewReader(text))
	if err != nil {
		return err
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		return err
	}
	described, err := spdxlib.GetDescribedPackageIDs(document)
	if err != nil {
		return err
	}
	if len(described) != 1 {
		return fmt.Errorf("it describes %v, want one package", described)
	}
	seen := map[common.ElementID]bool{}
	for _, p := range document.Packages {
		if seen[p.PackageSPDXIdentifier] || unsafeForID.MatchString(string(p.PackageSPDXIdentifier)) {
			return fmt.Errorf("the identifier %s of %s is there twice, or not one of SPDX", p.PackageSPDXIdentifier, p.PackageName)
		}
		seen[p.PackageSPDXIdentifier] = true
		if p.PackageName == "" || p.PackageVersion == "" || p.PackageDownloadLocation == "" || p.PackageLicenseConcluded == "" ||
			p.PackageLicenseDeclared == "" || p.PackageSupplier == nil || p.FilesAnalyzed {
			return fmt.Errorf("%s is incomplete: %+v", p.PackageSPDXIdentifier, p)
		}
	}
	return nil
}
