// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// TestUnknownFieldsOfASpecAreRecorded: a field that a newer CRD has is not dropped without a trace, at whatever depth.
func TestUnknownFieldsOfASpecAreRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		spec      string
		unknown   []string
		malformed string
	}{
		"none":          {spec: `{"image":"i","podTemplateSpec":{"spec":{"anything":1}},"resources":{"limits":{"cpu":"1"}}}`},
		"null":          {spec: `null`},
		"at the top":    {spec: `{"image":"i","proxyWriteTimeout":"1m"}`, unknown: []string{"proxyWriteTimeout"}},
		"in the middle": {spec: `{"sessionStorage":{"provider":"redis","sentinel":{"a":1}}}`, unknown: []string{"sessionStorage.sentinel"}},
		"in a list":     {spec: `{"env":[{"name":"A"},{"name":"B","from":1}]}`, unknown: []string{"env[1].from"}},
		"several": {
			spec:    `{"b":1,"image":"i","a":{},"authzConfig":{"type":"inline","strict":true}}`,
			unknown: []string{"b", "a", "authzConfig.strict"},
		},
		"in other letters": {spec: `{"Image":"i"}`, unknown: []string{"Image"}},
		"given twice":      {spec: `{"image":"i","image":"j"}`, unknown: []string{"image"}},
		"another type": {
			spec:      `{"image":"i","proxyPort":"http","transport":"sse"}`,
			malformed: "proxyPort is of type string, not int32",
		},
		"no object": {spec: `[]`, malformed: "json: cannot unmarshal array into Go value of type v1beta1.plain"},
	} {
		t.Run(name, func(t *testing.T) {
			server := &MCPServer{}
			server.Spec.UnknownFields, server.Spec.Malformed = []string{"of another"}, "in another"
			if c.spec == "null" {
				server = &MCPServer{}
			}
			text := `{"metadata":{"name":"web"},"spec":` + c.spec + `,"status":{"phase":"Ready","later":1}}`
			if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), server); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.unknown, server.Spec.UnknownFields); diff != "" {
				t.Errorf("unknown (-want +got):\n%s", diff)
			}
			if server.Spec.Malformed != c.malformed {
				t.Errorf("malformed: got %q, want %q", server.Spec.Malformed, c.malformed)
			}
			if server.Name != "web" || server.Status.Phase != PhaseReady {
				t.Errorf("the rest was not read: %+v", server)
			}
			if diff := cmp.Diff(server, server.DeepCopy()); diff != "" {
				t.Errorf("copy (-want +got):\n%s", diff)
			}
			encoded, err := json.Marshal(server)
			if err != nil {
				t.Fatal(err)
			}
			for _, notes := range []string{"UnknownFields", "Malformed"} {
				if strings.Contains(string(encoded), notes) {
					t.Errorf("%s is encoded: %s", notes, encoded)
				}
			}
		})
	}
}

// TestOneUnreadableSpecLeavesTheListReadable: the others of a list are read as they are.
func TestOneUnreadableSpecLeavesTheListReadable(t *testing.T) {
	list := &MCPServerList{}
	text := `{"items":[{"metadata":{"name":"a"},"spec":{"image":5}},{"metadata":{"name":"b"},"spec":{"image":"i"}},` +
		`{"metadata":{"name":"c"},"spec":"x"}]}`
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), list); err != nil {
		t.Fatal(err)
	}
	var got []bool
	for i := range list.Items {
		got = append(got, list.Items[i].Spec.Malformed != "")
	}
	if diff := cmp.Diff([]bool{true, false, true}, got); diff != "" {
		t.Errorf("malformed (-want +got):\n%s", diff)
	}
	if list.Items[1].Spec.Image != "i" {
		t.Errorf("got %+v", list.Items[1].Spec)
	}
}

