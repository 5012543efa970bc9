// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
)

// Each setting is one line, before the MCPServers. One whose value is not known is not said to differ.
func TestEachOperatorSettingIsOneLine(t *testing.T) {
	of := func(d cluster.Difference) cluster.OperatorSetting {
		return cluster.OperatorSetting{Object: "deployment.apps/toolhive-operator", Namespace: "toolhive-system", Difference: d}
	}
	all := printers.Takeovers{
		Settings: []cluster.OperatorSetting{
			of(cluster.Difference{Variable: "TOOLHIVE_PROXY_HOST", Value: "::1\x1b", Has: "--proxy-host=0.0.0.0", Give: "--proxy-host=::1"}),
			of(cluster.Difference{Variable: "TOOLHIVE_DEFAULT_REDIS_ADDR", Hidden: true, Has: "--default-redis-address="}),
		},
		Servers: []printers.ServerTakeover{{Namespace: "tools", Name: "web", Standing: "ToolHive"}},
	}
	if all.Hindered() {
		t.Error("it is an obstacle")
	}
	var out bytes.Buffer
	if err := all.Print(&out, printers.Palette{}, noon, false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) < 4 || !strings.Contains(lines[0], "To keep that, give Freehold's operator --proxy-host=::1") ||
		!strings.Contains(lines[1], "If the two differ") || lines[2] != "" || !strings.HasPrefix(lines[3], "mcpserver/web") {
		t.Errorf("it prints\n%s", &out)
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("it prints what a terminal obeys: %q", &out)
	}
}
