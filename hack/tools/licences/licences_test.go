// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	mit = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation
files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify,
merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished
to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE
FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION
WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`
	gpl = `This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as
published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.

This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even the implied warranty of
MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE. See the GNU General Public License for more details.

You should have received a copy of the GNU General Public License along with this program. If not, see
<https://www.gnu.org/licenses/>.
`
)

func TestLicencesIn(t *testing.T) {
	own, err := os.ReadFile("../../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		text   string
		want   []string
		errors string
	}{
		"the project's own":     {text: string(own), want: []string{"Apache-2.0"}},
		"MIT with a copyright":  {text: "Copyright (c) 2020 An Author\n\n" + mit, want: []string{"MIT"}},
		"two":                   {text: string(own) + "\n\n" + mit, want: []string{"Apache-2.0", "MIT"}},
		"one that is not":       {text: gpl, errors: "GPL-3.0"},
		"one of two is not":     {text: mit + "\n" + gpl, errors: "GPL-3.0"},
		"nothing known":         {text: "All rights reserved, and you may not read this.", errors: "0 % of it"},
		"more is added to it":   {text: mit + strings.Repeat("\nNobody may use this on a Sunday, or lend it to a neighbour.", 40), errors: "% of it is text"},
		"a link to one is none": {text: "https://opensource.org/licenses/MIT", errors: "of it is text"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := licencesIn([]byte(test.text))
			if test.errors == "" && (err != nil || !slices.Equal(got, test.want)) {
				t.Errorf("%q and %v, want %q", got, err, test.want)
			}
			if test.errors != "" && (err == nil || !strings.Contains(err.Error(), test.errors)) {
				t.Errorf("error %v, want %q in it", err, test.errors)
			}
		})
	}
}

// TestModules lists a program with two modules, one of them only on Windows, and with a package that has a licence of its own.
func TestModules(t *testing.T) {
	root := t.TempDir()
	write(t, root, "main/go.mod", `module example.com/main

go 1.26.0

require (
	example.com/both v1.0.0
	example.com/windows v1.0.0
)

replace (
	example.com/both v1.0.0 => ../both
	example.com/windows v1.0.0 => ../windows
)
`)
	write(t, root, "main/cmd/program/main.go", "package main\n\nimport _ \"example.com/both/used\"\n\nfunc main() {}\n")
	write(t, root, "main/cmd/program/main_windows.go", "package main\n\nimport _ \"example.com/windows\"\n")
	write(t, root, "both/go.mod", "module example.com/both\n\ngo 1.26.0\n")
	write(t, root, "both/LICENSE.txt", mit)
	write(t, root, "both/license.go", "package both\n")
	write(t, root, "both/used/used.go", "package used\n")
	write(t, root, "both/used/COPYING", mit)
	write(t, root, "both/unused/unused.go", "package unused\n")
	write(t, root, "both/unused/LICENSE", gpl)
	write(t, root, "windows/go.mod", "module example.com/windows\n\ngo 1.26.0\n")
	write(t, root, "windows/windows.go", "package windows\n")

	modules, err := compiledIn(filepath.Join(root, "main"), []program{{name: "program", path: "./cmd/program"}}, []string{"linux/amd64", "windows/amd64"})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*module{}
	for _, m := range modules {
		byName[filepath.Base(m.path)] = m
	}
	if got, want := slices.Sorted(maps.Keys(byName)), []string{standardLibrary, "both", "windows"}; !slices.Equal(got, want) {
		t.Fatalf("modules %q, want %q", got, want)
	}
	files, err := licenceFiles(byName["both"])
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{filepath.Join(root, "both", "LICENSE.txt"), filepath.Join(root, "both", "used", "COPYING")}; !slices.Equal(files, want) {
		t.Errorf("licences in %q, want %q", files, want)
	}
	if err := identify(modules); err == nil || err.Error() != "../windows : there is no file with a licence" {
		t.Errorf("error %v, want one of the module without a licence alone", err)
	}
	if got := byName["both"].licences; !slices.Equal(got, []string{"MIT"}) {
		t.Errorf("licences %q", got)
	}
}

func write(t *testing.T, root, name, content string) {
	t.Helper()
	name = filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
