// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// certificate is where the option has the operator's certificate.
const certificate = "/etc/freehold/metrics-certificate"

// The option adds two flags, a certificate, two rights of the operator's and one for who reads. Nothing else of install.yaml changes, and
// without the option none of it is there.
func TestSecureMetricsChangeNothingElse(t *testing.T) {
	plain, secure := installed(t), rendered(t, "secure-metrics")
	want := one(t, plain.deployments).Spec.Template.Spec
	container := &want.Containers[0]
	container.Args = append(slices.Clone(container.Args), "--metrics-secure", "--metrics-certificate-directory="+certificate)
	container.VolumeMounts = []corev1.VolumeMount{{Name: "metrics-certificate", MountPath: certificate, ReadOnly: true}}
	// ca.crt is for readers, and there need not be one.
	want.Volumes = []corev1.Volume{{Name: "metrics-certificate", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: "freehold-metrics-certificate",
		Items:      []corev1.KeyToPath{{Key: corev1.TLSCertKey, Path: corev1.TLSCertKey}, {Key: corev1.TLSPrivateKeyKey, Path: corev1.TLSPrivateKeyKey}},
	}}}}
	if diff := cmp.Diff(want, one(t, secure.deployments).Spec.Template.Spec); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	checkReviewer(t, plain, secure)
}

// checkReviewer shows which rights the option adds, and for whom.
func checkReviewer(t *testing.T, plain, secure objects) {
	t.Helper()
	want := map[string][]rbacv1.PolicyRule{"ClusterRole /freehold": one(t, plain.clusterRoles).Rules}
	want["ClusterRole /freehold-metrics-reviewer"] = []rbacv1.PolicyRule{
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
	}
	want["ClusterRole /freehold-metrics-reader"] = []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}
	got := map[string][]rbacv1.PolicyRule{}
	for _, role := range secure.clusterRoles {
		got["ClusterRole /"+role.Name] = role.Rules
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cluster roles (-want +got):\n%s", diff)
	}
	account := one(t, secure.serviceAccounts)
	bound := map[string]bool{}
	for _, binding := range secure.clusterRoleBindings {
		bound[binding.RoleRef.Name] = true
		if diff := cmp.Diff([]rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}, binding.Subjects); diff != "" {
			t.Errorf("%s binds (-want +got):\n%s", binding.Name, diff)
		}
	}
	if diff := cmp.Diff(map[string]bool{"freehold": true, "freehold-metrics-reviewer": true}, bound); diff != "" {
		t.Errorf("the operator holds (-want +got):\n%s", diff)
	}
}

// The ServiceMonitor of the option asks by TLS, verifies who answers, and shows a token; without the option, none of these.
func TestSecureMonitorAsksByTLSAndShowsAToken(t *testing.T) {
	endpoint := func(overlay string) monitoredEndpoint {
		return one(t, one(t, renderedMonitoring(t, overlay).monitors).Spec.Endpoints)
	}
	plain, secure := endpoint("monitoring"), endpoint("monitoring-secure")
	if plain.Scheme != "" || plain.TokenFile != "" || plain.TLS != nil {
		t.Errorf("without the option the endpoint is %+v", plain)
	}
	want := plain
	want.Scheme, want.TokenFile = "https", "/var/run/secrets/kubernetes.io/serviceaccount/token"
	want.TLS = &monitoredTLS{ServerName: "freehold-metrics.freehold-system.svc"}
	want.TLS.CA.Secret = corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "freehold-metrics-certificate"}, Key: "ca.crt"}
	if diff := cmp.Diff(want, secure); diff != "" {
		t.Errorf("with the option (-want +got):\n%s", diff)
	}
}

// certManager is as much of its kinds as the manifests use.
type certManager struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		SelfSigned  *struct{} `json:"selfSigned,omitempty"`
		CA          struct{ SecretName string }
		IsCA        bool
		CommonName  string
		SecretName  string
		DNSNames    []string
		Duration    metav1.Duration
		RenewBefore metav1.Duration
		Usages      []string
		PrivateKey  struct {
			Algorithm, RotationPolicy string
			Size                      int
		}
		IssuerRef struct{ Kind, Name string }
	} `json:"spec"`
}

// TestCertManagerMakesTheCertificate shows that the option for cert-manager makes the Secret that the operator has mounted and by which
// Prometheus verifies it, for the name that Prometheus asks by, and that each step is there for the next one.
func TestCertManagerMakesTheCertificate(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "secure-metrics-cert-manager", "rendered.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	issuers, certificates := map[string]certManager{}, map[string]certManager{}
	var rest []string
	for _, document := range documents(t, string(data)) {
		if !strings.Contains(string(document), "apiVersion: cert-manager.io/v1") {
			rest = append(rest, string(document))
			continue
		}
		object := strict[certManager](t, document)
		if object.Namespace != one(t, installed(t).deployments).Namespace {
			t.Errorf("%s %s is in %s", object.Kind, object.Name, object.Namespace)
		}
		map[string]map[string]certManager{"Issuer": issuers, "Certificate": certificates}[object.Kind][object.Name] = object
	}
	endpoint := one(t, one(t, renderedMonitoring(t, "monitoring-secure").monitors).Spec.Endpoints)
	leaf, root := certificates["freehold-metrics"].Spec, certificates["freehold-metrics-authority"].Spec
	if leaf.SecretName != endpoint.TLS.CA.Secret.Name || !slices.Equal(leaf.DNSNames, []string{endpoint.TLS.ServerName}) || leaf.IsCA {
		t.Errorf("the certificate is %+v, and Prometheus asks by %+v", leaf, endpoint.TLS)
	}
	if !slices.Contains(leaf.Usages, "server auth") || leaf.RenewBefore.Duration <= 0 || leaf.RenewBefore.Duration >= leaf.Duration.Duration {
		t.Errorf("the certificate is %+v", leaf)
	}
	signs, begins := issuers[leaf.IssuerRef.Name].Spec, issuers[root.IssuerRef.Name].Spec
	if signs.CA.SecretName == "" || signs.CA.SecretName != root.SecretName || !root.IsCA || begins.SelfSigned == nil {
		t.Errorf("it is signed by %+v, which has %+v, from %+v", signs, root, begins)
	}
	if root.Duration.Duration <= leaf.Duration.Duration || len(issuers) != 2 || len(certificates) != 2 {
		t.Errorf("issuers %v, certificates %v", issuers, certificates)
	}
	if diff := cmp.Diff(rendered(t, "secure-metrics"), decode(t, strings.Join(rest, "\n---\n")), cmp.AllowUnexported(objects{})); diff != "" {
		t.Errorf("without the certificates (-as secure-metrics +got):\n%s", diff)
	}
}

// TestNothingSkipsVerification looks for it in everything that a user may apply.
func TestNothingSkipsVerification(t *testing.T) {
	manifests := 0
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" || strings.Contains(filepath.Dir(path), "crd") || path == "install.yaml" {
			return err
		}
		manifests++
		text, err := os.ReadFile(path)
		if strings.Contains(strings.ToLower(string(text)), "skipverify") {
			t.Errorf("%s leaves a certificate unverified", path)
		}
		return err
	})
	if err != nil || manifests < 40 {
		t.Errorf("%d manifests, %v", manifests, err)
	}
}
