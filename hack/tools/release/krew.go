// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

// krewManifest is the name of the plugin's manifest: krew wants that of the plugin.
const krewManifest = "freehold.yaml"

// writeKrewManifest fills in the template of deploy/krew. hack/try-krew.sh has krew judge the result.
func writeKrewManifest(opts options, archives []pluginArchive) error {
	source, err := os.ReadFile(filepath.Join(opts.root, "deploy", "krew", krewManifest))
	if err != nil {
		return err
	}
	parsed, err := template.New(krewManifest).Option("missingkey=error").Parse(string(source))
	if err != nil {
		return err
	}
	type entry struct{ OS, Arch, URI, SHA256, Program string }
	data := struct {
		Version   string
		Platforms []entry
	}{Version: opts.version}
	for _, a := range archives {
		uri := fmt.Sprintf("%s/releases/download/%s/%s", website, opts.version, a.name)
		data.Platforms = append(data.Platforms, entry{a.os, a.arch, uri, a.sha256, a.program})
	}
	var filled bytes.Buffer
	if err := parsed.Execute(&filled, data); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(opts.out, krewManifest), filled.Bytes(), 0o644)
}
