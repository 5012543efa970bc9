// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/plugin/cmd"
	"github.com/freehold-dev/freehold/test/harness"
)

// configuration is what the MCPServer refers to: it accepts tokens of an issuer.
func configuration(issuer string) string {
	return `{"apiVersion":"toolhive.stacklok.dev/v1beta1","kind":"MCPOIDCConfig","metadata":{"name":"corp"},"spec":{"type":"inline","inline":{
		"issuer":"` + issuer + `","clientSecretRef":{"name":"idp","key":"secret"},"caBundleRef":{"configMapRef":{"name":"corp-ca","key":"ca.crt"}}}}}`
}

// telemetry is another one: the proxy has metrics.
const telemetry = `{"apiVersion":"toolhive.stacklok.dev/v1beta1","kind":"MCPTelemetryConfig","metadata":{"name":"collector"},"spec":{"prometheus":{"enabled":true}}}`

func refers(server *v1beta1.MCPServer) {
	server.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: "corp", Audience: "tools", ResourceURL: "https://tools.example.com"}
	server.Spec.TelemetryConfigRef = &v1beta1.MCPTelemetryConfigReference{Name: "collector"}
}

func apply(t *testing.T, kubectl *harness.Kubectl, object string) {
	t.Helper()
	kubectl.Do(t, harness.Call{Args: []string{"apply", "--server-side", "-f", "-"}, Input: object})
}

// says fails the test where a text lacks one of others.
func says(t *testing.T, what, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%s: it does not say %q:\n%s", what, w, text)
		}
	}
}

const (
	proxyHeld = "deployment.apps/web, and what it reads, is not written while a reference cannot be used"
	missing   = `OIDCConfigRefNotFound: spec.oidcConfigRef names the MCPOIDCConfig "corp", which does not exist in the namespace `
	secretEnv = `deployment.apps/web:.spec.template.spec.containers[name="toolhive"].env[name="TOOLHIVE_OIDC_CLIENT_SECRET"].valueFrom.secretKeyRef.name`
)

// TestReferences lets an MCPServer refer to a configuration that is missing, then invalid, then good. What the plugin says would be
// written is then written.
func TestReferences(t *testing.T) {
	s := newScene(t)
	s.stop(t)
	apply(t, s.kubectl, telemetry)
	s.kubectl.Run(t, "create", "configmap", "corp-ca", "--from-literal=ca.crt=the authorities of corp")
	s.Edit(t, web, func(server *v1beta1.MCPServer) {
		refers(server)
		server.Spec.Image = "example.com/mcp:2"
	})
	mark := s.Mark(t)
	got := must(t, s.Namespace, cmd.ExitFound, "diff", "web", known)
	says(t, "missing", got.errOut, proxyHeld, missing+s.Name+".", "The proxy keeps the configuration that it has, made from generation 1 of the MCPServer.")
	golden(t, s.Namespace, "diff-held", got.out)
	// Everything else about the MCPServer can be asked for meanwhile, and none of it says anything about the proxy.
	says(t, "conflicts", must(t, s.Namespace, cmd.ExitDone, "conflicts", "web", known).errOut, proxyHeld, missing)
	says(t, "explain", must(t, s.Namespace, cmd.ExitDone, "explain", secretEnv, known).errOut, proxyHeld, missing)
	says(t, "release", must(t, s.Namespace, cmd.ExitFailed, "release", "web", "deployment.apps/web:"+imagePath, "--dry-run=client", known).errOut,
		"while a reference cannot be used")

	s.Edit(t, web, func(server *v1beta1.MCPServer) { server.Spec.ProxyPort = 7777 })
	const stays = ": it stays as the proxy that runs needs it, until that is written"
	says(t, "other ports", must(t, s.Namespace, cmd.ExitFound, "diff", "web", known).errOut, "service/mcp-web-proxy"+stays, "statefulset.apps/web"+stays)
	s.Edit(t, web, func(server *v1beta1.MCPServer) { server.Spec.ProxyPort = 8080 })

	apply(t, s.kubectl, configuration("http://idp.example.com"))
	says(t, "invalid", must(t, s.Namespace, cmd.ExitFound, "diff", "web", known).errOut, proxyHeld,
		`OIDCConfigRefNotValid: The MCPOIDCConfig "corp" of spec.oidcConfigRef cannot be used: `)

	apply(t, s.kubectl, configuration("https://idp.example.com"))
	got = must(t, s.Namespace, cmd.ExitFound, "diff", "web", known)
	golden(t, s.Namespace, "diff-references", got.out)
	if got.errOut != "" {
		t.Errorf("good: it says %s", got.errOut)
	}
	s.Mark(t)
	wrote, _, err := s.Audit.Since(mark, audit.Writes(), audit.Namespace(s.Name), func(e *audit.Event) bool {
		return !e.DryRun && e.Resource != "mcpservers" && e.Resource != "mcpoidcconfigs"
	})
	if err != nil || len(wrote) > 0 {
		t.Errorf("the plugin has written: %v %v", wrote, err)
	}

	p := s.Operate(t)
	s.settled(t)
	harness.Eventually(t, "nothing is left to write", func(context.Context) error {
		if got := do(t, s.Namespace, call{args: []string{"diff", "web", known}}); got.out != "No differences.\n" || got.errOut != "" {
			return errors.New(got.out + got.errOut)
		}
		return nil
	})
	golden(t, s.Namespace, "explain-reference", must(t, s.Namespace, cmd.ExitDone, "explain", secretEnv, known).out)
	golden(t, s.Namespace, "explain-references", must(t, s.Namespace, cmd.ExitDone, "explain", "deployment/web", known, "-o", "json").out)
	says(t, "owners", must(t, s.Namespace, cmd.ExitDone, "owners", "deployment/web").out, "freehold.dev/references: configmap/corp-ca=", ",mcpoidcconfig/corp=")
	// Objects of these kinds are as any others to owners.
	says(t, "owners of a configuration", must(t, s.Namespace, cmd.ExitDone, "owners", "mcpoidcconfig/corp").out, "kubectl  ", "issuer: https://idp.example.com")

	// A conflict about a field that comes from a reference is found, and the plugin is not misled by references that were forged.
	harness.Stop(t, p)
	s.MustApply(t, argo, harness.Proxy, web, true, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"freehold.dev/references": "mcpoidcconfig/corp=00000000-0000-0000-0000-000000000000/99@999999999"}},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"volumes": []any{
			map[string]any{"name": "oidc-ca-bundle-corp-ca", "configMap": map[string]any{"name": "mine"}},
		}}}},
	})
	says(t, "contested", must(t, s.Namespace, cmd.ExitFound, "conflicts", "web", known, "-o", "wide").out,
		`.spec.template.spec.volumes[name="oidc-ca-bundle-corp-ca"].configMap.name`, ".metadata.annotations.freehold.dev/references", argo)
}

