// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/test/harness"
)

// token makes a ServiceAccount and returns a token of it.
func token(t *testing.T, namespace, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := env.Core.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config, err := env.Cluster.ServiceAccountConfig(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return config.BearerToken
}

// allowReading binds the ClusterRole of the option to a ServiceAccount.
func allowReading(t *testing.T, namespace, name string) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name + "-reads-metrics"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "freehold-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}
	if _, err := env.Core.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// read asks an operator for its metrics.
func read(ctx context.Context, address, bearer string) (int, string, error) {
	// The certificate is self-signed.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", http.NoBody)
	if err != nil {
		return 0, "", err
	}
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// With the rights of the option, and no more, the operator knows who may read its metrics and who may not.
func TestOnlyWhoMayReadsMetrics(t *testing.T) {
	allowReviews(t)
	ns := env.Namespace(t)
	reader, stranger := token(t, ns.Name, "reader"), token(t, ns.Name, "stranger")
	allowReading(t, ns.Name, "reader")
	p := ns.Operate(t, "--metrics-secure")

	// RBAC's caches may be a moment behind, and a refusal holds for ten seconds.
	harness.Eventually(t, "who may read does", func(ctx context.Context) error {
		code, body, err := read(ctx, p.MetricsAddress(), reader)
		if err == nil && (code != http.StatusOK || !strings.Contains(body, "freehold_build_info")) {
			err = fmt.Errorf("the answer is %d %.200q", code, body)
		}
		return err
	})
	for name, test := range map[string]struct {
		bearer string
		code   int
	}{
		"nobody": {"", http.StatusUnauthorized}, "a forged token": {"forged", http.StatusUnauthorized},
		"a token changed": {reader[:len(reader)-4] + "AAAA", http.StatusUnauthorized},
		"a stranger":      {stranger, http.StatusForbidden},
	} {
		code, body, err := read(t.Context(), p.MetricsAddress(), test.bearer)
		if err != nil || code != test.code || strings.Contains(body, "freehold_") {
			t.Errorf("%s: the answer is %d %.200q, %v; want %d", name, code, body, err, test.code)
		}
	}
	if _, err := p.Metrics(t.Context()); err == nil {
		t.Error("the metrics are told without TLS")
	}
}
