// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package desired_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/render"
)

// referring is an MCPServer with two references, and what they name.
func referring() (*v1beta1.MCPServer, render.References) {
	s := server(v1beta1.TransportStreamableHTTP)
	s.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: "corp", Audience: "tools"}
	s.Spec.TelemetryConfigRef = &v1beta1.MCPTelemetryConfigReference{Name: "collector"}
	object := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: s.Namespace, UID: "u-1", Generation: 2, ResourceVersion: "22"}
	}
	return s, render.References{Objects: configs.Objects{
		"oidcConfigRef": &v1beta1.MCPOIDCConfig{ObjectMeta: object("corp"), Spec: v1beta1.MCPOIDCConfigSpec{
			Type: v1beta1.MCPOIDCConfigTypeInline,
			Inline: &v1beta1.InlineOIDCSharedConfig{
				Issuer: "https://idp.example.com", ClientSecretRef: &v1beta1.SecretKeyRef{Name: "idp", Key: "secret"},
				CABundleRef: &v1beta1.CABundleSource{ConfigMapRef: &v1beta1.ConfigMapKeySelector{Name: "corp-ca"}},
			},
		}},
		"telemetryConfigRef": &v1beta1.MCPTelemetryConfig{ObjectMeta: object("collector"), Spec: v1beta1.MCPTelemetryConfigSpec{
			Prometheus: &v1beta1.PrometheusConfig{Enabled: true},
		}},
	}}
}

