// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package runconfig

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAuthorizationDocumentIsPassedOnWhole: a document reaches the proxyrunner with every key that it has, known or not,
// at every level, in an order that does not depend on how it was written.
func TestAuthorizationDocumentIsPassedOnWhole(t *testing.T) {
	const cedar = `{"version":"1","type":"cedarv1","future":{"b":[1,null],"a":1.5},"cedar":{"policies":["permit(principal, action, resource);"],"entities_json":"[ ]",` +
		`"multi_valued_claims":["scp"],"primary_upstream_provider":"x","role_claim_name":"theirs","later":12345678901234567}}`
	const sorted = `{"cedar":{"entities_json":"[ ]","later":12345678901234567,"multi_valued_claims":["scp"],"policies":["permit(principal, action, resource);"],` +
		`"primary_upstream_provider":"x","role_claim_name":"theirs"},"future":{"a":1.5,"b":[1,null]},"type":"cedarv1","version":"1"}`
	const yaml = `# Ours.
type: cedarv1
version: "1"
cedar:
  later: 12345678901234567
  role_claim_name: theirs
  primary_upstream_provider: x
  multi_valued_claims: [scp]
  entities_json: '[ ]'
  policies: ['permit(principal, action, resource);']
future: {a: 1.5, b: [1, null]}
`
	const http = `{"pdp":{"claim_mapping":"mpe","context":{"include_args":true,"later":{}},"http":{"insecure_skip_verify":true,` +
		`"timeout":5,"url":"https://pdp.example.com"}},"type":"httpv1","version":"1.0"}`
	for name, c := range map[string]struct {
		text     string
		override ClaimMapping
		want     string
		provider string
	}{
		"JSON": {text: cedar, want: sorted, provider: "x"},
		"YAML": {text: yaml, want: sorted, provider: "x"},
		"claims of the MCPServer go before": {
			text:     `{"version":"1","type":"cedarv1","future":1,"cedar":{"policies":["permit(principal, action, resource);"],"group_claim_name":"a","role_claim_name":"b","later":true}}`,
			override: ClaimMapping{RoleClaimName: "roles", GroupEntityType: "Team"},
			want: `{"cedar":{"group_claim_name":"a","group_entity_type":"Team","later":true,"policies":["permit(principal, action, resource);"],"role_claim_name":"roles"},` +
				`"future":1,"type":"cedarv1","version":"1"}`,
		},
		"a policy decision point":                   {text: http, want: http},
		"a policy decision point sees whole claims": {text: http, override: ClaimMapping{GroupClaimName: "g"}, want: http},
	} {
		t.Run(name, func(t *testing.T) {
			authz, err := ParseAuthz(c.text, c.override)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(authz)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
			if authz.PrimaryUpstreamProvider != c.provider {
				t.Errorf("primary upstream provider: got %q, want %q", authz.PrimaryUpstreamProvider, c.provider)
			}
		})
	}
}

