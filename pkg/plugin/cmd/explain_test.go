// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"
)

// An MCPServer is one by its whole kind: an object of another kind whose name begins like that is none, nor is one of another product.
func TestAnMCPServerIsOneByItsWholeKind(t *testing.T) {
	for argument, want := range map[string]string{
		"mcpserver/web": "web", "MCPServers/web": "web", "mcpservers.toolhive.stacklok.dev/web": "web", "mcpserver": "", "deployment/web": "",
		"mcpserver.v1beta1.toolhive.stacklok.dev/web": "web", "mcpserver.kagent.dev/web": "", "mcpservers.v1.kagent.dev/web": "",
		"mcpserverentry/web": "", "mcpserverentries.toolhive.stacklok.dev/web": "",
	} {
		asked, err := explainedOf([]string{argument})
		if asked.server != want {
			t.Errorf("%s is MCPServer %q, want %q", argument, asked.server, want)
		}
		if foreign := strings.HasPrefix(argument, "mcpserverentr") || strings.Contains(argument, "kagent"); (err != nil) != foreign {
			t.Errorf("%s: error %v", argument, err)
		}
	}
}