func (w world) planFrom(t *testing.T, s *v1beta1.MCPServer, references render.References) *desired.Plan {
	t.Helper()
	plan, err := desired.New(w.input(s, references))
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func (w world) input(s *v1beta1.MCPServer, references render.References) desired.Input {
	in := desired.Input{Server: s, References: references, Child: func(ref apply.ObjectRef) *unstructured.Unstructured { return w[ref] }}
	in.Children = slices.Collect(maps.Values(w))
	return in
}

// intentOf returns what a writer wants of an object.
func intentOf(plan *desired.Plan, writer string, object apply.ObjectRef) *desired.Intent {
	at := slices.IndexFunc(plan.Intents, func(i desired.Intent) bool {
		return i.Writer == writer && i.Object.Kind == object.Kind && (object.Name == "" || i.Object.Name == object.Name)
	})
	if at < 0 {
		return nil
	}
	return &plan.Intents[at]
}

// What the proxy is rendered from is recorded on the proxy and its RunConfig, and on nothing else.
func TestReferencesAreRecorded(t *testing.T) {
	s, references := referring()
	plan := world{}.planFrom(t, s, references)
	if len(plan.Held) > 0 {
		t.Fatalf("held: %v", plan.Held)
	}
	const want = "mcpoidcconfig/corp=u-1/2@22,mcptelemetryconfig/collector=u-1/2@22"
	for _, intent := range plan.Intents {
		recorded := (&unstructured.Unstructured{Object: intent.Config()}).GetAnnotations()[v1beta1.AnnotationReferences]
		if wants := intent.Writer == managers.Proxy || intent.Writer == managers.RunConfig; wants && recorded != want || !wants && recorded != "" {
			t.Errorf("%s of %s records %q", intent.Writer, intent.Object, recorded)
		}
	}
	// An object that tells of a newer state does not hold the plan up: what the API server has answered with is the newest.
	w := settled(t, server(v1beta1.TransportStreamableHTTP))
	w[proxy] = w[proxy].DeepCopy()
	w[proxy].SetAnnotations(map[string]string{v1beta1.AnnotationReferences: "mcpoidcconfig/corp=u-1/9@99"})
	if intent := intentOf(w.planFrom(t, s, references), managers.Proxy, proxy); intent.Err != nil || intent.Config() == nil {
		t.Errorf("the proxy is not planned: %v", intent.Err)
	}
}

// While a reference cannot be used there is nothing about the proxy, it is said why, and the rest is planned. Where ports move, what
// the proxy that runs uses stays.
func TestAnUnusableReferenceHoldsTheProxyAlone(t *testing.T) {
	s, references := referring()
	delete(references.Objects, "oidcConfigRef")
	w := settled(t, server(v1beta1.TransportStreamableHTTP))
	s.Spec.Image = "example.com/mcp:2"
	plan := w.planFrom(t, s, references)
	if len(plan.Held) != 1 || plan.Held[0].Reason != v1beta1.ReasonOIDCConfigRefNotFound || plan.Unread {
		t.Errorf("held: %+v, unread %v", plan.Held, plan.Unread)
	}
	if want := "The proxy keeps the configuration that it has, made from generation 3 of the MCPServer."; plan.Enforced != want {
		t.Errorf("enforced: %s", plan.Enforced)
	}
	if intentOf(plan, managers.Proxy, proxy) != nil || intentOf(plan, managers.RunConfig, apply.ObjectRef{Kind: managers.ConfigMap}) != nil {
		t.Error("the proxy, or what it reads, is planned")
	}
	if intent := intentOf(plan, managers.Backend, backend); intent.Same() || intent.Waits != "" {
		t.Errorf("the backend: same %v, waits %q", intent.Same(), intent.Waits)
	}
	if made := (world{}).planFrom(t, s, references); made.Enforced != "No proxy is made until that is fixed." {
		t.Errorf("without a proxy: %s", made.Enforced)
	}

	s.Spec.ProxyPort = 7777
	plan = w.planFrom(t, s, references)
	for _, intent := range plan.Intents {
		moves := intent.Object.Kind == managers.ServiceKind || intent.Object.Kind == managers.Role || intent.Writer == managers.Backend
		if moves != (intent.Waits != "") {
			t.Errorf("%s waits because %q", intent.Object, intent.Waits)
		}
	}
	// With another transport the MCPServer asks for fewer Services; the proxy that runs uses them all.
	s.Spec.Transport, s.Spec.MCPPort = v1beta1.TransportStdio, 0
	if plan := w.planFrom(t, s, references); len(plan.Unwanted) > 0 {
		t.Errorf("unwanted while the proxy is held: %v", plan.Unwanted)
	}
	_, references = referring()
	if plan := w.planFrom(t, s, references); len(plan.Unwanted) == 0 {
		t.Error("nothing is unwanted once the proxy can be written")
	}
}

// A proxy that waits for its turn to be replaced is planned, and says so.
func TestTurnIsWaitedFor(t *testing.T) {
	s, references := referring()
	w := settled(t, server(v1beta1.TransportStreamableHTTP))
	for _, waits := range []bool{false, true} {
		if waits {
			s.Status.Conditions = []metav1.Condition{{
				Type: v1beta1.ConditionApplied, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonWaitingForTurn,
			}}
		}
		for _, intent := range w.planFrom(t, s, references).Intents {
			of := intent.Writer == managers.Proxy || intent.Writer == managers.RunConfig
			if got := intent.Waits != ""; got != (waits && of) || of && intent.Same() {
				t.Errorf("%s: same %v, waits because %q, want it to wait: %v", intent.Object, intent.Same(), intent.Waits, waits && of)
			}
		}
	}
	s.Spec.ProxyPort = 7777
	if service := intentOf(w.planFrom(t, s, references), managers.Service, service); service == nil || service.Waits == "" {
		t.Error("a Service moves away from a proxy that waits for its turn")
	}
}

// What a user may not read is told apart from what the operator does not find.
func TestUnreadReferencesAreToldApart(t *testing.T) {
	for name, c := range map[string]struct {
		kind        string
		unavailable render.Unavailable
		held        string
		unread      bool
	}{
		"forbidden":       {configs.OIDC, render.Unavailable{Cause: "you may not"}, v1beta1.ReasonOIDCConfigRefError, true},
		"not served":      {configs.OIDC, render.Unserved(configs.OIDC), v1beta1.ReasonOIDCConfigRefNotFound, false},
		"forbidden group": {configs.Group, render.Unavailable{Cause: "you may not"}, "", false},
	} {
		s, references := referring()
		s.Spec.GroupRef = &v1beta1.MCPGroupRef{Name: "tools"}
		if c.kind == configs.OIDC {
			delete(references.Objects, "oidcConfigRef")
		}
		references.Unavailable = map[string]render.Unavailable{c.kind: c.unavailable}
		plan := world{}.planFrom(t, s, references)
		held := ""
		if len(plan.Held) > 0 {
			held = plan.Held[0].Reason
		}
		if held != c.held || plan.Unread != c.unread {
			t.Errorf("%s: held because of %q, unread %v", name, held, plan.Unread)
		}
	}
}

// Every field that comes from a reference tells which, and no other field does.
func TestEveryFieldOfAReferenceTellsItsOrigin(t *testing.T) {
	s, references := referring()
	origins, held, err := desired.Origins(world{}.input(s, references), proxy)
	if err != nil || len(held) > 0 {
		t.Fatal(held, err)
	}
	got := map[string][]string{}
	for _, origin := range origins {
		var fields []string
		origin.Fields.Iterate(func(path fieldpath.Path) {
			if text := path.String(); !strings.Contains(text, v1beta1.AnnotationRunConfigChecksum) {
				fields = append(fields, text)
			}
		})
		got[origin.Field+" "+origin.Kind+" "+origin.Name] = fields
	}
	const volumes, container = `.spec.template.spec.volumes[name="oidc-ca-bundle-corp-ca"]`, `.spec.template.spec.containers[name="toolhive"]`
	for field, want := range map[string][]string{
		"spec.oidcConfigRef MCPOIDCConfig corp": {
			container + `.env[name="TOOLHIVE_OIDC_CLIENT_SECRET"].valueFrom.secretKeyRef`, volumes + ".configMap.name",
			container + `.volumeMounts[mountPath="/config/certs/corp-ca"].name`,
		},
		"spec.telemetryConfigRef MCPTelemetryConfig collector": nil,
	} {
		fields, found := got[field]
		if !found {
			t.Errorf("nothing comes from %s: %v", field, got)
		}
		for _, path := range want {
			if !slices.Contains(fields, path) {
				t.Errorf("%s does not come from %s: %v", path, field, fields)
			}
		}
		if slices.ContainsFunc(fields, func(path string) bool { return strings.HasSuffix(path, ".image") || strings.Contains(path, "ports") }) {
			t.Errorf("more than its own comes from %s: %v", field, fields)
		}
	}
	if len(got) != 2 {
		t.Errorf("origins: %v", got)
	}
	if origins, _, err := desired.Origins(world{}.input(s, references), backend); err != nil || len(origins) > 0 {
		t.Errorf("of the backend, %v comes from references: %v", origins, err)
	}
	delete(references.Objects, "oidcConfigRef")
	if origins, held, err := desired.Origins(world{}.input(s, references), proxy); err != nil || len(origins) > 0 || len(held) != 1 {
		t.Errorf("while a reference cannot be used: %v %v %v", origins, held, err)
	}
}

// A reference that another one needs has its origins found out without that.
func TestOriginsAreFoundOfWhatAnotherReferenceNeeds(t *testing.T) {
	s, references := referring()
	const resource = "https://tools.example.com"
	s.Spec.OIDCConfigRef.Audience, s.Spec.OIDCConfigRef.ResourceURL = resource, resource
	s.Spec.TelemetryConfigRef, s.Spec.AuthServerRef = nil, &v1beta1.AuthServerRef{Kind: configs.ExternalAuth, Name: "as"}
	server := &v1beta1.MCPExternalAuthConfig{ObjectMeta: *configs.OIDCConfigRef.In(references.Objects).ObjectMeta.DeepCopy(), Spec: v1beta1.MCPExternalAuthConfigSpec{
		Type: v1beta1.ExternalAuthTypeEmbeddedAuthServer, EmbeddedAuthServer: &v1beta1.EmbeddedAuthServerConfig{
			Issuer: "https://idp.example.com",
			UpstreamProviders: []v1beta1.UpstreamProviderConfig{{
				Name: "corp", Type: v1beta1.UpstreamProviderTypeOIDC,
				OIDCConfig: &v1beta1.OIDCUpstreamConfig{IssuerURL: "https://login.example.com", ClientID: "c"},
			}},
		},
	}}
	server.Name, references.Objects["authServerRef"] = "as", server
	origins, held, err := desired.Origins(world{}.input(s, references), proxy)
	if err != nil || len(held) > 0 {
		t.Fatal(held, err)
	}
	var fields []string
	for _, origin := range origins {
		fields = append(fields, origin.Field)
	}
	if diff := cmp.Diff([]string{"spec.oidcConfigRef", "spec.authServerRef"}, fields); diff != "" {
		t.Errorf("origins (-want +got):\n%s", diff)
	}
}
