// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A program is released, as hack/build.sh builds it.
type program struct {
	name, path string
	// column heads its column of the page.
	column string
}

var programs = []program{
	{name: "freehold", path: "./cmd/freehold", column: "Operator"},
	{name: "kubectl-freehold", path: "./cmd/kubectl-freehold", column: "Plugin"},
}

// buildTags are those of hack/build.sh.
const buildTags = "fieldsv1string,grpcnotrace"

// platforms are those that the programs are built for, the plugin's by krew's manifest among them.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}

// standardLibrary names it among the modules, though it is none.
const standardLibrary = "Go's standard library"

// A module is one that programs are made of.
type module struct {
	path, version, dir string
	// programs are the names of those that have it.
	programs map[string]bool
	// packages are the directories of the packages that they have, of any of them.
	packages map[string]bool
	// licences are SPDX identifiers, sorted.
	licences []string
}

// compiledIn returns the modules of the programs of the main module in a directory, for all of the platforms, by path.
func compiledIn(directory string, programs []program, platforms []string) ([]*module, error) {
	modules := map[string]*module{}
	for _, platform := range platforms {
		for _, program := range programs {
			packages, err := list(directory, program.path, platform)
			if err != nil {
				return nil, fmt.Errorf("%s for %s: %w", program.path, platform, err)
			}
			for _, pkg := range packages {
				found := pkg.module()
				if found == nil {
					continue
				}
				known := modules[found.path]
				if known == nil {
					known = found
					modules[found.path] = known
				}
				known.programs[program.name] = true
				// Of the standard library, only BoringCrypto has a licence of its own, and is compiled in only on request.
				if !pkg.Standard {
					known.packages[pkg.Dir] = true
				}
			}
		}
	}
	return slices.SortedFunc(maps.Values(modules), func(a, b *module) int { return cmp.Compare(a.path, b.path) }), nil
}

// A goPackage is the output of go list for one.
type goPackage struct {
	Dir, Root string
	Standard  bool
	Module    *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path, Version, Dir string }
	}
}

// module returns that of a package, or nil for the project's own.
func (p goPackage) module() *module {
	found := &module{programs: map[string]bool{}, packages: map[string]bool{}}
	switch {
	case p.Standard:
		found.path, found.dir = standardLibrary, p.Root
	case p.Module == nil || p.Module.Main:
		return nil
	default:
		found.path, found.version, found.dir = p.Module.Path, p.Module.Version, p.Module.Dir
		if replace := p.Module.Replace; replace != nil {
			found.path, found.version, found.dir = replace.Path, replace.Version, replace.Dir
		}
	}
	return found
}

func list(directory, path, platform string) ([]goPackage, error) {
	goos, goarch, _ := strings.Cut(platform, "/")
	cmd := exec.Command("go", "list", "-deps", "-tags="+buildTags, "-json=Dir,Root,Standard,Module", path) //nolint:noctx // ends by itself
	cmd.Dir = directory
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var pkg goPackage
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, pkg)
	}
}

// licenceFiles returns the files with licences that hold for a module's packages: those beside them, and in each directory
// above up to the module's root.
func licenceFiles(m *module) ([]string, error) {
	directories := map[string]bool{m.dir: true}
	for pkg := range m.packages {
		for dir := pkg; dir != m.dir && strings.HasPrefix(dir, m.dir); dir = filepath.Dir(dir) {
			directories[dir] = true
		}
	}
	var files []string
	for _, dir := range slices.Sorted(maps.Keys(directories)) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if !entry.IsDir() && isLicence(entry.Name()) {
				files = append(files, filepath.Join(dir, entry.Name()))
			}
		}
	}
	return files, nil
}

// isLicence reports whether a file is named as one that holds a licence.
func isLicence(name string) bool {
	if extension := strings.ToLower(filepath.Ext(name)); extension == ".go" {
		return false
	}
	name = strings.ToUpper(name)
	return strings.HasPrefix(name, "LICENSE") || strings.HasPrefix(name, "LICENCE") || strings.HasPrefix(name, "COPYING")
}
