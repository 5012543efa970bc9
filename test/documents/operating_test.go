// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestOwnership looks at owners, takes contested fields back in both ways, and leaves others to whoever wants them.
func TestOwnership(t *testing.T) {
	r := newReader(t)
	r.Operate(t)
	r.Create(t, harness.Server(web, v1beta1.TransportStreamableHTTP, harness.Replicas(1, 1), func(server *v1beta1.MCPServer) {
		server.Spec.Resources.Limits.CPU = "200m"
	}))
	r.AwaitSettled(t, web)
	for _, command := range Of(t) {
		switch {
		case strings.Contains(command.Text, ":.spec.replicas"):
			r.kubectl.Run(t, "scale", "deployment/"+web, "--replicas=2")
			r.await(t, v1beta1.ConditionFieldsOwned, metav1.ConditionFalse)
		case strings.Contains(command.Text, "=kubectl-edit"):
			r.kubectl.Run(t, "label", "deployment/"+web, "--overwrite", "--field-manager=kubectl-edit", "toolhive=mine")
			r.await(t, v1beta1.ConditionFieldsOwned, metav1.ConditionFalse)
		}
		out := r.types(t, command)
		switch {
		case strings.Contains(command.Text, "--show-managed-fields"):
			if !strings.Contains(out, "manager: "+managers.Proxy) {
				t.Errorf("%v does not show who owns the fields", command)
			}
		case strings.Contains(command.Text, v1beta1.AnnotationTake):
			r.await(t, v1beta1.ConditionFieldsOwned, metav1.ConditionTrue)
			r.await(t, v1beta1.ConditionFieldsTaken, metav1.ConditionTrue)
			r.kubectl.Run(t, "annotate", "mcpserver", web, v1beta1.AnnotationTake+"-")
		default:
			r.await(t, v1beta1.ConditionFieldsYielded, metav1.ConditionTrue)
		}
	}
}

// TestRollouts waits for an MCPServer, and changes who replaces the pods of its backend.
func TestRollouts(t *testing.T) {
	r := newReader(t)
	r.Operate(t)
	r.Create(t, harness.Server(web, v1beta1.TransportStreamableHTTP, harness.Replicas(1, 1)))
	r.AwaitSettled(t, web)
	for _, command := range Of(t) {
		if strings.Contains(command.Text, "kubectl patch") {
			r.kubectl.Run(t, "annotate", "mcpserver", web, v1beta1.AnnotationBackendUpdateStrategy+"-")
			r.kubectl.Run(t, "wait", "statefulset", web, "--for=jsonpath={.spec.updateStrategy.type}=RollingUpdate", "--timeout=1m")
		}
		if out := r.types(t, command); out == "" {
			t.Errorf("%v shows nothing", command)
		}
		if strings.Contains(command.Text, "=OnDelete") || strings.Contains(command.Text, "kubectl patch") {
			r.kubectl.Run(t, "wait", "statefulset", web, "--for=jsonpath={.spec.updateStrategy.type}=OnDelete", "--timeout=1m")
		}
	}
	r.AwaitSettled(t, web)
}

// TestReferences has a proxy read a Secret anew.
func TestReferences(t *testing.T) {
	r := newReader(t)
	r.Operate(t)
	r.Create(t, harness.Server(web, v1beta1.TransportStreamableHTTP, harness.Replicas(1, 1)))
	r.AwaitSettled(t, web)
	restarted := strings.ReplaceAll(v1beta1.AnnotationRestartedAt, ".", `\.`)
	for _, command := range Of(t) {
		r.types(t, command)
		r.kubectl.Run(t, "wait", "deployment", web, "--for=jsonpath={.spec.template.metadata.annotations."+restarted+"}", "--timeout=1m")
	}
	r.AwaitSettled(t, web)
}

// TestPolicies installs the policies and removes them. That for both operators is alone, and so is that about proxies.
func TestPolicies(t *testing.T) {
	r := newReader(t)
	for _, command := range Of(t) {
		want := 3
		if strings.Contains(command.Text, "beside-toolhive") || strings.Contains(command.Text, "proxies") {
			want = 1
		}
		if out := r.types(t, command); strings.Count(out, "validatingadmissionpolicy.") != want {
			t.Errorf("%v says\n%s", command, out)
		}
	}
	for _, alone := range []string{"beside-toolhive", "proxies"} {
		r.kubectl.Run(t, "delete", "-k", "../../deploy/policy/"+alone)
	}
}

