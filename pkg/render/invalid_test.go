// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// Each mistake has its condition, its reason and a message that says what to change. All these are terminal: nothing is
// rendered until the MCPServer changes.
func TestEachMistakeInASpecHasItsCondition(t *testing.T) {
	const specValid = v1beta1.ConditionSpecValid
	overrides := func(change func(*v1beta1.ProxyDeploymentOverrides)) func(*v1beta1.MCPServer) {
		return func(s *v1beta1.MCPServer) {
			d := &v1beta1.ProxyDeploymentOverrides{}
			change(d)
			s.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: d}
		}
	}
	for name, c := range map[string]struct {
		change func(*v1beta1.MCPServer)
		want   []Problem
	}{
		"no image": {
			func(s *v1beta1.MCPServer) { s.Spec.Image = "" },
			[]Problem{{specValid, "InvalidImage", "spec.image is missing."}},
		},
		"image with white space": {
			func(s *v1beta1.MCPServer) { s.Spec.Image = "i " },
			[]Problem{{specValid, "InvalidImage", `spec.image "i " starts or ends with white space.`}},
		},
		"image like an option": {
			func(s *v1beta1.MCPServer) { s.Spec.Image = "--debug" },
			[]Problem{{specValid, "InvalidImage", `spec.image "--debug" would be taken for an option of the proxyrunner.`}},
		},
		"transport": {
			func(s *v1beta1.MCPServer) { s.Spec.Transport = "grpc" },
			[]Problem{{specValid, "InvalidTransport", `spec.transport is "grpc"; it must be stdio, sse or streamable-http.`}},
		},
		"proxy mode": {
			func(s *v1beta1.MCPServer) { s.Spec.ProxyMode = "stdio" },
			[]Problem{{specValid, "InvalidTransport", `spec.proxyMode is "stdio"; it must be sse or streamable-http.`}},
		},
		"ports": {
			func(s *v1beta1.MCPServer) { s.Spec.ProxyPort, s.Spec.MCPPort = 65536, -1 },
			[]Problem{
				{specValid, "InvalidPort", "spec.proxyPort is 65536; it must be between 1 and 65535."},
				{specValid, "InvalidPort", "spec.mcpPort is -1; it must be between 1 and 65535."},
			},
		},
		"equal ports are fine": {change: func(s *v1beta1.MCPServer) { s.Spec.MCPPort = s.Spec.ProxyPort }},
		"session affinity": {
			func(s *v1beta1.MCPServer) { s.Spec.SessionAffinity = "Cookie" },
			[]Problem{{specValid, "InvalidSessionAffinity", `spec.sessionAffinity is "Cookie"; it must be ClientIP or None.`}},
		},
		"negative replicas": {
			func(s *v1beta1.MCPServer) { n := int32(-1); s.Spec.Replicas, s.Spec.BackendReplicas = &n, &n },
			[]Problem{
				{specValid, "InvalidReplicas", "spec.replicas is -1; it must not be negative."},
				{specValid, "InvalidReplicas", "spec.backendReplicas is -1; it must not be negative."},
			},
		},
		"service account": {
			func(s *v1beta1.MCPServer) { name := "My_SA"; s.Spec.ServiceAccount = &name },
			[]Problem{{specValid, "InvalidServiceAccount", `spec.serviceAccount "My_SA" is not the name of a ServiceAccount: ` + notSubdomain}},
		},
		"quantities": {
			func(s *v1beta1.MCPServer) {
				s.Spec.Resources = v1beta1.ResourceRequirements{
					Limits:   v1beta1.ResourceList{CPU: "lots", Memory: "64MB"},
					Requests: v1beta1.ResourceList{CPU: "-1", Memory: "1e-999999999"},
				}
			},
			[]Problem{
				{specValid, "InvalidQuantity", `spec.resources.limits.cpu "lots" is not a quantity such as 500m or 64Mi.`},
				{specValid, "InvalidQuantity", `spec.resources.limits.memory "64MB" is not a quantity such as 500m or 64Mi.`},
				{specValid, "InvalidQuantity", `spec.resources.requests.memory "1e-999999999" is not a quantity such as 500m or 64Mi.`},
				{specValid, "InvalidQuantity", "spec.resources.requests.cpu -1 is negative."},
			},
		},
		"request over limit": {
			func(s *v1beta1.MCPServer) {
				s.Spec.Resources.Limits.Memory, s.Spec.Resources.Requests.Memory = "1Gi", "2048Mi"
			},
			[]Problem{{specValid, "InvalidQuantity", "spec.resources.requests.memory 2Gi is more than the limit of 1Gi."}},
		},
		"environment": {
			func(s *v1beta1.MCPServer) {
				s.Spec.Env = []v1beta1.EnvVar{{Name: "A", Value: "x\ny"}, {Name: "B", Value: "x\ry"}, {Name: ""}, {Name: "C=D"}}
			},
			[]Problem{
				{specValid, "InvalidEnv", `spec.env[0].value, of variable "A", has a line break.`},
				{specValid, "InvalidEnv", `spec.env[1].value, of variable "B", has a line break.`},
				{specValid, "InvalidEnv", `spec.env[2].name "" is not the name of an environment variable: environment variable name must be non-empty.`},
				{specValid, "InvalidEnv", `spec.env[3].name "C=D" is not the name of an environment variable: a valid environment variable name must consist only of printable ASCII characters other than '='.`},
			},
		},
		"secrets": {
			func(s *v1beta1.MCPServer) {
				s.Spec.Secrets = []v1beta1.SecretRef{{Name: "A", Key: "k"}, {Name: "a", Key: "k/", TargetEnvName: "T="}}
			},
			[]Problem{
				{specValid, "InvalidSecretRef", `spec.secrets[0].name "A" is not the name of a Secret: ` + notSubdomain},
				{specValid, "InvalidSecretRef", `spec.secrets[1].key "k/" is not a key of a Secret: ` + notKey},
				{specValid, "InvalidEnv", `spec.secrets[1].targetEnvName "T=" is not the name of an environment variable: a valid environment variable name must consist only of printable ASCII characters other than '='.`},
			},
		},
		"proxy environment": {
			overrides(func(d *v1beta1.ProxyDeploymentOverrides) {
				// A line break is no harm here: these values go into no RunConfig.
				d.Env = []v1beta1.EnvVar{{Name: "OK", Value: "x\ny"}, {Name: "="}}
			}),
			[]Problem{{specValid, "InvalidEnv", `spec.resourceOverrides.proxyDeployment.env[1].name "=" is not the name of an environment variable: a valid environment variable name must consist only of printable ASCII characters other than '='.`}},
		},
		"image pull secrets": {
			overrides(func(d *v1beta1.ProxyDeploymentOverrides) {
				d.ImagePullSecrets = []v1beta1.LocalObjectReference{{Name: ""}, {Name: "A_"}}
			}),
			[]Problem{{specValid, "InvalidSecretRef", `spec.resourceOverrides.proxyDeployment.imagePullSecrets[1].name "A_" is not the name of a Secret: ` + notSubdomain}},
		},
		"metadata": {
			overrides(func(d *v1beta1.ProxyDeploymentOverrides) {
				d.Labels = map[string]string{"a b": "", "ok": "-", "ok2": strings.Repeat("x", 64)}
				d.PodTemplateMetadataOverrides = &v1beta1.ResourceMetadataOverrides{Annotations: map[string]string{"/": ""}}
			}),
			[]Problem{
				{specValid, "InvalidMetadata", `spec.resourceOverrides.proxyDeployment.labels: Invalid value: "-": ` + notLabel},
				{specValid, "InvalidMetadata", `spec.resourceOverrides.proxyDeployment.labels: Invalid value: "a b": ` + notQualified},
				{specValid, "InvalidMetadata", `spec.resourceOverrides.proxyDeployment.labels: Invalid value: "` + strings.Repeat("x", 64) + `": must be no more than 63 bytes.`},
				{specValid, "InvalidMetadata", `spec.resourceOverrides.proxyDeployment.podTemplateMetadataOverrides.annotations: Invalid value: "/": name part must be non-empty.`},
				{specValid, "InvalidMetadata", `spec.resourceOverrides.proxyDeployment.podTemplateMetadataOverrides.annotations: Invalid value: "/": ` + notQualifiedName},
				{specValid, "InvalidMetadata", `spec.resourceOverrides.proxyDeployment.podTemplateMetadataOverrides.annotations: Invalid value: "/": prefix part must be non-empty.`},
			},
		},
		"session storage": {
			func(s *v1beta1.MCPServer) {
				s.Spec.SessionStorage = &v1beta1.SessionStorageConfig{Provider: "redis", DB: -1, PasswordRef: &v1beta1.SecretKeyRef{}}
			},
			[]Problem{
				{specValid, "InvalidSessionStorage", "spec.sessionStorage.address is missing; provider redis needs it."},
				{specValid, "InvalidSecretRef", `spec.sessionStorage.passwordRef.name "" is not the name of a Secret: ` + notSubdomain},
				{specValid, "InvalidSecretRef", `spec.sessionStorage.passwordRef.key "" is not a key of a Secret: ` + notKey},
				{specValid, "InvalidSessionStorage", "spec.sessionStorage.db is -1; it must not be negative."},
			},
		},
		"session storage provider": {
			func(s *v1beta1.MCPServer) { s.Spec.SessionStorage = &v1beta1.SessionStorageConfig{Provider: "disk"} },
			[]Problem{{specValid, "InvalidSessionStorage", `spec.sessionStorage.provider is "disk"; it must be memory or redis.`}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer(c.change)
			if len(c.want) == 0 {
				mustRender(t, Input{Server: server}, Options{})
				return
			}
			if diff := cmp.Diff(c.want, problemsOf(t, Input{Server: server})); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// What apimachinery says of names, keys and labels.
var (
	notSubdomain     = validation.IsDNS1123Subdomain("A")[0] + "."
	notKey           = validation.IsConfigMapKey("/")[0] + "."
	notLabel         = oneLine(errors.New(validation.IsValidLabelValue("-")[0])) + "."
	notQualified     = oneLine(errors.New(validation.IsQualifiedName("a b")[0])) + "."
	notQualifiedName = oneLine(errors.New(validation.IsQualifiedName("-")[0])) + "."
)