// TestAuthorizationDocumentIsRefused: what the proxyrunner would not start with, and what could be read in two ways.
func TestAuthorizationDocumentIsRefused(t *testing.T) {
	const notAList = "the entities are not a JSON list: json: cannot unmarshal object into Go value of type []json.RawMessage"
	const letters = "a key has an upper case letter where the proxyrunner's has a lower case one"
	for text, want := range map[string]string{
		"\n":                          "it is empty",
		"[]":                          "json: cannot unmarshal array into Go value of type runconfig.knownKeys",
		"type: cedarv1":               "version is missing",
		"{version: v, type: x}":       `type is "x", and only "cedarv1" and "httpv1" can be used`,
		"{version: v}":                `type is "", and only "cedarv1" and "httpv1" can be used`,
		"{version: v, type: cedarv1}": "cedar is missing",
		"{version: v, type: cedarv1, cedar: {policies: []}}":                                                                  "there is no policy",
		"{version: v, type: cedarv1, cedar: {policies: ['permit(principal, action, resource);', '']}}":                        "policies[1] is blank",
		"{version: v, type: cedarv1, cedar: {policies: ['permit(principal, action, resource);'], entities_json: '{}'}}":       notAList,
		"{version: v, type: cedarv1, cedar: {policies: ['permit(principal, action, resource);'], entities_json: 'null'}}":     "the entities are not a JSON list: they are null",
		"{version: v, type: cedarv1, cedar: {policies: ['permit(principal, action, resource);'], group_entity_type: 'A::B'}}": `group_entity_type "A::B" is not a name of Cedar's language, or has a namespace`,
		"{version: v, type: cedarv1, cedar: {policies: ['permit(principal, action, resource);'], multi_valued_claims: scp}}":  "json: cannot unmarshal string into Go struct field Cedar.cedar.multi_valued_claims of type []string",
		"{version: v, type: cedarv1, cedar: {policies: ['permit(principal, action, resource);'], policieſ: [q]}}":             letters,
		"{version: v, type: cedarv1, Cedar: {policies: ['permit(principal, action, resource);']}}":                            letters,
		"{version: v, type: cedarv1, cedar: {policies: ['permit(principal, action, resource);']}, cedar: {policies: [q]}}": `yaml: unmarshal errors:
  line 1: key "cedar" already set in map`,
		"{version: v, type: cedarv1, cedar: {policies: ['permit(principal, action, resource);']}}\n---\n{cedar: {policies: [q]}}\n": "it holds more than one YAML document",
		"{version: v, type: cedarv1, cedar: {policies: ['permit(principal, action, resource);']}}\n...\n---\na: b\n":                "it holds more than one YAML document",
		"{version: v, type: httpv1}": "pdp is missing",
		"{version: v, type: httpv1, cedar: {policies: ['permit(principal, action, resource);']}}": "pdp is missing",
		"{version: v, type: httpv1, pdp: {claim_mapping: mpe}}":                                   "pdp.http.url is missing",
		"{version: v, type: httpv1, pdp: {claim_mapping: mpe, http: {timeout: 1}}}":               "pdp.http.url is missing",
		"{version: v, type: httpv1, pdp: {claim_mapping: mpe, http: {url: 'ftp://h'}}}":           `the scheme of pdp.http.url is "ftp"; it must be http or https`,
		"{version: v, type: httpv1, pdp: {claim_mapping: mpe, http: {url: 'http://a:%zz@h'}}}":    "pdp.http.url is not a URL",
		"{version: v, type: httpv1, pdp: {http: {url: 'http://h'}}}":                              `pdp.claim_mapping is ""; it must be mpe or standard`,
		"{version: v, type: httpv1, pdp: {claim_mapping: MPE, http: {url: 'http://h'}}}":          `pdp.claim_mapping is "MPE"; it must be mpe or standard`,
		"{version: v, type: httpv1, pdp: {claim_mapping: mpe, http: {url: 'http://h', timeout: 1s}}}": "json: cannot unmarshal string into Go struct field " +
			".pdp.http.timeout of type int",
	} {
		if got, err := ParseAuthz(text, ClaimMapping{GroupClaimName: "g"}); got != nil || err == nil || err.Error() != want {
			t.Errorf("%q: got %+v and error %v, want %s", text, got, err, want)
		}
	}
}

// Whatever is wrong with a configuration, what is said of it without its content has no text of it, wherever that is.
func TestWhatIsSaidWithoutContentHasNone(t *testing.T) {
	const secret = "Zq7x"
	documents := []string{
		`{version: v, type: cedarv1, later: &a [1], cedar: {policies: ['permit(principal in A::"b", action, resource) when { 1 < 2 };'], group_entity_type: A, ` +
			`entities_json: '[{"uid": {"type": "A", "id": "a"}, "parents": [], "attrs": {"n": 1}}]', multi_valued_claims: [scp]}}`,
		"version: v\ntype: httpv1\npdp:\n  claim_mapping: mpe\n  http:\n    url: http://h\n    timeout: 1\n",
		"cedar:\n  policies: [q]\n  Policies: [q]\n",
	}
	found := map[string]bool{}
	for _, whole := range documents {
		for at := range len(whole) + 1 {
			for _, insert := range []string{secret, `"` + secret, "'" + secret, "*" + secret, secret + ": ", " @" + secret, "{" + secret, "\n" + secret, secret + " = "} {
				text := whole[:at] + insert + whole[at:]
				_, err := ParseAuthz(text, ClaimMapping{})
				if err == nil {
					continue
				}
				found[WithoutContent(err)] = true
				if without := WithoutContent(err); strings.Contains(strings.ToLower(without), strings.ToLower(secret)) || len(without) < len("it is empty") {
					t.Errorf("%q: %v: without content %q", text, err, without)
				}
			}
		}
	}
	if len(found) < 20 {
		t.Errorf("only %d are told apart: %v", len(found), found)
	}
}