// TestOneUnreadableStatusLeavesTheListReadable: the API server stores such times and, before Kubernetes v1.36, such numbers.
func TestOneUnreadableStatusLeavesTheListReadable(t *testing.T) {
	const since = "2026-01-02T03:04:05Z"
	condition := func(conditionType, since string) string {
		return fmt.Sprintf(`{"type":%q,"status":"True","reason":"R","message":"m","observedGeneration":2,"lastTransitionTime":%s}`, conditionType, since)
	}
	for what, bad := range map[string]string{
		"lower case": `"2026-01-01t00:00:00z"`, "a zone that is none": `"2026-01-01T00:00:00+99:00"`, "no text": "5",
	} {
		t.Run(what, func(t *testing.T) {
			status := fmt.Sprintf(`{"conditions":[%s,%s],"observedGeneration":3,"readyReplicas":3000000000,"serverCount":3000000000}`,
				condition("Odd", bad), condition("Ready", strconv.Quote(since)))
			for kind, list := range map[string]any{
				"MCPServer": &MCPServerList{}, "MCPGroup": &MCPGroupList{}, "MCPOIDCConfig": &MCPOIDCConfigList{},
			} {
				text := fmt.Sprintf(`{"items":[{"metadata":{"name":"a"},"status":%s},{"metadata":{"name":"b"},"status":{"observedGeneration":4}}]}`, status)
				if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), list); err != nil {
					t.Fatalf("%s: %v", kind, err)
				}
				items := reflect.ValueOf(list).Elem().FieldByName("Items")
				generation := func(i int) int64 { return items.Index(i).FieldByName("Status").FieldByName("ObservedGeneration").Int() }
				if generation(0) != 3 || generation(1) != 4 {
					t.Errorf("%s: observed generations %d and %d", kind, generation(0), generation(1))
				}
				conditions := items.Index(0).FieldByName("Status").FieldByName("Conditions").Interface().([]metav1.Condition)
				odd, ready := meta.FindStatusCondition(conditions, "Odd"), meta.FindStatusCondition(conditions, "Ready")
				if odd == nil || odd.Reason != "R" || odd.ObservedGeneration != 2 || !odd.LastTransitionTime.IsZero() {
					t.Errorf("%s: the odd condition is %+v", kind, odd)
				}
				if ready == nil || ready.Message != "m" || ready.LastTransitionTime.UTC().Format(time.RFC3339) != since {
					t.Errorf("%s: the other condition is %+v", kind, ready)
				}
			}
		})
	}
}

func TestAnObjectWhoseStatusIsNoneIsRead(t *testing.T) {
	for _, status := range []string{`"x"`, `[]`, `{"conditions":"x"}`, `{"conditions":["x",null]}`, `null`} {
		server := &MCPServer{}
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(`{"metadata":{"name":"a"},"status":`+status+`}`), server); err != nil {
			t.Errorf("%s: %v", status, err)
		}
		if server.Name != "a" {
			t.Errorf("%s: got %+v", status, server)
		}
	}
}