// TestTakeoverOfReferences previews the takeover of an MCPServer that refers to a configuration. The operator says the same.
func TestTakeoverOfReferences(t *testing.T) {
	ns := env.Namespace(t)
	kubectl := ns.Kubectl(t)
	ns.RestoreFixture(t, "edited", web)
	ns.Edit(t, web, refers)
	apply(t, kubectl, telemetry)
	preview := []string{"takeover", "--preview", web, known, runner}
	problem := missing + ns.Name + "."
	says(t, "missing", must(t, ns, cmd.ExitFound, preview...).out, "something blocks the takeover", problem+" ToolHive's objects stay as they are.")
	p := ns.Operate(t, "--runner-image=freehold.invalid/proxyrunner:v0.44.0")
	ns.AwaitServer(t, web, "is left to ToolHive", func(server *v1beta1.MCPServer) error {
		told := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionTakenOver)
		if told == nil || told.Reason != v1beta1.ReasonCannotTakeOver || !strings.Contains(told.Message, problem) {
			return errors.New("TakenOver does not say so")
		}
		return nil
	})
	harness.Stop(t, p)

	apply(t, kubectl, configuration("https://idp.example.com"))
	says(t, "good", must(t, ns, cmd.ExitDone, preview...).out, "it can be taken over", `.env[name="TOOLHIVE_OIDC_CLIENT_SECRET"]`, `{.oidc_config}`)
}

// TestRightsToReferences runs verbs as a user who may not read what MCPServers refer to.
func TestRightsToReferences(t *testing.T) {
	ns := env.Namespace(t)
	kubectl := ns.Kubectl(t)
	apply(t, kubectl, configuration("https://idp.example.com"))
	apply(t, kubectl, telemetry)
	ns.RestoreFixture(t, "edited", web)
	ns.Edit(t, web, refers)
	kubectl.Run(t, "create", "role", "looker", "--verb=get,list",
		"--resource=mcpservers.toolhive.stacklok.dev,mcptelemetryconfigs.toolhive.stacklok.dev,deployments.apps,statefulsets.apps,services,configmaps,serviceaccounts,roles,rolebindings")
	kubectl.Run(t, "create", "rolebinding", "looker", "--role=looker", "--user=looker")
	const unknown = "Freehold cannot tell whether it exists: you may not get mcpoidcconfigs.toolhive.stacklok.dev in the namespace "
	var got result
	harness.Eventually(t, "the rights hold", func(context.Context) error {
		if got = do(t, ns, call{args: []string{"takeover", "--preview", web, "--as=looker", known, runner}}); !strings.Contains(got.out, unknown) {
			return errors.New(got.out + got.errOut)
		}
		return nil
	})
	says(t, "takeover", got.out, unknown+ns.Name+". So it is not known whether it can be taken over.")
	if strings.Contains(got.out, "stay as they are") {
		t.Errorf("it says what it cannot know: %s", got.out)
	}
	// ToolHive holds fields that Freehold would set.
	conflicts := must(t, ns, cmd.ExitFound, "conflicts", web, "--as=looker", known)
	says(t, "conflicts", conflicts.errOut, "what the operator writes of deployment.apps/web, and of what it reads, is not known", unknown+ns.Name)
	if strings.Contains(conflicts.errOut, "collector") || strings.Contains(conflicts.errOut, "keeps the configuration") {
		t.Errorf("it says too much: %s", conflicts.errOut)
	}
	kubectl.Run(t, "create", "role", "reader", "--verb=get", "--resource=mcpoidcconfigs.toolhive.stacklok.dev")
	kubectl.Run(t, "create", "rolebinding", "reader", "--role=reader", "--user=looker")
	harness.Eventually(t, "the configuration may be read", func(context.Context) error {
		if got := do(t, ns, call{args: []string{"conflicts", web, "--as=looker", known}}); strings.Contains(got.errOut, "is not known") {
			return errors.New(got.errOut)
		}
		return nil
	})
}
