// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1alpha1"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// referenceDifferences are the cases in which we do otherwise than ToolHive on purpose, as case or case/step, and why.
var referenceDifferences = map[string]struct {
	// accepts and refuses say what we do where ToolHive does the opposite.
	accepts, refuses bool
	// other are keys of the RunConfig, or env, volumes or mounts, in which what is rendered differs.
	other  []string
	reason string
}{
	"ext-tokenexchange-secret-missing":           {accepts: true, reason: "Secrets are not read: the new pods wait for it, and earlier ones go on"},
	"ext-tokenexchange-secret-nokey":             {accepts: true, reason: "Secrets are not read: the new pods wait for it, and earlier ones go on"},
	"oidc-not-yet-validated/before":              {accepts: true, reason: "the spec is validated here, and no other operator is waited for"},
	"oidc-inline-secret-missing":                 {other: []string{"env"}, reason: "ToolHive leaves the secret out, and the proxy runs without it"},
	"eas-edited/repaired":                        {accepts: true, reason: "what is wrong is mended; the status of ToolHive is left as it was"},
	"webhook-cert-only":                          {refuses: true, reason: "without its key the proxy would not authenticate itself"},
	"authz-invalid-policy":                       {refuses: true, reason: "the proxyrunner does not start with a policy that cannot be parsed"},
	"upstream-ex-external-auth-complete-example": {refuses: true, reason: "the MCPExternalAuthConfig has no tokenUrl, and the API server does not take it"},
	"ext-bearertoken":                            {refuses: true, reason: "the proxyrunner of an MCPServer does not start with it"},
}

// TestReferencesParityWithUpstream compares what references make of the proxy with what ToolHive's operator made of them, and
// whether there is a proxy at all. Two things differ in all cases. Webhooks' Secrets are mounted as directories, so that one that is
// rotated reaches the proxy. And sensitive headers reach the collector by a variable that the exporter reads, and then so must all others.
func TestReferencesParityWithUpstream(t *testing.T) {
	root := upstreamDirectory(t, "references")
	cases, err := filepath.Glob(filepath.Join(root, "*"))
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases in %s: %v", root, err)
	}
	used, compared := map[string]bool{}, 0
	for _, directory := range cases {
		steps, err := filepath.Glob(filepath.Join(directory, "output*", "server-*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range steps {
			name := filepath.Base(directory)
			if _, number, more := strings.Cut(filepath.Base(filepath.Dir(step)), "output-"); more {
				_, word, _ := strings.Cut(number, "-")
				name += "/" + word
			}
			t.Run(name+"/"+strings.TrimPrefix(filepath.Base(step), "server-"), func(t *testing.T) {
				known := referenceDifferences[name]
				if known.reason != "" {
					used[name] = true
				}
				in := readReferenceCase(t, directory, step)
				result, err := Render(in, Options{RunnerImage: upstreamRunnerImage})
				held := ""
				if invalid, ok := errors.AsType[*InvalidError](err); ok {
					held = invalid.Error()
				} else if err != nil {
					t.Fatal(err)
				} else if len(result.Held) > 0 {
					held = (&InvalidError{Problems: result.Held}).Error()
				}
				failure, _ := os.ReadFile(filepath.Join(step, "ERROR.txt"))
				theyRefuse := len(failure) > 0 || failedTerminally(t, step)
				switch {
				case theyRefuse && held == "" && !known.accepts:
					t.Errorf("ToolHive refuses it, and we do not: %s", failure)
				case !theyRefuse && held != "" && !known.refuses:
					t.Errorf("ToolHive renders it, and we do not: %s", held)
				case held == "" && !theyRefuse:
					compared++
					compareReferences(t, step, result, known.other)
				}
			})
		}
	}
	for name := range referenceDifferences {
		if !used[name] {
			t.Errorf("there is no case %s any more", name)
		}
	}
	t.Logf("%d compared", compared)
}

