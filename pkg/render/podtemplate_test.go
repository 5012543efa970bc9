// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

func TestAPodTemplateThatNoAPIServerAcceptsIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		raw  string
		want []string
	}{
		"no JSON":    {`{`, []string{"spec.podTemplateSpec is not a pod template: unexpected end of JSON input."}},
		"a list":     {`[]`, []string{"spec.podTemplateSpec is not a pod template: json: cannot unmarshal array into Go value of type v1.PodTemplateSpec."}},
		"wrong type": {`{"spec":{"containers":"invalid-not-an-array"}}`, []string{"spec.podTemplateSpec is not a pod template: json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container."}},
		"quantity": {
			`{"spec":{"containers":[{"name":"mcp","resources":{"limits":{"cpu":"lots"}}}]}}`,
			[]string{"spec.podTemplateSpec.spec.containers[0].resources.limits.cpu is not a quantity such as 500m or 64Mi."},
		},
		"quantities nobody can compute": {
			`{"spec":{"overhead":{"cpu":1e999999999},"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1e-999999999"}}],` +
				`"containers":[{"name":"mcp","resources":{"requests":{"memory":"1E99999999999999999999"}}}]}}`,
			[]string{"spec.podTemplateSpec.spec.containers[0].resources.requests.memory, spec.podTemplateSpec.spec.overhead.cpu, " +
				"spec.podTemplateSpec.spec.volumes[0].emptyDir.sizeLimit has too many digits, or too large an exponent, for a quantity."},
		},
		"resources": {
			`{"spec":{"containers":[{"name":"mcp","resources":{"limits":{"cpu":"1","memory":"-1"},"requests":{"cpu":"2"}}}]}}`,
			[]string{
				"spec.podTemplateSpec.spec.containers[0].resources.limits.memory -1 is negative.",
				"spec.podTemplateSpec.spec.containers[0].resources.requests.cpu 2 is more than the limit of 1.",
			},
		},
		"names missing": {
			`{"spec":{"volumes":[{}],"containers":[{"image":"i"},{"name":"mcp","env":[{"value":"x"}],"ports":[{}]}]}}`,
			[]string{
				"spec.podTemplateSpec.spec.containers[0].name is missing.",
				"spec.podTemplateSpec.spec.volumes[0].name is missing.",
				"spec.podTemplateSpec.spec.containers[mcp].env[0].name is missing.",
				"spec.podTemplateSpec.spec.containers[mcp].ports[0].containerPort is missing.",
			},
		},
		"variables": {
			`{"spec":{"containers":[{"name":"mcp","env":[{"name":"A=B"}]}]}}`,
			[]string{`spec.podTemplateSpec.spec.containers[0].env[0].name "A=B" is not the name of an environment variable: ` +
				"a valid environment variable name must consist only of printable ASCII characters other than '='."},
		},
		"containers": {
			`{"spec":{"initContainers":[{"name":"mcp","image":"i"},{"name":"both","image":"i"}],"containers":[{"name":"a_"},{"name":"both","image":"i"}]}}`,
			[]string{
				`spec.podTemplateSpec.spec.containers[0].name "a_" is not the name of a container: ` + validation.IsDNS1123Label("a_")[0] + ".",
				`spec.podTemplateSpec.spec.containers[0], called "a_", has no image.`,
				`spec.podTemplateSpec.spec.containers[1].name "both" is also the name of an init container.`,
				"spec.podTemplateSpec.spec.initContainers cannot have one called mcp, which is the MCP server's.",
			},
		},
		"pod": {
			`{"spec":{"restartPolicy":"Never","ephemeralContainers":[{"name":"x"}],"containers":[{"name":"mcp",` +
				`"volumeMounts":[{"name":"v","mountPath":"/v"}],"env":[{"name":"A","value":"1","valueFrom":{}}]}]}}`,
			[]string{
				`spec.podTemplateSpec.spec.restartPolicy is "Never"; pods of a StatefulSet are always restarted.`,
				"spec.podTemplateSpec.spec.ephemeralContainers cannot be set in a pod template.",
				`spec.podTemplateSpec.spec.containers[0].env[0], of variable "A", has both value and valueFrom.`,
				`spec.podTemplateSpec.spec.containers[0].volumeMounts[0] names the volume "v", which the pod does not have.`,
			},
		},
		"volume claim": {
			`{"spec":{"volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{"metadata":{"finalizers":["a"]}}}}]}}`,
			[]string{"spec.podTemplateSpec.spec.volumes[0].ephemeral.volumeClaimTemplate.metadata can hold labels and annotations only."},
		},
		"metadata": {
			`{"metadata":{"labels":{"a":"-"},"annotations":{"a b":""}}}`,
			[]string{
				`spec.podTemplateSpec.metadata.annotations: Invalid value: "a b": ` + notQualified,
				`spec.podTemplateSpec.metadata.labels: Invalid value: "-": ` + notLabel,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer()
			server.Spec.PodTemplateSpec = &runtime.RawExtension{Raw: []byte(c.raw)}
			checkProblems(t, Input{Server: server}, v1beta1.ConditionPodTemplateValid, "InvalidPodTemplateSpec", c.want)
		})
	}
}

