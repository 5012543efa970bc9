// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1 "github.com/freehold-dev/freehold/generated/clientset/versioned/typed/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/hack/node"
	"github.com/freehold-dev/freehold/test/harness"
	"github.com/freehold-dev/freehold/test/mcpclient"
	"github.com/freehold-dev/freehold/test/peers"
)

// The suites of what an MCPServer refers to have their peers in this process: proxies reach them in the network of the node.
// Clients are in this process too. A test has one MCPServer, whose name is served, unless it says otherwise.

// authority is the name of the ConfigMap and the Secret with the authority that signs for peers, and certificate is its key.
const (
	authority   = "authority"
	certificate = "ca.crt"
)

// toolhive is the client of the kinds that an MCPServer refers to.
func toolhive(ns *harness.Namespace) toolhivev1beta1.ToolhiveV1beta1Interface {
	return ns.Env.Servers.ToolhiveV1beta1()
}

// create makes an object as users do.
func create[T any](t *testing.T, do func(context.Context, T, metav1.CreateOptions) (T, error), object T) {
	t.Helper()
	if _, err := do(t.Context(), object, metav1.CreateOptions{FieldManager: harness.Author}); err != nil {
		t.Fatal(err)
	}
}

// editable is the client of a kind.
type editable[T any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Update(ctx context.Context, object T, options metav1.UpdateOptions) (T, error)
}

// edit changes an object as users do.
func edit[T any](t *testing.T, client editable[T], name string, change func(T)) {
	t.Helper()
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object, err := client.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(object)
		_, err = client.Update(t.Context(), object, metav1.UpdateOptions{FieldManager: harness.Author})
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// hear returns a listener that pods reach, and its address.
func hear(t *testing.T) (listener net.Listener, address string) {
	t.Helper()
	listener, err := machine.Listen(t.Context(), net.JoinHostPort(node.IP, "0"))
	if err != nil {
		t.Fatal(err)
	}
	return listener, listener.Addr().String()
}

// serveTLS serves the handler at the listener with a certificate by the authority.
func serveTLS(t *testing.T, listener net.Listener, handler http.Handler) (url string) {
	t.Helper()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if err := env.Cluster.ServingCertificate(certFile, keyFile, "peer", node.IP); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	return peers.Serve(t, listener, &pair, handler)
}

// trust puts the authority into a ConfigMap and a Secret of the namespace.
func trust(t *testing.T, ns *harness.Namespace) {
	t.Helper()
	content, err := os.ReadFile(env.Cluster.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	create(t, ns.Core.CoreV1().ConfigMaps(ns.Name).Create, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: authority}, Data: map[string]string{certificate: string(content)},
	})
	secret(t, ns, authority, certificate, string(content))
}

// trusted is the ConfigMap of trust.
func trusted() *v1beta1.CABundleSource {
	return &v1beta1.CABundleSource{ConfigMapRef: &v1beta1.ConfigMapKeySelector{Name: authority, Key: certificate}}
}

// secret makes a Secret with one key, and returns how to refer to that.
func secret(t *testing.T, ns *harness.Namespace, name, key, value string) *v1beta1.SecretKeyRef {
	t.Helper()
	create(t, ns.Core.CoreV1().Secrets(ns.Name).Create, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{key: value},
	})
	return &v1beta1.SecretKeyRef{Name: name, Key: key}
}

// issue serves an issuer of tokens, and makes the MCPOIDCConfig tokens, by which proxies accept what it signs.
func issue(t *testing.T, ns *harness.Namespace) *peers.Issuer {
	t.Helper()
	trust(t, ns)
	listener, address := hear(t)
	issuer := peers.NewIssuer(t, "https://"+address)
	serveTLS(t, listener, issuer)
	create(t, toolhive(ns).MCPOIDCConfigs(ns.Name).Create, &v1beta1.MCPOIDCConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "tokens"},
		Spec: v1beta1.MCPOIDCConfigSpec{Type: v1beta1.MCPOIDCConfigTypeInline, Inline: &v1beta1.InlineOIDCSharedConfig{
			// The addresses of the node are for documentation, and count as private.
			Issuer: "https://" + address, CABundleRef: trusted(), JWKSAllowPrivateIP: true,
		}},
	})
	return issuer
}

// audience is that of tokens for the MCPServers of these tests.
const audience = "tools"

// byTokens has an MCPServer accept only who has a token for it.
func byTokens(server *v1beta1.MCPServer) {
	server.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: "tokens", Audience: audience}
}

// token returns what makes a token, and fails the test when it cannot.
func token(t *testing.T, create func(subject, audience string) (string, error), subject, audience string) string {
	t.Helper()
	made, err := create(subject, audience)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// dial returns a client of the MCPServer that carries the token.
func dial(t *testing.T, ns *harness.Namespace, token string) *mcpclient.Direct {
	t.Helper()
	return mcpclient.Dial(t, ns, machine, served, token)
}

// operated returns a namespace with an operator.
func operated(t *testing.T) *harness.Namespace {
	t.Helper()
	ns := env.Namespace(t)
	ns.Operate(t, "--runner-image="+images.ProxyRunner)
	return ns
}

// inEffect waits until what an MCPServer refers to is what its pods do: the hash is another than before, the MCPServer is Ready,
// and its pods are those that it asks for. It returns the status.
func inEffect(t *testing.T, ns *harness.Namespace, before string, hash func(v1beta1.MCPServerStatus) string) *v1beta1.MCPServer {
	t.Helper()
	return ns.AwaitServer(t, served, "has its new configuration in effect", func(server *v1beta1.MCPServer) error {
		status := server.Status
		if hash(status) == before {
			return fmt.Errorf("it has the configuration with hash %q", before)
		}
		for _, condition := range []string{v1beta1.ConditionReady, v1beta1.ConditionRolledOut} {
			if !meta.IsStatusConditionTrue(status.Conditions, condition) {
				return fmt.Errorf("%s is %+v", condition, meta.FindStatusCondition(status.Conditions, condition))
			}
		}
		return nil
	})
}

// proxyPod returns the only pod of the MCPServer's proxy.
func proxyPod(t *testing.T, ns *harness.Namespace) *corev1.Pod {
	t.Helper()
	pods, err := ns.Core.CoreV1().Pods(ns.Name).List(t.Context(), metav1.ListOptions{LabelSelector: "app=mcpserver"})
	if err == nil && len(pods.Items) != 1 {
		err = fmt.Errorf("there are %d", len(pods.Items))
	}
	if err != nil {
		t.Fatal(errors.Join(errors.New("no single pod of the proxy"), err))
	}
	return &pods.Items[0]
}

// gets checks that a call was answered with the text.
func gets(t *testing.T, what string, outcome mcpclient.Outcome, want string) {
	t.Helper()
	if outcome.Err != nil || outcome.Text != want {
		t.Errorf("%s: got %v, want %q", what, outcome, want)
	}
}

// isDenied checks that a step was denied with the code.
func isDenied(t *testing.T, what string, outcome mcpclient.Outcome, code int) {
	t.Helper()
	if outcome.Err == nil || outcome.Code != code {
		t.Errorf("%s: got %v, want an error with code %d", what, outcome, code)
	}
}
