// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// upstreamEnv names the directory with ToolHive's own files; defaultUpstream is where it lies when the variable is not set.
const (
	upstreamEnv     = "FREEHOLD_UPSTREAM"
	defaultUpstream = "../../../shared/upstream"
)

// refusedByToolHive are the recorded MCPServers for which ToolHive rendered nothing on account of their authorization server,
// and the reason of ours.
var refusedByToolHive = map[string]string{
	"eas-audience-mismatch/output":   v1beta1.ReasonInvalidConfig,
	"eas-delegate-invalid/output":    v1beta1.ReasonInvalidConfig,
	"eas-edited/output-2-invalid":    v1beta1.ReasonInvalidConfig,
	"eas-issuer-collision/output":    v1beta1.ReasonInvalidConfig,
	"eas-multi-upstream/output":      v1beta1.ReasonMultiUpstreamNotSupported,
	"eas-no-oidc/output":             v1beta1.ReasonInvalidConfig,
	"eas-no-oidc-ref/output":         v1beta1.ReasonInvalidConfig,
	"asref-and-eas-conflict/output":  "", // both references are usable by themselves
	"asref-other-namespace/output":   "",
	"asref-wrong-type/output":        "",
	"asref-deleted/output-2-deleted": "", // the reference leads to nothing
}

// recordedServer is what matters here of a recorded MCPServer.
type recordedServer struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ProxyPort             int32                  `json:"proxyPort"`
		Replicas              *int32                 `json:"replicas"`
		AuthServerRef         *struct{ Name string } `json:"authServerRef"`
		ExternalAuthConfigRef *struct{ Name string } `json:"externalAuthConfigRef"`
		OIDCConfigRef         *struct {
			Audience, ResourceURL string
			Scopes                []string
		} `json:"oidcConfigRef"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// refused reports whether ToolHive does not accept the server's reference to an authorization server.
func (s *recordedServer) refused(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, "ERROR.txt")); err == nil {
		return true
	}
	return slices.ContainsFunc(s.Status.Conditions, func(c metav1.Condition) bool {
		return (c.Type == "AuthServerRefValidated" || c.Type == "ExternalAuthConfigValidated") && c.Status == metav1.ConditionFalse
	})
}

// TestParityWithRecordings compares what is rendered with what ToolHive's operator made of the same objects.
func TestParityWithRecordings(t *testing.T) {
	root := os.Getenv(upstreamEnv)
	if root == "" {
		root = filepath.FromSlash(defaultUpstream)
		if _, err := os.Stat(root); os.IsNotExist(err) {
			t.Skipf("ToolHive's rendered objects are not here (%s); set %s to the directory that holds references/", root, upstreamEnv)
		}
	}
	servers, err := filepath.Glob(filepath.Join(root, "references", "*", "output*", "server-*", "mcpserver.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	accepted, refused := 0, map[string]bool{}
	for _, file := range servers {
		dir := filepath.Dir(file)
		output := filepath.Dir(dir)
		name := filepath.Base(filepath.Dir(output)) + "/" + filepath.Base(output)
		var server recordedServer
		readYAML(t, file, &server)
		in, ok := recordedInput(t, output, &server)
		reason, listed := refusedByToolHive[name]
		if server.refused(dir) && strings.HasPrefix(name, "eas-") && !listed {
			t.Errorf("%s: ToolHive refuses it, and this test does not know why", name)
		}
		if listed && reason == "" || !ok {
			continue
		}
		t.Run(name, func(t *testing.T) {
			result, problems := Render(in)
			if listed {
				refused[name] = true
				if !server.refused(dir) {
					t.Error("ToolHive accepts it")
				}
				if len(problems) == 0 || problems[0].Reason != reason || result != nil {
					t.Fatalf("got result %v and problems %v, want the reason %s and nothing rendered", result, problems, reason)
				}
				t.Log(problems)
				return
			}
			accepted++
			if len(problems) > 0 {
				t.Fatalf("refused, and ToolHive accepts it: %v", problems)
			}
			compareDocument(t, dir, result)
			comparePod(t, dir, result)
		})
	}
	if accepted < 19 {
		t.Errorf("compared %d authorization servers, want at least 19", accepted)
	}
	for name, reason := range refusedByToolHive {
		if reason != "" && !refused[name] {
			t.Errorf("%s is not there", name)
		}
	}
}

// recordedInput is the input for a recorded MCPServer, and reports whether it refers to an authorization server.
func recordedInput(t *testing.T, output string, server *recordedServer) (Input, bool) {
	t.Helper()
	in := Input{
		Namespace: server.Namespace, Name: server.Name, ProxyPort: server.Spec.ProxyPort, Replicas: server.Spec.Replicas, Runner: runner062,
	}
	config := func(ref *struct{ Name string }) *v1beta1.MCPExternalAuthConfigSpec {
		var c struct {
			Spec v1beta1.MCPExternalAuthConfigSpec `json:"spec"`
		}
		if ref == nil {
			return &c.Spec
		}
		file := filepath.Join(output, "mcpexternalauthconfig-"+ref.Name+".yaml")
		if _, err := os.Stat(file); err == nil {
			readYAML(t, file, &c)
		}
		return &c.Spec
	}
	external := config(server.Spec.ExternalAuthConfigRef)
	in.TokenExchange = external.Type == "tokenExchange"
	in.Spec = config(server.Spec.AuthServerRef).EmbeddedAuthServer
	if in.Spec == nil {
		in.Spec = external.EmbeddedAuthServer
	}
	if ref := server.Spec.OIDCConfigRef; ref != nil {
		in.OIDC, in.Audience, in.ResourceURL, in.Scopes = true, ref.Audience, ref.ResourceURL, ref.Scopes
		if in.ResourceURL == "" {
			in.ResourceURL = fmt.Sprintf("http://%s.%s.svc.cluster.local:%d", in.Name, in.Namespace, in.ProxyPort)
		}
	}
	return in, in.Spec != nil
}

func compareDocument(t *testing.T, dir string, result *Result) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "runconfig.json"))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		AuthServer json.RawMessage           `json:"embedded_auth_server_config"`
		OIDC       struct{ Scopes []string } `json:"oidc_config"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := json.Compact(&want, document.AuthServer); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(result.Document)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("the block differs (-ToolHive +ours):\n%s", diff)
	}
	if diff := cmp.Diff(document.OIDC.Scopes, result.Scopes); diff != "" {
		t.Errorf("the scopes differ (-ToolHive +ours):\n%s", diff)
	}
}