// What is refused by its looks, and that nothing sensible is.
func TestQuantitiesAreRefusedByTheirLooks(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "1": true, "0.5": true, "100m": true, "1Gi": true, "1E": true, "2Ei": true, "12e6": true, "1e-3": true,
		"1E+9": true, "-1e30": true, "nonsense": true,
		"1e31": false, "1e-31": false, "1E999999999": false, "1e-99999999999999999999999": false,
		"1e+99999999999999999999999":                                        false,
		"1111111111111111111111111111111111111111111111111111111111111111":  true,
		"11111111111111111111111111111111111111111111111111111111111111111": false,
	} {
		if got := handy(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestNoticesTellWhatAPodTemplateDoesOtherwise(t *testing.T) {
	for name, want := range map[string][]Problem{
		"rich": {{"SpecValid", "FieldsIgnored", "Some fields have no effect: " +
			`"spec.podTemplateSpec.metadata.labels.app", "spec.podTemplateSpec.spec.containers[1].image", ` +
			`"spec.podTemplateSpec.spec.serviceAccount", "spec.podTemplateSpec.spec.serviceAccountName".`}},
		"unknown": {{"SpecValid", "FieldsIgnored", "Some fields have no effect: " +
			`"spec.podTemplateSpec.metadata, but for labels and annotations", ` +
			`"spec.podTemplateSpec.spec.containers[0].imagePulPolicy (unknown or given twice)", ` +
			`"spec.podTemplateSpec.spec.containers[0].tty", ` +
			`"spec.podTemplateSpec.spec.nodeSelecter (unknown or given twice)".`}},
		"zeros": nil,
		"duplicates": {{"SpecValid", "DuplicatesMerged", "Some names are given several different values: " +
			"spec.podTemplateSpec.spec.containers[side] (the last one is used); " +
			"spec.podTemplateSpec.spec.volumes[v] (the last one is used); " +
			"spec.podTemplateSpec.spec.containers[mcp].env[A] (the last one is used); " +
			"spec.podTemplateSpec.spec.containers[mcp].volumeMounts[/v] (the last one is used); " +
			"spec.podTemplateSpec.spec.containers[mcp].ports[8080/TCP] (the last one is used)."}},
	} {
		t.Run(name, func(t *testing.T) {
			result := renderServer(t, withPodTemplate(readPodTemplate(t, name)))
			if diff := cmp.Diff(want, result.Notices); diff != "" {
				t.Errorf("notices (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPodTemplateIsCompleted: what becomes of the user's template.
func TestPodTemplateIsCompleted(t *testing.T) {
	for name, c := range map[string]struct {
		transport      v1beta1.Transport
		template, want string
	}{
		"nothing": {template: "{}", want: `{"containers":[{"name":"mcp","image":"example.com/fetch:1",` + defaultEnv + `,` + defaultSecurity + `}]}`},
		"args are appended, the image is not the user's": {
			template: "{spec: {containers: [{name: mcp, image: other, command: [c], args: [a]}]}}",
			want: `{"containers":[{"name":"mcp","image":"example.com/fetch:1","command":["c"],"args":["a","--b"],` +
				defaultEnv + `,` + defaultSecurity + `}]}`,
		},
		"sse declares its port once": {
			transport: "sse",
			template:  "{spec: {containers: [{name: mcp, ports: [{containerPort: 9000, name: web}]}]}}",
			want: `{"containers":[{"name":"mcp","image":"example.com/fetch:1","args":["--b"],"ports":[{"name":"web",` +
				`"containerPort":9000,"protocol":"TCP"}],` + sseEnv + `,` + defaultSecurity + `}]}`,
		},
		"stdin is ToolHive's to choose": {
			template: "{spec: {containers: [{name: mcp, stdin: true, tty: true}]}}",
			want:     `{"containers":[{"name":"mcp","image":"example.com/fetch:1","args":["--b"],` + defaultEnv + `,` + defaultSecurity + `}]}`,
		},
		"privileged keeps what goes with it": {
			template: "{spec: {containers: [{name: mcp, securityContext: {privileged: true, runAsUser: 0}}]}}",
			want: `{"containers":[{"name":"mcp","image":"example.com/fetch:1","args":["--b"],` + defaultEnv +
				`,"securityContext":{"capabilities":{"drop":["ALL"]},"privileged":true,"runAsUser":0,"runAsGroup":1000,` +
				`"runAsNonRoot":true,"readOnlyRootFilesystem":true,"seccompProfile":{"type":"RuntimeDefault"}}}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := renderServer(t, withPodTemplate(c.template), func(s *v1beta1.MCPServer) {
				if c.transport != "" {
					s.Spec.Transport = c.transport
				}
				if name != "nothing" {
					s.Spec.Args = []string{"--b"}
				}
			})
			spec := statefulSetOf(t, result).Spec.Template.Spec
			spec.RestartPolicy, spec.SecurityContext, spec.ServiceAccountName = nil, nil, nil
			if diff := cmp.Diff(parseJSON(t, []byte(c.want)), treeOf(t, spec)); diff != "" {
				t.Errorf("pod (-want +got):\n%s", diff)
			}
		})
	}
}

const (
	defaultEnv = `"env":[{"name":"FASTMCP_PORT","value":"9000"},{"name":"MCP_HOST"},{"name":"MCP_PORT","value":"9000"},` +
		`{"name":"MCP_TRANSPORT","value":"streamable-http"}]`
	sseEnv = `"env":[{"name":"FASTMCP_PORT","value":"9000"},{"name":"MCP_HOST"},{"name":"MCP_PORT","value":"9000"},` +
		`{"name":"MCP_TRANSPORT","value":"sse"}]`
	defaultSecurity = `"securityContext":{"capabilities":{"drop":["ALL"]},"privileged":false,"runAsUser":1000,"runAsGroup":1000,` +
		`"runAsNonRoot":true,"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false,"seccompProfile":{"type":"RuntimeDefault"}}`
)

// The field spec.serviceAccount decides; where it is empty podTemplateSpec does, and the namespace's default is left.
func TestTheSpecDecidesOnTheBackendsServiceAccount(t *testing.T) {
	named := func(name string) *string { return &name }
	ignored := func(field string) []Problem {
		return []Problem{{"SpecValid", "FieldsIgnored", `Some fields have no effect: "spec.podTemplateSpec.spec.` + field + `".`}}
	}
	const none = "(none)"
	for name, c := range map[string]struct {
		account  *string
		template string
		want     string
		// absent tells whether a ServiceAccount that was made for this backend is to go.
		absent bool
		notice []Problem
	}{
		"not set":                                {want: "fetch-sa"},
		"not set, one in the template":           {template: "serviceAccountName: x", want: "fetch-sa", notice: ignored("serviceAccountName")},
		"named":                                  {account: named("mine"), want: "mine", absent: true},
		"named, one in the template":             {account: named("mine"), template: "serviceAccountName: x", want: "mine", absent: true, notice: ignored("serviceAccountName")},
		"empty":                                  {account: named(""), want: none, absent: true},
		"empty, one in the template":             {account: named(""), template: "serviceAccountName: x", want: "x", absent: true},
		"empty, one in the template's old field": {account: named(""), template: "serviceAccount: x", want: "x", absent: true},
		"empty, two in the template": {
			account: named(""), template: "serviceAccountName: x, serviceAccount: other", want: "x", absent: true, notice: ignored("serviceAccount"),
		},
		"empty, the one that would be made": {account: named(""), template: "serviceAccountName: fetch-sa", want: "fetch-sa"},
	} {
		t.Run(name, func(t *testing.T) {
			changes := []func(*v1beta1.MCPServer){func(s *v1beta1.MCPServer) { s.Spec.ServiceAccount = c.account }}
			if c.template != "" {
				changes = append(changes, withPodTemplate("{spec: {"+c.template+"}}"))
			}
			result := renderServer(t, changes...)
			pod := statefulSetOf(t, result).Spec.Template.Spec
			got := none
			if pod.ServiceAccountName != nil {
				got = *pod.ServiceAccountName
			}
			if got != c.want || pod.DeprecatedServiceAccount != nil {
				t.Errorf("got %s and %v in the old field, want %s", got, pod.DeprecatedServiceAccount, c.want)
			}
			cleared := slices.ContainsFunc(result.Intents, func(i Intent) bool { return slices.Contains(i.Unset, accountPath) })
			if cleared != (c.want == none) {
				t.Errorf("an earlier name is cleared: %t, want %t", cleared, c.want == none)
			}
			if got := slices.Contains(result.Absent, ObjectRef{kindServiceAccount, "fetch-sa"}); got != c.absent {
				t.Errorf("the ServiceAccount that was made is to go: %v, want %v", got, c.absent)
			}
			if diff := cmp.Diff(c.notice, result.Notices); diff != "" {
				t.Errorf("notices (-want +got):\n%s", diff)
			}
		})
	}
}
