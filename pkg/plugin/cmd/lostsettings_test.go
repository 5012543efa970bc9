// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
)

// The preview names what ToolHive's operator is set up with and Freehold's is not, also where ToolHive's is stopped already. That is no
// obstacle. Of MCPServers that are not ToolHive's there is nothing to say.
func TestAPreviewNamesSettingsThatWouldBeLost(t *testing.T) {
	const variable, given = "TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS", "--default-image-pull-secrets=regcred"
	w := newWorld(t, nil)
	w.apply("helm", apply.NewObjectRef(managers.Deployment, "shop", "toolhive-operator"), content{"spec": content{
		"replicas": int64(0), "template": content{"spec": content{"containers": []any{content{
			"name": "manager", "image": "ghcr.io/stacklok/toolhive/operator:v0.62.0",
			"env": []any{content{"name": variable, "value": "regcred"}, content{"name": "TOOLHIVE_PROXY_HOST", "value": "0.0.0.0"}},
		}}}},
	}})
	preview := []string{"takeover", "--preview", "web", known}
	if out, _ := w.must(ExitDone, preview...); strings.Contains(out, variable) {
		t.Errorf("of an MCPServer of Freehold's it says\n%s", out)
	}
	w.must(ExitDone, "handback", "-A", "--yes")
	out, _ := w.must(ExitDone, preview...)
	for _, part := range []string{"deployment.apps/toolhive-operator in namespace shop", variable + "=regcred", given} {
		if first, _, _ := strings.Cut(out, "\n"); !strings.Contains(first, part) {
			t.Errorf("it says nothing of %s first:\n%s", part, out)
		}
	}
	out, _ = w.must(ExitDone, append(preview, "-o", "json")...)
	want := []cluster.OperatorSetting{{
		Object: "deployment.apps/toolhive-operator", Namespace: "shop",
		Difference: cluster.Difference{Variable: variable, Value: "regcred", Has: "--default-image-pull-secrets=", Give: given},
	}}
	if diff := cmp.Diff(want, decode[printers.Takeovers](t, out).Settings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if out, _ = w.must(ExitDone, append(preview, "--operator-arg="+given)...); strings.Contains(out, variable) {
		t.Errorf("with %s it says\n%s", given, out)
	}
}
