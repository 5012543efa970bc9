// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// TestReferredKinds: every kind that an MCPServer refers to has a row in the registry, and every row is referred to.
func TestReferredKinds(t *testing.T) {
	spec := v1beta1.MCPServerSpec{
		OIDCConfigRef: &v1beta1.MCPOIDCConfigReference{Name: "a"}, AuthzConfigRef: &v1beta1.MCPAuthzConfigReference{Name: "b"},
		ToolConfigRef: &v1beta1.ToolConfigRef{Name: "c"}, ExternalAuthConfigRef: &v1beta1.ExternalAuthConfigRef{Name: "d"},
		AuthServerRef: &v1beta1.AuthServerRef{Name: "e"}, WebhookConfigRef: &v1beta1.WebhookConfigRef{Name: "f"},
		TelemetryConfigRef: &v1beta1.MCPTelemetryConfigReference{Name: "g"}, GroupRef: &v1beta1.MCPGroupRef{Name: "h"},
	}
	seen := map[string]bool{}
	for _, named := range configs.Of(&spec) {
		seen[named.Kind] = true
		if managers.ConfigOf(v1beta1.Kind(named.Kind)) == nil {
			t.Errorf("%s is no kind", named.Kind)
		}
	}
	if len(seen) != len(managers.Configs()) || len(configs.Of(&spec)) != 8 {
		t.Errorf("got %v", configs.Of(&spec))
	}
}