// TestSpecsOfAllKindsAreRead: what holds of MCPServers holds of the kinds that they refer to.
func TestSpecsOfAllKindsAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		spec                   any
		known, extra, mistaken string
	}{
		"MCPOIDCConfig": {
			spec: &MCPOIDCConfigSpec{}, known: `{"type":"inline","inline":{"issuer":"https://i"}}`,
			extra: `{"inline":{"later":1}}`, mistaken: `{"inline":5}`,
		},
		"MCPAuthzConfig": {
			spec: &MCPAuthzConfigSpec{}, known: `{"type":"cedarv1","config":{"anything":{"b":1,"a":2}}}`,
			extra: `{"config":{},"inline":{}}`, mistaken: `{"type":5}`,
		},
		"MCPExternalAuthConfig": {
			spec: &MCPExternalAuthConfigSpec{}, known: `{"type":"embeddedAuthServer","embeddedAuthServer":{"issuer":"https://i"}}`,
			extra: `{"embeddedAuthServer":{"upstreamProviders":[{"later":1}]}}`, mistaken: `{"embeddedAuthServer":{"upstreamProviders":{}}}`,
		},
		"MCPToolConfig":      {spec: &MCPToolConfigSpec{}, known: `{"toolsFilter":["a"]}`, extra: `{"toolsDenied":["a"]}`, mistaken: `{"toolsFilter":"a"}`},
		"MCPTelemetryConfig": {spec: &MCPTelemetryConfigSpec{}, known: `{"prometheus":{"enabled":true}}`, extra: `{"logs":{}}`, mistaken: `{"prometheus":true}`},
		"MCPWebhookConfig": {
			spec: &MCPWebhookConfigSpec{}, known: `{"mutating":[{"name":"a","url":"https://a","timeout":"2d"}]}`,
			extra: `{"mutating":[{"matches":"a"}]}`, mistaken: `{"mutating":[{"timeout":5}]}`,
		},
		"MCPGroup": {spec: &MCPGroupSpec{}, known: `{"description":"d"}`, extra: `{"selector":{}}`, mistaken: `{"description":5}`},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(text string) (unknown, malformed string) {
				t.Helper()
				if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), c.spec); err != nil {
					t.Fatal(err)
				}
				spec := reflect.ValueOf(c.spec).Elem()
				return strings.Join(spec.FieldByName("UnknownFields").Interface().([]string), " "), spec.FieldByName("Malformed").String()
			}
			if unknown, malformed := read(c.extra); unknown == "" || malformed != "" {
				t.Errorf("of %s it records %q and %q", c.extra, unknown, malformed)
			}
			if unknown, malformed := read(c.mistaken); unknown != "" || !strings.Contains(malformed, " is of type ") {
				t.Errorf("of %s it records %q and %q", c.mistaken, unknown, malformed)
			}
			reflect.ValueOf(c.spec).Elem().SetZero()
			if unknown, malformed := read(c.known); unknown != "" || malformed != "" {
				t.Errorf("of %s it records %q and %q", c.known, unknown, malformed)
			}
			encoded, err := json.Marshal(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.known, string(encoded)); diff != "" {
				t.Errorf("encoded (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnknownFieldsAreRecordedOfADynamicClientsObject: the plugin reads MCPServers without types, and converts them.
func TestUnknownFieldsAreRecordedOfADynamicClientsObject(t *testing.T) {
	object := map[string]any{
		"metadata": map[string]any{"name": "web"},
		"spec":     map[string]any{"image": "i", "sessionStorage": map[string]any{"sentinel": map[string]any{}}},
	}
	server := &MCPServer{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, server); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"sessionStorage.sentinel"}, server.Spec.UnknownFields); diff != "" || server.Spec.Image != "i" {
		t.Errorf("got %+v; unknown (-want +got):\n%s", server.Spec, diff)
	}
}

// BenchmarkDecode is the cost of reading one MCPServer from the API server.
func BenchmarkDecode(b *testing.B) {
	text := []byte(`{"apiVersion":"toolhive.stacklok.dev/v1beta1","kind":"MCPServer","metadata":{"name":"web","namespace":"tools",` +
		`"uid":"3a1","resourceVersion":"17","generation":3},"spec":{"image":"example.com/web:1","transport":"streamable-http",` +
		`"proxyMode":"streamable-http","proxyPort":8080,"mcpPort":9000,"sessionAffinity":"ClientIP","args":["--a","--b"],` +
		`"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"resources":{"limits":{"cpu":"1","memory":"1Gi"}},` +
		`"podTemplateSpec":{"spec":{"nodeSelector":{"a":"b"},"tolerations":[{"key":"k","operator":"Exists"}]}}},` +
		`"status":{"phase":"Ready","url":"http://mcp-web-proxy.tools.svc.cluster.local:8080/mcp","observedGeneration":3}}`)
	b.ReportAllocs()
	for b.Loop() {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &MCPServer{}); err != nil {
			b.Fatal(err)
		}
	}
}
