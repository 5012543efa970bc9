// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Command derived writes into files what follows from the tables in the code: from those of field managers and of what MCPServers
// refer to in package managers, that of children in package inventory, that of what older proxyrunners enforce in package render, and that
// of the steps of a pass in package controller. Its arguments are the files. It replaces what is between the lines
//
//	BEGIN NAME
//	END NAME
//
// which are comments of Markdown or of YAML, and keeps their indentation.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/freehold-dev/freehold/internal/markers"
	"github.com/freehold-dev/freehold/pkg/controller"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/status"
)

// blocks returns the texts by their names.
func blocks() map[string]string {
	children := inventory.Children()
	return map[string]string{
		"who-writes-what":  writersTable(managers.Registry().Writers()),
		"children":         childrenTable(children),
		"rights":           rights(children),
		"config-rights":    configRights(managers.Configs()),
		"cluster-rights":   rightsTable(clusterRights(children, managers.Configs())),
		"other-rights":     otherRightsTable(otherRights()),
		"guarded-configs":  matchingConfigs(managers.Configs()),
		"guarded-children": matching(children, "CREATE", "UPDATE"),
		"watched-children": matching(children, "UPDATE"),
		"enforcements":     enforcementsTable(render.Enforcements()),
		"steps":            stepsTable(controller.Steps()),
		"phases":           phasesTable(status.Table()),
	}
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "derived:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	if len(files) == 0 {
		return errors.New("want the files to write into as arguments")
	}
	texts := blocks()
	for _, file := range files {
		old, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		renewed, err := markers.Replace(string(old), texts)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if bytes.Equal(old, []byte(renewed)) {
			continue
		}
		if err := os.WriteFile(file, []byte(renewed), 0o644); err != nil {
			return err
		}
	}
	return nil
}