// TestAuthorizationDocumentWithKeysThatFoldToOneIsRefused: the proxyrunner takes keys that differ only in their case for one, and
// the last of them wins. The keys of attributes and tags of entities are different ones to it.
func TestAuthorizationDocumentWithKeysThatFoldToOneIsRefused(t *testing.T) {
	const permit = "['permit(principal, action, resource);']"
	const forbid = "['forbid(principal, action, resource);']"
	entity := func(parts string) string {
		return `{version: v, type: cedarv1, cedar: {policies: ` + permit + `, entities_json: '[{"uid": {"type": "A", "id": "a"` + parts + `}]'}}`
	}
	for text, keys := range map[string]string{
		"{version: v, type: cedarv1, Cedar: {policies: " + forbid + "}, cedar: {policies: " + permit + "}}":                `"Cedar" and "cedar"`,
		"{version: v, type: cedarv1, cedar: {Policies: " + forbid + ", policies: " + permit + "}}":                         `"Policies" and "policies"`,
		"{version: v, Type: httpv1, type: cedarv1, cedar: {policies: " + permit + "}}":                                     `"Type" and "type"`,
		"{version: v, type: httpv1, pdp: {claim_mapping: mpe, http: {URL: 'http://a', url: 'http://b'}}}":                  `"URL" and "url"`,
		"{version: v, type: httpv1, pdp: {claim_mapping: mpe, http: {url: 'http://b'}, context: {later: [{a: 1, A: 2}]}}}": `"A" and "a"`,
		"{version: v, type: cedarv1, later: {ſet: 1, set: 2}, cedar: {policies: " + permit + "}}":                          `"set" and "ſet"`,
		entity(`}, "parents": [], "attrs": {}, "Parents": [{"type": "A", "id": "b"}]`):                                     `"Parents" and "parents"`,
		entity(`, "ID": "b"}, "parents": [], "attrs": {}`):                                                                 `"ID" and "id"`,
	} {
		want := keys + " differ only in their case, and the proxyrunner would obey one of them; remove the other"
		if got, err := ParseAuthz(text, ClaimMapping{}); got != nil || err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %+v and error %v, want %s", text, got, err, want)
		}
	}
	if _, err := ParseAuthz(entity(`}, "parents": [], "attrs": {"Name": 1, "name": {"B": 1, "b": 2}}, "tags": {"A": "", "a": ""}`), ClaimMapping{}); err != nil {
		t.Error(err)
	}
	cedar := &Cedar{Policies: []string{"permit(principal, action, resource);"}, EntitiesJSON: `[{"uid": {"type": "A", "id": "a"}, "Attrs": {}, "attrs": {}, "parents": []}]`}
	if got, err := CedarAuthz(cedar); got != nil || err == nil {
		t.Errorf("inline entities with two kinds of attributes: got %+v and error %v", got, err)
	}
}

// A document that aliases make longer is read, and one that they make huge is refused at little cost.
func TestADocumentThatAliasesMakeHugeIsRefused(t *testing.T) {
	document := func(policies string) string {
		return "version: v\ntype: cedarv1\nx: &a '" + strings.Repeat("x", 20_000) + "'\ny: [" + policies + "]\n" +
			"cedar: {policies: ['permit(principal, action, resource);']}\n"
	}
	if _, err := ParseAuthz(document(strings.Repeat("*a,", 40)), ClaimMapping{}); err != nil {
		t.Error(err)
	}
	for name, text := range map[string]string{
		"many":      document(strings.Repeat("*a,", 20_000)),
		"nested":    document("&b [" + strings.Repeat("*a,", 40) + "], &c [" + strings.Repeat("*b,", 40) + "], *c"),
		"in itself": document("&b [*b]"),
		"merged":    document("&b {k: *a}" + strings.Repeat(",{k: {l: *b}}", 20_000)),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ParseAuthz(text, ClaimMapping{})
		runtime.ReadMemStats(&after)
		if !errors.Is(err, errExpansion) {
			t.Errorf("%s: %v", name, err)
		}
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 64 {
			t.Errorf("%s took %d MiB", name, took)
		}
	}
}

func TestAnInlineDocumentIsAsToolHiveWritesIt(t *testing.T) {
	got, err := InlineDocument([]string{"permit(principal, action, resource);"}, NoEntities)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"cedar":{"entities_json":"[]","policies":["permit(principal, action, resource);"]},"type":"cedarv1","version":"1.0"}`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
