// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// newServer returns the smallest MCPServer there is, changed by the functions.
func newServer(changes ...func(*v1beta1.MCPServer)) *v1beta1.MCPServer {
	server := &v1beta1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: "fetch", Namespace: "tools", UID: "u-1", Generation: 7},
		Spec: v1beta1.MCPServerSpec{
			Image:           "example.com/fetch:1",
			Transport:       v1beta1.TransportStreamableHTTP,
			ProxyMode:       v1beta1.TransportStreamableHTTP,
			ProxyPort:       8080,
			MCPPort:         9000,
			SessionAffinity: "ClientIP",
		},
	}
	for _, change := range changes {
		change(server)
	}
	return server
}

func withTransport(transport v1beta1.Transport) func(*v1beta1.MCPServer) {
	return func(s *v1beta1.MCPServer) { s.Spec.Transport = transport }
}

// withPodTemplate sets spec.podTemplateSpec from YAML.
func withPodTemplate(text string) func(*v1beta1.MCPServer) {
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		panic(err)
	}
	return func(s *v1beta1.MCPServer) { s.Spec.PodTemplateSpec = &runtime.RawExtension{Raw: data} }
}

// fullServer sets every field that has a part in what is rendered.
func fullServer(tb testing.TB) *v1beta1.MCPServer {
	tb.Helper()
	return newServer(withTransport(v1beta1.TransportSSE), withPodTemplate(readPodTemplate(tb, "rich")),
		func(s *v1beta1.MCPServer) {
			replicas, backendReplicas := int32(3), int32(2)
			s.Annotations = map[string]string{v1beta1.AnnotationRestartedAt: "2026-01-02T03:04:05Z"}
			spec := &s.Spec
			spec.Args = []string{"--b"}
			spec.Env = []v1beta1.EnvVar{{Name: "Z", Value: "1"}, {Name: "A"}, {Name: "PLAIN", Value: "2"}}
			spec.Secrets = []v1beta1.SecretRef{{Name: "s1", Key: "k", TargetEnvName: "TOKEN"}, {Name: "s2", Key: "KEY"}, {Name: "s2", Key: "OTHER"}}
			spec.Volumes = []v1beta1.Volume{
				{Name: "data", HostPath: "/h", MountPath: "/m", ReadOnly: true},
				{Name: "more", HostPath: "/h2", MountPath: "/m2"},
			}
			spec.Resources = v1beta1.ResourceRequirements{
				Limits: v1beta1.ResourceList{CPU: "0.5", Memory: "1024Mi"}, Requests: v1beta1.ResourceList{CPU: "0.0001"},
			}
			spec.Replicas, spec.BackendReplicas = &replicas, &backendReplicas
			spec.AuthzConfig = &v1beta1.AuthzConfigRef{
				Type: v1beta1.AuthzConfigTypeInline, GroupClaimName: "g",
				Inline: &v1beta1.InlineAuthzConfig{Policies: []string{"permit(principal, action, resource);"}},
			}
			spec.Audit = &v1beta1.AuditConfig{Enabled: true}
			spec.SessionStorage = &v1beta1.SessionStorageConfig{
				Provider: "redis", Address: "r:6379", DB: 2, KeyPrefix: "p:",
				PasswordRef: &v1beta1.SecretKeyRef{Name: "rs", Key: "pw"},
				TLS:         &v1beta1.RedisTLSConfig{CACertSecretRef: &v1beta1.SecretKeyRef{Name: "ca", Key: "root.pem"}},
			}
			spec.RateLimiting = &v1beta1.RateLimitConfig{
				Shared: &v1beta1.RateLimitBucket{MaxTokens: 10, RefillPeriod: "1m"},
			}
			spec.ResourceOverrides = &v1beta1.ResourceOverrides{
				ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
					ResourceMetadataOverrides: v1beta1.ResourceMetadataOverrides{
						Labels: map[string]string{"dl": "1"}, Annotations: map[string]string{"da": "1"},
					},
					PodTemplateMetadataOverrides: &v1beta1.ResourceMetadataOverrides{
						Labels: map[string]string{"pl": "1"}, Annotations: map[string]string{"pa": "1"},
					},
					Env:              []v1beta1.EnvVar{{Name: "HOME", Value: "/home"}, {Name: "EMPTY"}},
					ImagePullSecrets: []v1beta1.LocalObjectReference{{Name: "reg"}},
					NodeSelector:     map[string]string{"disk": "ssd", "empty": ""},
					Tolerations: []v1beta1.Toleration{
						{Key: "k", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: new(int64(3))}, {Operator: "Exists"},
					},
					Affinity: fullAffinity(),
				},
				ProxyService: &v1beta1.ResourceMetadataOverrides{
					Labels: map[string]string{"sl": "1"}, Annotations: map[string]string{"sa": "1"},
				},
			}
			spec.TrustProxyHeaders = true
			spec.MaxRequestBodySize, spec.ProxyReadTimeout = 1<<20, "90s"
			spec.EndpointPrefix = "/x"
			spec.GroupRef = &v1beta1.MCPGroupRef{Name: "group"}
		})
}

