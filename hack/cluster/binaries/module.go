// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// buildModule is a Go module that requires the programs it builds, and nothing else.
type buildModule struct {
	name     string
	mod, sum []byte
	// main is the main.go of a module that has a main package of its own.
	main []byte
	// standIns are Go files of modules that go.mod replaces by folders, by their paths in the build module.
	standIns map[string][]byte
	// env are variables for the go command, as KEY=value.
	env []string
	// note says in which way the programs are not those that their authors publish. Empty: they are.
	note string
}

// write writes the module into an empty directory.
func (m buildModule) write(dir string) error {
	files := map[string][]byte{"go.mod": m.mod, "go.sum": m.sum}
	if m.main != nil {
		files["main.go"] = m.main
	}
	maps.Copy(files, m.standIns)
	if m.standIns != nil {
		parsed, err := modfile.Parse(m.name+".mod", m.mod, nil)
		if err != nil {
			return fmt.Errorf("reading the build module: %w", err)
		}
		for _, replace := range parsed.Replace {
			if replace.New.Version == "" {
				// What it says of the module is not looked at, but it has to be there.
				files[path.Join(replace.New.Path, "go.mod")] = []byte("module standin\n\ngo " + parsed.Go.Version + "\n")
			}
		}
	}
	var errs []error
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		errs = append(errs, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, content, 0o600))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("writing the build module: %w", err)
	}
	return nil
}
