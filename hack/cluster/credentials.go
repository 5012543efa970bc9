// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"

	"k8s.io/client-go/rest"

	"github.com/freehold-dev/freehold/hack/cluster/internal/pki"
)

// File names of certificates and keys in the state directory, without their endings. Each trust has an authority
// of its own: one shared by all would make every user of the cluster an administrator of etcd.
const (
	clusterCA         = "cluster-ca"
	proxyCA           = "front-proxy-ca"
	etcdCA            = "etcd-ca"
	apiServerPair     = "apiserver"
	proxyClientPair   = "front-proxy-client"
	etcdServerPair    = "etcd-server"
	etcdClientPair    = "etcd-client"
	serviceAccountKey = "service-account"

	proxyUser = "front-proxy-client"
	masters   = "system:masters"
)

// componentUser is the identity of one process towards the API server.
type componentUser struct {
	name   string
	groups []string
}

// The names of Kubernetes' own components are those to which its built-in RBAC rules grant the rights that they need.
var (
	adminUser             = componentUser{name: "admin", groups: []string{masters}}
	controllerManagerUser = componentUser{name: "system:kube-controller-manager"}
	schedulerUser         = componentUser{name: "system:kube-scheduler"}
	kwokUser              = componentUser{name: "kwok", groups: []string{masters}}
)

func (u componentUser) subject() pki.Subject { return pki.Subject{User: u.name, Groups: u.groups} }

func (u componentUser) kubeconfig() string {
	return strings.TrimPrefix(u.name, "system:") + ".kubeconfig"
}

// prepareCredentials makes the keys and certificates by which the processes trust each other. Authorities of an earlier
// run in the same directory stay, so that their certificates stay valid.
func prepareCredentials(state *stateDir) (*pki.Authority, error) {
	dir := state.file("pki")
	authorities := map[string]*pki.Authority{}
	for _, name := range []string{clusterCA, proxyCA, etcdCA} {
		authority, err := pki.LoadOrCreateAuthority(dir, name)
		if err != nil {
			return nil, err
		}
		authorities[name] = authority
	}
	for _, pair := range []struct {
		file, authority string
		subject         pki.Subject
	}{
		{apiServerPair, clusterCA, pki.Subject{User: "kube-apiserver", Hosts: []string{
			loopback, "localhost", apiServiceIP,
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		}}},
		{proxyClientPair, proxyCA, pki.Subject{User: proxyUser}},
		{etcdServerPair, etcdCA, pki.Subject{User: "etcd", Hosts: []string{loopback, "localhost"}}},
		{etcdClientPair, etcdCA, pki.Subject{User: "kube-apiserver"}},
	} {
		issued, err := authorities[pair.authority].Issue(pair.subject)
		if err != nil {
			return nil, err
		}
		if err := issued.Write(dir, pair.file); err != nil {
			return nil, err
		}
	}
	return authorities[clusterCA], pki.LoadOrCreateSigningKey(dir, serviceAccountKey)
}

// writeComponentKubeconfigs gives every component access to the API server at url. It returns the access of the
// administrator and where it is written.
func writeComponentKubeconfigs(state *stateDir, authority *pki.Authority, url string) (*rest.Config, string, error) {
	anonymous := &rest.Config{
		Host:            url,
		TLSClientConfig: rest.TLSClientConfig{CAData: authority.CertPEM},
		// Negative: no limit. Priority and fairness of the API server remain.
		QPS: -1,
	}
	for _, user := range []componentUser{controllerManagerUser, schedulerUser, kwokUser} {
		config, err := issueConfig(authority, anonymous, user.subject())
		if err != nil {
			return nil, "", err
		}
		if err := writeKubeconfig(state.file("config", user.kubeconfig()), user.name, config); err != nil {
			return nil, "", err
		}
	}
	admin, err := issueConfig(authority, anonymous, adminUser.subject())
	if err != nil {
		return nil, "", err
	}
	path := state.file(adminUser.kubeconfig())
	return admin, path, writeKubeconfig(path, adminUser.name, admin)
}

// issueConfig returns access for subject to the server of config.
func issueConfig(authority *pki.Authority, config *rest.Config, subject pki.Subject) (*rest.Config, error) {
	pair, err := authority.Issue(subject)
	if err != nil {
		return nil, err
	}
	config = rest.AnonymousClientConfig(config)
	config.CertData, config.KeyData = pair.CertPEM, pair.KeyPEM
	return config, nil
}