// fullAffinity sets every field.
func fullAffinity() *v1beta1.Affinity {
	requirement := []v1beta1.NodeSelectorRequirement{{Key: "zone", Operator: "In", Values: []string{"a", "b"}}, {Key: "gpu", Operator: "Exists"}}
	term := v1beta1.NodeSelectorTerm{
		MatchExpressions: requirement,
		MatchFields:      []v1beta1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "NotIn", Values: []string{"n"}}},
	}
	near := v1beta1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{
			MatchLabels:      map[string]string{"app": "x"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "In", Values: []string{"web"}}},
		},
		Namespaces: []string{"tools"}, TopologyKey: "zone", NamespaceSelector: &metav1.LabelSelector{},
		MatchLabelKeys: []string{"pod-template-hash"}, MismatchLabelKeys: []string{"tenant"},
	}
	weighted := []v1beta1.WeightedPodAffinityTerm{{Weight: 5, PodAffinityTerm: near}}
	return &v1beta1.Affinity{
		NodeAffinity: &v1beta1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution:  &v1beta1.NodeSelector{NodeSelectorTerms: []v1beta1.NodeSelectorTerm{term, {MatchExpressions: requirement}}},
			PreferredDuringSchedulingIgnoredDuringExecution: []v1beta1.PreferredSchedulingTerm{{Weight: 1, Preference: term}},
		},
		PodAffinity: &v1beta1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1beta1.PodAffinityTerm{near}, PreferredDuringSchedulingIgnoredDuringExecution: weighted,
		},
		PodAntiAffinity: &v1beta1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1beta1.PodAffinityTerm{near}, PreferredDuringSchedulingIgnoredDuringExecution: weighted,
		},
	}
}

// fullInput is an input for fullServer.
func fullInput(tb testing.TB) Input {
	tb.Helper()
	return Input{Server: fullServer(tb)}
}

var fullOptions = Options{ImagePullSecrets: []string{"reg", "chart"}}

func readPodTemplate(tb testing.TB, name string) string {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "podtemplates", name+".yaml"))
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

// podTemplates are the names of all pod templates in testdata.
func podTemplates(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "podtemplates", "*.yaml"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("pod templates: %v, %v", files, err)
	}
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".yaml"))
	}
	return names
}

// mustRender renders what has to be fine.
func mustRender(tb testing.TB, in Input, opts Options) *Result {
	tb.Helper()
	result, err := Render(in, opts)
	if err != nil {
		tb.Fatal(err)
	}
	return result
}

// renderServer renders with neither options nor ConfigMaps.
func renderServer(tb testing.TB, changes ...func(*v1beta1.MCPServer)) *Result {
	tb.Helper()
	return mustRender(tb, Input{Server: newServer(changes...)}, Options{})
}

// problemsOf are the problems of an MCPServer that must not be rendered.
func problemsOf(tb testing.TB, in Input) []Problem {
	tb.Helper()
	result, err := Render(in, Options{})
	if err == nil && len(result.Held) > 0 {
		return result.Held
	}
	invalid, ok := errors.AsType[*InvalidError](err)
	if !ok {
		tb.Fatalf("got error %v, want an InvalidError", err)
	}
	if result != nil {
		tb.Errorf("got a result beside the error: %+v", result)
	}
	return invalid.Problems
}

// deploymentOf and statefulSetOf are what the writers of the pods' templates want.
func deploymentOf(tb testing.TB, result *Result) *appsv1ac.DeploymentApplyConfiguration {
	tb.Helper()
	return configOf[*appsv1ac.DeploymentApplyConfiguration](tb, result)
}

func statefulSetOf(tb testing.TB, result *Result) *appsv1ac.StatefulSetApplyConfiguration {
	tb.Helper()
	return configOf[*appsv1ac.StatefulSetApplyConfiguration](tb, result)
}

// configOf is the first configuration of a type.
func configOf[T any](tb testing.TB, result *Result) T {
	tb.Helper()
	for _, intent := range result.Intents {
		if config, ok := any(intent.Config).(T); ok {
			return config
		}
	}
	var none T
	tb.Fatalf("there is no %T", none)
	return none
}

func mcpContainer(tb testing.TB, result *Result) *corev1ac.ContainerApplyConfiguration {
	tb.Helper()
	container := backendContainerOf(statefulSetOf(tb, result).Spec.Template.Spec)
	if container == nil {
		tb.Fatal("there is no container mcp")
	}
	return container
}

// typeConverter knows the schema by which the API server merges applies.
var typeConverter = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })

// permitAll is a policy in Cedar's language.
const permitAll = "permit(principal, action, resource);"
