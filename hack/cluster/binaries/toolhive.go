// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

//go:embed modules/toolhive.mod
var toolhiveMod []byte

//go:embed modules/toolhive.sum
var toolhiveSum []byte

//go:embed modules/toolhive-v0.44.0.mod
var toolhive0440Mod []byte

//go:embed modules/toolhive-v0.44.0.sum
var toolhive0440Sum []byte

//go:embed modules/toolhive-substituted.mod
var toolhiveSubstitutedMod []byte

//go:embed modules/toolhive-substituted.sum
var toolhiveSubstitutedSum []byte

// standInFiles are modules that take the place of ones that the Go module proxy does not have.
//
//go:embed modules/_toolhive
var standInFiles embed.FS

const standInsDir = "modules/_toolhive"

// toolhiveModules are the releases of ToolHive that can be built, the usual one first.
var toolhiveModules = []buildModule{
	{name: "toolhive", mod: toolhiveMod, sum: toolhiveSum},
	{name: "toolhive-v0.44.0", mod: toolhive0440Mod, sum: toolhive0440Sum},
	{
		name: "toolhive-substituted", mod: toolhiveSubstitutedMod, sum: toolhiveSubstitutedSum, standIns: standIns(),
		// It needs a newer Go than everything else, which the go command downloads.
		env: []string{"GOTOOLCHAIN=auto"},
		note: "a substituted build: ToolHive's own source with other versions of some libraries, without the fetching of " +
			"keys for OIDC and without Sentry; docs/compatibility.md says what that leaves unproved",
	},
}

// standIns returns the files of the stand-ins by their paths in a build module.
func standIns() map[string][]byte {
	files := map[string][]byte{}
	err := fs.WalkDir(standInFiles, standInsDir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[strings.TrimPrefix(path, standInsDir+"/")], err = standInFiles.ReadFile(path)
		return err
	})
	if err != nil {
		panic(err) // They are compiled in.
	}
	return files
}

const (
	// ToolHiveEnv names the release of ToolHive whose programs are used, such as v0.44.0, for suites that are run with
	// several of them.
	ToolHiveEnv = "FREEHOLD_TOOLHIVE"
	toolHive    = "github.com/stacklok/toolhive"
)

// ToolHiveReleases are the values of ToolHiveEnv, the default first.
func ToolHiveReleases() (versions []string) {
	for _, module := range toolhiveModules {
		versions = append(versions, toolHiveVersion(module))
	}
	return versions
}

func toolHiveVersion(module buildModule) string {
	version, err := recipe{module: module, versionOf: toolHive}.version()
	if err != nil {
		panic(err) // It is compiled in.
	}
	return version
}

// toolhiveModule is the one that ToolHiveEnv names.
func toolhiveModule() (buildModule, error) {
	wanted := os.Getenv(ToolHiveEnv)
	if wanted == "" {
		return toolhiveModules[0], nil
	}
	for _, module := range toolhiveModules {
		if toolHiveVersion(module) == wanted {
			return module, nil
		}
	}
	return buildModule{}, fmt.Errorf("%s is %q, and there are %s", ToolHiveEnv, wanted, strings.Join(ToolHiveReleases(), ", "))
}