// TestMonitoring types what is to be looked at after an alert, while there is something to be seen: an MCPServer with a
// conflict, one that cannot be stored, one whose name is taken, and one that waits for its takeover. Of the Prometheus operator there are
// the kinds.
func TestMonitoring(t *testing.T) {
	r := newReader(t)
	for _, kind := range []string{"ServiceMonitor", "PrometheusRule"} {
		r.kubectl.Do(t, harness.Call{Args: []string{"apply", "--server-side", "-f", "-"}, Input: definition(kind)})
		r.kubectl.Run(t, "wait", "--for=condition=Established", "crd/"+strings.ToLower(kind)+"s.monitoring.coreos.com")
	}
	r.kubectl.Run(t, "create", "namespace", "monitoring")
	r.installOperator(t)
	r.kubectl.Run(t, "rollout", "status", "deployment/freehold", "-n", "freehold-system", "--timeout=2m")

	r.RestoreFixture(t, "edited", "waiting")
	r.Operate(t, "--takeover=manual", "--leader-elect", "--leader-elect-resource-namespace=freehold-system")
	r.Create(t, harness.Server(web, v1beta1.TransportStreamableHTTP, harness.Replicas(1, 1)))
	r.AwaitSettled(t, web)
	r.kubectl.Run(t, "scale", "deployment/"+web, "--replicas=2")
	r.await(t, v1beta1.ConditionFieldsOwned, metav1.ConditionFalse)
	r.Create(t, harness.Server("unstorable", v1beta1.TransportSSE, harness.PodTemplate(`{"spec": {"dnsPolicy": "Carrier Pigeon"}}`)))
	r.kubectl.Run(t, "create", "service", "clusterip", "mcp-homeless-proxy", "--tcp=80")
	r.Create(t, harness.Server("homeless", v1beta1.TransportStreamableHTTP))
	for name, condition := range map[string]string{
		"unstorable": v1beta1.ConditionApplied, "waiting": v1beta1.ConditionTakenOver, "homeless": v1beta1.ConditionFieldsOwned,
	} {
		r.kubectl.Run(t, "wait", "mcpserver/"+name, "--for=condition="+condition+"=False", "--timeout=2m")
	}

	certificate := r.certificate(t)
	for _, command := range Of(t) {
		out, err := r.attempt(t, strings.ReplaceAll(r.filledIn(command), "DIRECTORY", certificate))
		// 1 means that there are conflicts, or that something is wrong with the installation.
		found := strings.Contains(command.Text, "freehold conflicts") || strings.Contains(command.Text, "freehold doctor")
		if err != nil && (!found || !strings.Contains(err.Error(), "exit status 1")) {
			t.Errorf("%v: %v", command, err)
		}
		if out == "" || strings.Contains(out, "No resources found") {
			t.Errorf("%v shows nothing", command)
		}
		for asked, names := range map[string][]string{
			v1beta1.ConditionFieldsOwned + `")].status`: {"homeless", web}, v1beta1.ConditionFieldsOwned + `")].reason`: {"homeless"},
			v1beta1.ConditionApplied + `")].status`: {"unstorable"}, v1beta1.ConditionTakenOver + `")].status`: {"waiting"},
		} {
			if !strings.Contains(command.Text, asked) {
				continue
			}
			for _, name := range names {
				if strings.Count(out, "\n") != len(names) || !strings.Contains(out, r.Name+"/"+name) {
					t.Errorf("%v shows\n%s", command, out)
				}
			}
		}
	}
}

// certificate makes a directory with the files of a certificate for metrics, and sees to it that its Secret goes in the end.
func (r *reader) certificate(t *testing.T) string {
	t.Helper()
	chain, key, err := cert.GenerateSelfSignedCertKey("freehold-metrics.freehold-system.svc", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	for file, data := range map[string][]byte{"tls.crt": chain, "tls.key": key, "ca.crt": chain} {
		if err := os.WriteFile(filepath.Join(directory, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		const secret = "freehold-metrics-certificate"
		secrets := r.Core.CoreV1().Secrets("freehold-system")
		made, err := secrets.Get(context.WithoutCancel(t.Context()), secret, metav1.GetOptions{})
		if err != nil || made.Type != corev1.SecretTypeTLS || len(made.Data) != 3 {
			t.Errorf("the Secret is %+v, %v", made, err)
		}
		if err := secrets.Delete(context.WithoutCancel(t.Context()), secret, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return directory
}

// definition is that of a kind of the Prometheus operator, as far as kubectl needs it.
func definition(kind string) string {
	plural := strings.ToLower(kind) + "s"
	return `{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "` + plural + `.monitoring.coreos.com"},
		"spec": {
			"group": "monitoring.coreos.com", "scope": "Namespaced", "names": {"kind": "` + kind + `", "plural": "` + plural + `"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
				"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]
		}}`
}