// failedTerminally reports whether ToolHive gave up on an MCPServer without an error of its reconciler.
func failedTerminally(t *testing.T, step string) bool {
	t.Helper()
	server := &v1beta1.MCPServer{}
	readYAML(t, filepath.Join(step, "mcpserver.yaml"), server)
	return server.Status.Phase == v1beta1.PhaseFailed && strings.HasPrefix(server.Status.Message, "Failed to build configuration")
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// readReferenceCase returns what ToolHive's operator had before it at a step.
func readReferenceCase(t *testing.T, directory, step string) Input {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	in := Input{Server: &v1beta1.MCPServer{}}
	readYAML(t, filepath.Join(step, "mcpserver.yaml"), in.Server)
	in.Server.UID = "uid"
	named := func(kind, name string) string {
		if ns := in.Server.Namespace; ns != "" && ns != "default" {
			name = ns + "-" + name
		}
		return filepath.Join(filepath.Dir(step), strings.ToLower(kind)+"-"+name+".yaml")
	}
	in.References = Collect(&in.Server.Spec, func(kind, name string) (any, *Unavailable) {
		file := named(kind, name)
		if !exists(file) {
			return nil, nil
		}
		object, err := scheme.New(managers.ConfigOf(v1beta1.Kind(kind)).GroupVersionKind)
		if err != nil {
			t.Fatal(err)
		}
		readYAML(t, file, object)
		return object, nil
	})
	in.References.Bundles = map[string]*corev1.ConfigMap{}
	bundles, err := filepath.Glob(filepath.Join(directory, "input", "configmap-*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range bundles {
		bundle := &corev1.ConfigMap{}
		readYAML(t, file, bundle)
		in.References.Bundles[bundle.Name] = bundle
	}
	return in
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// blocksOfReferences are the keys of the RunConfig that references fill.
var blocksOfReferences = []string{
	"oidc_config", "token_exchange_config", "authz_config", "telemetry_config", "thv_ca_bundle", "jwks_auth_token_file",
	"tools_filter", "tools_override", "validating_webhooks", "mutating_webhooks", "embedded_auth_server_config",
}

func compareReferences(t *testing.T, step string, result *Result, other []string) {
	t.Helper()
	theirs, ours := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	data, err := os.ReadFile(filepath.Join(step, "runconfig.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(json.Unmarshal(data, &theirs), json.Unmarshal([]byte(runConfigText(t, result)), &ours)); err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{}
	readYAML(t, filepath.Join(step, "deployment.yaml"), deployment)
	their := deployment.Spec.Template.Spec
	our := renderedProxy(t, result)

	sensitive := slices.ContainsFunc(their.Containers[0].Env, func(v corev1.EnvVar) bool { return strings.HasPrefix(v.Name, "TOOLHIVE_OTEL_HEADER_") })
	for _, key := range blocksOfReferences {
		if slices.Contains(other, key) {
			continue
		}
		want, got := compactJSON(t, theirs[key]), compactJSON(t, ours[key])
		if key == "telemetry_config" && sensitive {
			want = withoutHeaders(t, want)
			got = withoutHeaders(t, got)
		}
		if want != got {
			t.Errorf("%s:\n  ours:   %s\n  theirs: %s", key, got, want)
		}
	}
	if diff := cmp.Diff(envOfReferences(their.Containers[0].Env), envOfReferences(our.Containers[0].Env)); diff != "" && !slices.Contains(other, "env") {
		t.Errorf("env (-theirs +ours):\n%s", diff)
	}
	if diff := cmp.Diff(volumesOfReferences(their.Volumes), volumesOfReferences(our.Volumes)); diff != "" && !slices.Contains(other, "volumes") {
		t.Errorf("volumes (-theirs +ours):\n%s", diff)
	}
	if diff := cmp.Diff(mountsOfReferences(their.Containers[0].VolumeMounts), mountsOfReferences(our.Containers[0].VolumeMounts)); diff != "" && !slices.Contains(other, "mounts") {
		t.Errorf("mounts (-theirs +ours):\n%s", diff)
	}
}

// renderedProxy is the pod of the proxy that was rendered.
func renderedProxy(t *testing.T, result *Result) corev1.PodSpec {
	t.Helper()
	for _, intent := range result.Intents {
		if config, ok := intent.Config.(*appsv1ac.DeploymentApplyConfiguration); ok && config.Spec.Template != nil {
			data, err := json.Marshal(config)
			if err != nil {
				t.Fatal(err)
			}
			deployment := &appsv1.Deployment{}
			if err := json.Unmarshal(data, deployment); err != nil {
				t.Fatal(err)
			}
			return deployment.Spec.Template.Spec
		}
	}
	t.Fatal("no proxy is rendered")
	return corev1.PodSpec{}
}

func compactJSON(t *testing.T, data json.RawMessage) string {
	t.Helper()
	if len(data) == 0 {
		return ""
	}
	var out bytes.Buffer
	if err := json.Compact(&out, data); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func withoutHeaders(t *testing.T, text string) string {
	t.Helper()
	var tree map[string]any
	if err := json.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatal(err)
	}
	delete(tree, "headers")
	data, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// envOfReferences are the variables that references make, but for the one with all headers.
func envOfReferences(all []corev1.EnvVar) []corev1.EnvVar {
	return slices.DeleteFunc(slices.Clone(all), func(v corev1.EnvVar) bool {
		return v.Name == envOTelHeaders || v.Name == "TOOLHIVE_RUNTIME" || v.Name == envSecretProvider ||
			!strings.HasPrefix(v.Name, "TOOLHIVE_") && v.Name != envOTelAttributes
	})
}

func volumesOfReferences(all []corev1.Volume) []corev1.Volume {
	return slices.DeleteFunc(slices.Clone(all), func(v corev1.Volume) bool {
		return v.Name == volumeRunConfig || v.Name == volumeAuthz || v.Name == volumeRedisCA || v.HostPath != nil
	})
}

// mountsOfReferences are the mounts that references make, those of webhooks as directories.
func mountsOfReferences(all []corev1.VolumeMount) (mounts []corev1.VolumeMount) {
	for _, m := range all {
		switch {
		case m.Name == volumeRunConfig || m.Name == volumeAuthz || m.Name == volumeRedisCA:
			continue
		case strings.HasPrefix(m.Name, "whsec-"):
			m.MountPath, m.SubPath = strings.TrimSuffix(m.MountPath, "/"+m.SubPath), ""
		}
		mounts = append(mounts, m)
	}
	return mounts
}
