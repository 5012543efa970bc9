// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
)

// Names from which something cannot be made are refused, and the longest that work are not.
func TestNamesFromWhichSomethingCannotBeMadeAreRefused(t *testing.T) {
	name := func(length int) string { return strings.Repeat("n", length) }
	tooLong := "must be no more than 63 characters"
	for _, c := range []struct {
		label, name string
		transport   v1beta1.Transport
		want        string
	}{
		{label: "longest with http", name: name(50), transport: "sse"},
		{
			label: "too long with http", name: name(51), transport: "sse",
			want: `the Service "mcp-` + name(51) + `-headless" could not be made: ` + tooLong + ".",
		},
		{label: "longest with stdio", name: name(52), transport: "stdio"},
		{
			label: "too long for the revision label", name: name(53), transport: "stdio",
			want: "it is longer than 52 characters, and the pods of its StatefulSet could not be labelled.",
		},
		{
			label: "too long with stdio", name: name(54), transport: "stdio",
			want: `the Service "mcp-` + name(54) + `-proxy" could not be made: ` + tooLong + ".",
		},
		{
			label: "dots", name: "a.b", transport: "stdio",
			want: `the Service "mcp-a.b-proxy" could not be made: ` + validation.IsDNS1035Label("a.b")[0] + ".",
		},
		{label: "a digit in front", name: "1a", transport: "sse"},
		{
			label: "the proxies' label", name: "mcpserver", transport: "sse",
			want: "its backend would be selected by app=mcpserver, which is the label of every proxy.",
		},
	} {
		t.Run(c.label, func(t *testing.T) {
			in := Input{Server: newServer(withTransport(c.transport), func(s *v1beta1.MCPServer) { s.Name = c.name })}
			if c.want == "" {
				for _, intent := range mustRender(t, in, Options{}).Intents {
					if intent.Kind == kindService && len(validation.IsDNS1035Label(intent.Name)) > 0 {
						t.Errorf("Service %s cannot be made", intent.Name)
					}
				}
				return
			}
			want := []Problem{{
				v1beta1.ConditionSpecValid, "InvalidName",
				`The name "` + c.name + `" cannot be used: ` + c.want,
			}}
			if diff := cmp.Diff(want, problemsOf(t, in)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// Host paths that cannot be mounted beside what the operator mounts.
func TestHostPathsThatCannotBeMountedAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		volumes []v1beta1.Volume
		want    []string
	}{
		"fine": {volumes: []v1beta1.Volume{
			{Name: "a", HostPath: "/h", MountPath: "/a"}, {Name: "b", HostPath: "/h", MountPath: "/b"},
		}},
		"names": {
			[]v1beta1.Volume{
				{Name: "A_", HostPath: "/h", MountPath: "/1"},
				{Name: "runconfig", HostPath: "/h", MountPath: "/2"},
				{Name: "x", HostPath: "/h", MountPath: "/3"},
				{Name: "x", HostPath: "/h", MountPath: "/4"},
				{Name: "oidc-ca-bundle-ca", HostPath: "/h", MountPath: "/5"},
			},
			[]string{
				`spec.volumes[0].name "A_" is not the name of a volume: ` + validation.IsDNS1123Label("A_")[0] + ".",
				`spec.volumes[1].name "runconfig" is already used by the operator.`,
				`spec.volumes[3].name "x" is already used by spec.volumes[2].`,
				`spec.volumes[4].name "oidc-ca-bundle-ca" is already used by the operator.`,
			},
		},
		"mounts": {
			[]v1beta1.Volume{
				{Name: "a", HostPath: "/h", MountPath: "/etc/runconfig/"},
				{Name: "b", HostPath: "/h", MountPath: "/config/certs/ca"},
				{Name: "c", HostPath: "/h", MountPath: "/c"},
				{Name: "d", HostPath: "/h", MountPath: "/x/../c"},
			},
			[]string{
				`spec.volumes[0].mountPath "/etc/runconfig/" is already used by the operator.`,
				`spec.volumes[1].mountPath "/config/certs/ca" is already used by the operator.`,
				`spec.volumes[3].mountPath "/x/../c" is already used by spec.volumes[2].`,
			},
		},
		"paths": {
			[]v1beta1.Volume{
				{Name: "a", HostPath: "h", MountPath: "m"},
				{Name: "b", HostPath: "/h/../..", MountPath: "/b:c"},
				{Name: "c", HostPath: "/$(id)", MountPath: ""},
			},
			[]string{
				`spec.volumes[0].hostPath "h" is not an absolute path.`,
				`spec.volumes[0].mountPath "m" is not an absolute path.`,
				`spec.volumes[1].hostPath "/h/../.." must not contain '..'.`,
				"spec.volumes[1].mountPath \"/b:c\" has one of the characters : $ & ; | ` \\ that ToolHive does not accept.",
				"spec.volumes[2].hostPath \"/$(id)\" has one of the characters : $ & ; | ` \\ that ToolHive does not accept.",
				`spec.volumes[2].mountPath "" is not an absolute path.`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := wholeReferences()
			in.Server.Spec.Volumes = c.volumes
			configs.OIDCConfigRef.In(in.References.Objects).Spec.Inline.CABundleRef = &v1beta1.CABundleSource{ConfigMapRef: &v1beta1.ConfigMapKeySelector{Name: "ca"}}
			checkProblems(t, in, v1beta1.ConditionSpecValid, "InvalidVolume", c.want)
		})
	}
}

// TestPermissionProfileHasNoEffect: whatever it says, and whether or not what it names exists, the RunConfig is the same,
// and the user is told.
func TestPermissionProfileHasNoEffect(t *testing.T) {
	plain := jsonOf(t, mustRender(t, Input{Server: newServer()}, Options{}))
	for _, ref := range []v1beta1.PermissionProfileRef{
		{Type: "builtin", Name: "none"},
		{Type: "builtin", Name: "web"},
		{Type: "configmap", Name: "cm", Key: "../../etc/passwd"},
		{Type: "file", Name: "/etc/passwd"},
	} {
		t.Run(ref.Type+" "+ref.Name, func(t *testing.T) {
			result, err := Render(Input{Server: newServer(func(s *v1beta1.MCPServer) { s.Spec.PermissionProfile = &ref })}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Notices) != 1 || result.Notices[0].Reason != v1beta1.ReasonPermissionProfileUnsupported {
				t.Errorf("got notices %+v, want one with reason %s", result.Notices, v1beta1.ReasonPermissionProfileUnsupported)
			}
			result.Notices = nil
			if diff := cmp.Diff(string(plain), string(jsonOf(t, result))); diff != "" {
				t.Errorf("what is rendered (-without +with a profile):\n%s", diff)
			}
		})
	}
}

func TestAnAuthorizationPolicyThatCannotBeHadHoldsTheProxy(t *testing.T) {
	configMap := v1beta1.AuthzConfigRef{Type: "configMap", ConfigMap: &v1beta1.ConfigMapAuthzRef{Name: "cm"}}
	inline := func(entities string, policies ...string) v1beta1.AuthzConfigRef {
		return v1beta1.AuthzConfigRef{Type: "inline", Inline: &v1beta1.InlineAuthzConfig{Policies: policies, EntitiesJSON: entities}}
	}
	const good = `{"version":"1.0","type":"cedarv1","cedar":{"policies":["permit(principal, action, resource);"],"entities_json":"[]"}}`
	const notFound, invalid = "AuthzConfigMapNotFound", "InvalidAuthzConfig"
	for name, c := range map[string]struct {
		ref             v1beta1.AuthzConfigRef
		data            map[string]string
		reason, message string
	}{
		"inline":            {ref: inline("[]", permitAll)},
		"inline nothing":    {v1beta1.AuthzConfigRef{Type: "inline"}, nil, invalid, "spec.authzConfig.type is inline, but spec.authzConfig.inline is missing."},
		"inline no policy":  {inline(""), nil, invalid, "spec.authzConfig.inline cannot be used: there is no policy."},
		"inline blank":      {inline("", permitAll, " "), nil, invalid, "spec.authzConfig.inline cannot be used: policies[1] is blank."},
		"inline entities":   {inline("{}", permitAll), nil, invalid, "spec.authzConfig.inline cannot be used: the entities are not a JSON list: json: cannot unmarshal object into Go value of type []json.RawMessage."},
		"type":              {v1beta1.AuthzConfigRef{Type: "file"}, nil, invalid, `spec.authzConfig.type is "file"; it must be configMap or inline.`},
		"ConfigMap nothing": {v1beta1.AuthzConfigRef{Type: "configMap"}, nil, invalid, "spec.authzConfig.type is configMap, but spec.authzConfig.configMap.name is missing."},
		"no ConfigMap":      {configMap, nil, notFound, `The ConfigMap "cm" of spec.authzConfig does not exist.`},
		"no key":            {configMap, map[string]string{"x": good}, notFound, `The ConfigMap "cm" of spec.authzConfig has no key "authz.json".`},
		"empty":             {configMap, map[string]string{"authz.json": " "}, invalid, `The key "authz.json" of ConfigMap "cm" is not an authorization configuration: it is empty.`},
		"no YAML":           {configMap, map[string]string{"authz.json": "{"}, invalid, `The key "authz.json" of ConfigMap "cm" is not an authorization configuration: it cannot be read, at line 1.`},
		"no version":        {configMap, map[string]string{"authz.json": "type: cedarv1"}, invalid, `The key "authz.json" of ConfigMap "cm" is not an authorization configuration: version is missing.`},
		"other type":        {configMap, map[string]string{"authz.json": "{version: v1, type: opa}"}, invalid, `The key "authz.json" of ConfigMap "cm" is not an authorization configuration: type is another one, and only "cedarv1" and "httpv1" can be used.`},
		"no cedar":          {configMap, map[string]string{"authz.json": "{version: v1, type: cedarv1}"}, invalid, `The key "authz.json" of ConfigMap "cm" is not an authorization configuration: cedar is missing.`},
		"no policies":       {configMap, map[string]string{"authz.json": "{version: v1, type: cedarv1, cedar: {}}"}, invalid, `The key "authz.json" of ConfigMap "cm" is not an authorization configuration: there is no policy.`},
		"ConfigMap":         {ref: configMap, data: map[string]string{"authz.json": good}},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{Server: newServer(func(s *v1beta1.MCPServer) { s.Spec.AuthzConfig = &c.ref })}
			if c.data != nil {
				in.AuthzConfigMap = &corev1.ConfigMap{Data: c.data}
			}
			var want []string
			if c.message != "" {
				want = []string{c.message}
			}
			checkProblems(t, in, v1beta1.ConditionAuthzConfigValidated, c.reason, want)
		})
	}
}

func TestLimitsThatCannotBeEnforcedAreRefused(t *testing.T) {
	bucket := func(tokens int32, period string) *v1beta1.RateLimitBucket {
		return &v1beta1.RateLimitBucket{MaxTokens: tokens, RefillPeriod: period}
	}
	const invalid = "InvalidRateLimit"
	for name, c := range map[string]struct {
		limits  v1beta1.RateLimitConfig
		storage string
		want    []Problem
	}{
		"fine":     {limits: v1beta1.RateLimitConfig{Shared: bucket(1, "90s")}, storage: "redis"},
		"no redis": {v1beta1.RateLimitConfig{Shared: bucket(1, "1s")}, "memory", []Problem{{"", invalid, "spec.rateLimiting needs spec.sessionStorage with provider redis."}}},
		"nothing":  {v1beta1.RateLimitConfig{}, "redis", []Problem{{"", invalid, "spec.rateLimiting sets none of shared, perUser and tools."}}},
		"periods": {v1beta1.RateLimitConfig{Shared: bucket(0, "soon"), Tools: []v1beta1.ToolRateLimitConfig{
			{Name: "a", Shared: bucket(1, "0s")}, {Name: "b", Shared: bucket(1, "-1m")}, {Name: "c", Shared: bucket(1, "60")}, {Name: "d", Shared: bucket(1, "")},
		}}, "redis", []Problem{
			{"", invalid, "spec.rateLimiting.shared.maxTokens is 0; it must be at least 1."},
			{"", invalid, `spec.rateLimiting.shared.refillPeriod "soon" is not a duration such as 1m30s.`},
			{"", invalid, `spec.rateLimiting.tools[0].shared.refillPeriod "0s" is not positive.`},
			{"", invalid, `spec.rateLimiting.tools[1].shared.refillPeriod "-1m" is not positive.`},
			{"", invalid, `spec.rateLimiting.tools[2].shared.refillPeriod "60" is not a duration such as 1m30s.`},
			{"", invalid, `spec.rateLimiting.tools[3].shared.refillPeriod "" is not a duration such as 1m30s.`},
		}},
		"tools": {v1beta1.RateLimitConfig{Tools: []v1beta1.ToolRateLimitConfig{
			{Shared: bucket(1, "1s")}, {Name: "a"}, {Name: "a", Shared: bucket(1, "1s")},
		}}, "redis", []Problem{
			{"", invalid, "spec.rateLimiting.tools[0].name is missing."},
			{"", invalid, "spec.rateLimiting.tools[1] sets neither shared nor perUser."},
			{"", invalid, `spec.rateLimiting.tools[2].name "a" occurs twice.`},
		}},
		"per user": {v1beta1.RateLimitConfig{PerUser: bucket(1, "1s")}, "redis", []Problem{
			{"", "PerUserRequiresAuth", "spec.rateLimiting.perUser needs spec.oidcConfigRef: without it the proxy cannot tell users apart."},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer(func(s *v1beta1.MCPServer) {
				s.Spec.RateLimiting = &c.limits
				s.Spec.SessionStorage = &v1beta1.SessionStorageConfig{Provider: c.storage, Address: "r:6379"}
			})
			if len(c.want) == 0 {
				mustRender(t, Input{Server: server}, Options{})
				return
			}
			for i := range c.want {
				c.want[i].Condition = v1beta1.ConditionRateLimitConfigValid
			}
			if diff := cmp.Diff(c.want, problemsOf(t, Input{Server: server})); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// Each reference to a custom resource fails closed, under its own condition, beside whatever else is wrong.
func TestEachReferenceFailsClosed(t *testing.T) {
	server := newServer(func(s *v1beta1.MCPServer) { s.Spec.Image = "" })
	want := []Problem{{v1beta1.ConditionSpecValid, "InvalidImage", "spec.image is missing."}}
	for ref := range configs.References() {
		var of v1beta1.MCPServer
		if err := json.Unmarshal([]byte(`{"spec":{"`+ref.Field+`":{"name":"r"}}}`), &of); err != nil {
			t.Fatal(err)
		}
		if ref.Copy(&server.Spec, &of.Spec); ref == configs.GroupRef.Reference {
			continue
		}
		want = append(want, Problem{ref.Condition, ref.NotFound, "spec." + ref.Field + " names the " + ref.Kind.Name + ` "r", which does not exist in the namespace tools.`})
		if !slices.Contains(v1beta1.OwnedConditions(), ref.Condition) {
			t.Errorf("nobody owns condition %s", ref.Condition)
		}
	}
	byCondition := func(a, b Problem) int { return strings.Compare(a.Condition, b.Condition) }
	got := problemsOf(t, Input{Server: server})
	slices.SortFunc(want, byCondition)
	slices.SortFunc(got, byCondition)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestUnknownFieldsFailClosed: a spec of which something was dropped when it was read is not rendered.
func TestUnknownFieldsFailClosed(t *testing.T) {
	const next = " The MCP server could run with less protection than its spec requires, so Freehold writes no object. " +
		"Upgrade Freehold to a version that supports the CRD in this cluster, or "
	for name, c := range map[string]struct {
		change func(*v1beta1.MCPServerSpec)
		reason string
		want   []string
	}{
		"none": {change: func(*v1beta1.MCPServerSpec) {}},
		"one": {
			func(s *v1beta1.MCPServerSpec) { s.UnknownFields = []string{"sessionStorage.tls"} }, "UnknownField",
			[]string{`This version of Freehold does not know "spec.sessionStorage.tls".` + next + "remove the field."},
		},
		"many": {
			func(s *v1beta1.MCPServerSpec) { s.UnknownFields = []string{"a", "b", "c", "d", "e", "f", "g"} }, "UnknownField",
			[]string{`This version of Freehold does not know "spec.a", "spec.b", "spec.c", "spec.d", "spec.e" (+2 more).` + next +
				"remove these fields."},
		},
		"another type": {
			func(s *v1beta1.MCPServerSpec) { s.Malformed = "proxyPort is of type string, not int32" }, "MalformedSpec",
			[]string{`This version of Freehold cannot read the spec: "proxyPort is of type string, not int32".` + next + "correct the value."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer()
			c.change(&server.Spec)
			checkProblems(t, Input{Server: server}, v1beta1.ConditionSpecValid, c.reason, c.want)
		})
	}
}

// TestDroppedFieldsFailClosed: a spec of which the API server has dropped a field is not rendered, and neither is a reference to such a
// configuration.
func TestDroppedFieldsFailClosed(t *testing.T) {
	server := newServer()
	server.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: `{"spec":{"oidcConfigref":{"name":"idp"}}}`}
	checkProblems(t, Input{Server: server}.Bounded(Options{}), v1beta1.ConditionSpecValid, "DroppedField", []string{
		`The API server dropped "spec.oidcConfigref" from the manifest that was applied, as the CRD in this cluster does not have it. ` +
			"The MCP server could run with less protection than its spec requires, so Freehold writes no object. " +
			"Upgrade Freehold to a version that supports the CRD in this cluster, or write the manifest for that CRD and apply it with --validate=strict. " +
			"Where the object is right as it is, remove its annotation kubectl.kubernetes.io/last-applied-configuration.",
	})
}

// checkProblems renders and compares problems of one condition and reason; no message means none.
func checkProblems(t *testing.T, in Input, condition, reason string, messages []string) {
	t.Helper()
	if len(messages) == 0 {
		mustRender(t, in, Options{})
		return
	}
	var want []Problem
	for _, message := range messages {
		want = append(want, Problem{condition, reason, message})
	}
	if diff := cmp.Diff(want, problemsOf(t, in)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
