// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/freehold-dev/freehold/hack/cluster/internal/pki"
)

// tokenLifetime is how long a ServiceAccount's credentials work: longer than any test, as they are never renewed.
const tokenLifetime = 24 * time.Hour

// RESTConfig returns a copy of the administrator's credentials, a member of system:masters. Like all configs
// of a cluster it has no client-side rate limit.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.admin) }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// UserConfig returns credentials of a user with the given groups, who may do what RBAC rules for that user and
// those groups say. In a cluster that this package has not started, the administrator impersonates the user.
func (c *Cluster) UserConfig(name string, groups ...string) (*rest.Config, error) {
	if c.authority == nil {
		config := c.RESTConfig()
		config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: groups}
		return config, nil
	}
	return issueConfig(c.authority, c.admin, pki.Subject{User: name, Groups: groups})
}

// UserKubeconfig writes a kubeconfig with the credentials of UserConfig, and returns its path.
func (c *Cluster) UserKubeconfig(name string, groups ...string) (string, error) {
	config, err := c.UserConfig(name, groups...)
	if err != nil {
		return "", err
	}
	return c.writeUserKubeconfig(name, config)
}

// ServiceAccountConfig returns credentials of an existing ServiceAccount: a token that is valid for a day.
func (c *Cluster) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	seconds := int64(tokenLifetime.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	granted, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("requesting a token for ServiceAccount %s/%s: %w", namespace, name, err)
	}
	config := rest.AnonymousClientConfig(c.admin)
	config.BearerToken = granted.Status.Token
	return config, nil
}

// ServiceAccountKubeconfig writes a kubeconfig with the credentials of ServiceAccountConfig, and returns its path. Its
// namespace is that of the ServiceAccount.
func (c *Cluster) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (string, error) {
	config, err := c.ServiceAccountConfig(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	return c.writeUserKubeconfig("system:serviceaccount:"+namespace+":"+name, config)
}

func (c *Cluster) writeUserKubeconfig(user string, config *rest.Config) (string, error) {
	// User names may have slashes; escaped ones are different for different users.
	path := filepath.Join(c.state.file("users"), url.PathEscape(user)+".kubeconfig")
	return path, writeKubeconfig(path, user, config)
}

// writeKubeconfig writes config to path with all credentials inside.
func writeKubeconfig(path, user string, config *rest.Config) error {
	const name = "freehold"
	content := clientcmdapi.NewConfig()
	content.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   config.Host + config.APIPath,
		CertificateAuthority:     config.CAFile,
		CertificateAuthorityData: config.CAData,
		InsecureSkipTLSVerify:    config.Insecure,
		TLSServerName:            config.ServerName,
	}
	content.AuthInfos[user] = &clientcmdapi.AuthInfo{
		ClientCertificate:     config.CertFile,
		ClientCertificateData: config.CertData,
		ClientKey:             config.KeyFile,
		ClientKeyData:         config.KeyData,
		Token:                 config.BearerToken,
		TokenFile:             config.BearerTokenFile,
		Username:              config.Username,
		Password:              config.Password,
		Impersonate:           config.Impersonate.UserName,
		ImpersonateGroups:     config.Impersonate.Groups,
		Exec:                  config.ExecProvider,
		AuthProvider:          config.AuthProvider,
	}
	content.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	content.CurrentContext = name
	if err := clientcmd.WriteToFile(*content, path); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return nil
}
