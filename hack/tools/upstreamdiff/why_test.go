// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
)

const (
	client     = "pkg/container/kubernetes/client.go"
	controller = "cmd/thv-operator/controllers/mcpserver_controller.go"
)

// evidence is what a file of ToolHive's has, or lacks.
type evidence struct {
	path, has, lacks string
}

// claims are those of the README's table about ToolHive, by a part of the row.
var claims = map[string][]evidence{
	"field manager that all proxies share": {
		{path: client, has: `serviceFieldManager = "toolhive-container-manager"`},
		{path: client, has: "FieldManager: serviceFieldManager,\n\t\t\tForce:        true,"},
		{path: client, has: "if theirsGen > ourGen {\n"},
	},
	"leaves the number alone": {
		{path: client, has: "options.ScalingConfig.BackendReplicas != nil {\n\t\tspec = spec.WithReplicas("},
		{path: controller, has: "if newDeployment.Spec.Replicas != nil {\n\t\t\tdeployment.Spec.Replicas = newDeployment.Spec.Replicas"},
	},
	"every two minutes": {
		{path: "cmd/thv-operator/controllers/mcpserver_statefulset.go", has: "statefulSetHealCooldown = 2 * time.Minute"},
	},
	"carry the generation": {
		{path: controller, has: "deploymentTemplateAnnotations[kubernetes.RunConfigMCPServerGenerationAnnotation] ="},
	},
	"updates the whole status": {
		{path: controller, has: "r.Status().Update(ctx, "},
		{path: controller, lacks: "r.Status().Patch("},
		{path: controller, lacks: "r.Status().Apply("},
	},
	"without a report": {
		{path: controller, lacks: "onflict with"},
		{path: "cmd/thv-operator/api/v1beta1/mcpserver_types.go", lacks: "FieldsOwned"},
	},
}

// TestWhatTheReadmeSaysOfToolHive holds the table "Why" of the README against the sources of the release that it names.
func TestWhatTheReadmeSaysOfToolHive(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(readme), "\n| ToolHive ")
	version, table, _ := strings.Cut(table, " | Freehold |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "<!-- END why -->")
	if !found || table == "" {
		t.Fatal("the README has no table about ToolHive")
	}
	sources, err := download(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for row := range strings.Lines(table) {
		left := strings.Split(row, "|")[1]
		for claim, all := range claims {
			if !strings.Contains(left, claim) {
				continue
			}
			used[claim] = true
			for _, e := range all {
				if text := sources[e.path]; text == "" || !strings.Contains(text, e.has) || e.lacks != "" && strings.Contains(text, e.lacks) {
					t.Errorf("%q: %s of ToolHive %s lacks %q, or has %q", claim, e.path, version, e.has, e.lacks)
				}
			}
			left = ""
		}
		if left != "" {
			t.Errorf("the README says of ToolHive without evidence:%s", left)
		}
	}
	for claim := range claims {
		if !used[claim] {
			t.Errorf("the README does not say %q of ToolHive", claim)
		}
	}
}
