// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"embed"
	"io/fs"
	"regexp"
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

// ToolHiveEnv names the release of ToolHive whose programs are used, such as v0.44.0, for suites that are run with several of
// them.
const ToolHiveEnv = "FREEHOLD_TOOLHIVE"

var toolhiveReleases = releases{env: ToolHiveEnv, versionOf: "github.com/stacklok/toolhive", modules: []buildModule{
	{name: "toolhive", mod: toolhiveMod, sum: toolhiveSum},
	{name: "toolhive-v0.44.0", mod: toolhive0440Mod, sum: toolhive0440Sum},
	substituted("v0.62.0"),
	substituted("v0.63.0"),
}}

var requirement = regexp.MustCompile(`(github\.com/stacklok/toolhive) v\S+`)

// substituted returns a substituted build of a release. One module serves all of them: they require the same libraries, and its
// go.sum has the checksums of each release.
func substituted(release string) buildModule {
	return buildModule{
		name: "toolhive-substituted", mod: requirement.ReplaceAll(toolhiveSubstitutedMod, []byte("$1 "+release)),
		sum: toolhiveSubstitutedSum, standIns: standIns(),
		// It needs a newer Go than everything else, which the go command downloads.
		env: []string{"GOTOOLCHAIN=auto"},
		note: "a substituted build: ToolHive's own source with other versions of some libraries, without a cache of " +
			"issuers' keys and without Sentry; docs/compatibility.md says what that leaves unproved",
	}
}

// ToolHiveReleases returns the values of ToolHiveEnv, the default first.
func ToolHiveReleases() []string { return toolhiveReleases.versions() }

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