// comparePod compares variables, volumes and mounts, and their order.
func comparePod(t *testing.T, dir string, result *Result) {
	t.Helper()
	var deployment appsv1.Deployment
	readYAML(t, filepath.Join(dir, "deployment.yaml"), &deployment)
	pod := deployment.Spec.Template.Spec
	proxy := pod.Containers[0]
	if diff := cmp.Diff(ours(proxy.Env, func(v corev1.EnvVar) string { return v.Name }), decode[[]corev1.EnvVar](t, result.Env), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the variables differ (-ToolHive +ours):\n%s", diff)
	}
	if diff := cmp.Diff(ours(pod.Volumes, func(v corev1.Volume) string { return v.Name }), decode[[]corev1.Volume](t, result.Volumes), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the volumes differ (-ToolHive +ours):\n%s", diff)
	}
	if diff := cmp.Diff(ours(proxy.VolumeMounts, func(m corev1.VolumeMount) string { return m.Name }),
		decode[[]corev1.VolumeMount](t, result.Mounts), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the mounts differ (-ToolHive +ours):\n%s", diff)
	}
}

// ours are the entries of a recorded list that an authorization server adds.
func ours[T any](list []T, name func(T) string) []T {
	prefixes := []string{"TOOLHIVE_UPSTREAM_", "TOOLHIVE_DELEGATE_", "TOOLHIVE_AUTH_SERVER_", "authserver-", "redis-tls-ca-"}
	return slices.DeleteFunc(list, func(entry T) bool {
		return !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name(entry), prefix) })
	})
}

// decode turns apply configurations into what they say.
func decode[T any](t *testing.T, configs any) T {
	t.Helper()
	data, err := json.Marshal(configs)
	if err != nil {
		t.Fatal(err)
	}
	var list T
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	return list
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
