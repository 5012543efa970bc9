// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"fmt"
	"os"
	"strings"
)

// releases are those of a project whose programs can be built, each by a module of its own.
type releases struct {
	// env names the environment variable that chooses one by its version.
	env string
	// versionOf is the module whose version is that of the release.
	versionOf string
	// modules has the usual one first.
	modules []buildModule
}

// versions returns the values of the environment variable, the default first.
func (r releases) versions() (versions []string) {
	for _, module := range r.modules {
		versions = append(versions, r.version(module))
	}
	return versions
}

func (r releases) version(module buildModule) string {
	version, err := recipe{module: module, versionOf: r.versionOf}.version()
	if err != nil {
		panic(err) // It is compiled in.
	}
	return version
}

// module returns the one that the environment variable names.
func (r releases) module() (buildModule, error) {
	wanted := os.Getenv(r.env)
	if wanted == "" {
		return r.modules[0], nil
	}
	for _, module := range r.modules {
		if r.version(module) == wanted {
			return module, nil
		}
	}
	return buildModule{}, fmt.Errorf("%s is %q, and there are %s", r.env, wanted, strings.Join(r.versions(), ", "))
}
