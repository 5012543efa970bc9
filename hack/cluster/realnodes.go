// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/freehold-dev/freehold/hack/cluster/internal/pki"
)

// NodeAPIServerIP is where pods and programs of a real node find the API server, at the port that it also has on
// loopback. It is an address that is reserved for documentation, and exists in the network of the node alone.
const NodeAPIServerIP = "192.0.2.10"

// ServiceIPRange is where Services get their addresses from.
const ServiceIPRange = serviceIPRange

const (
	kubeletClientPair = "apiserver-kubelet-client"
	egressConfigFile  = "egress.yaml"
	// nodeSocket is an HTTP proxy into the network of the node. Its name is short: the path of a Unix socket must not
	// have more than about a hundred bytes.
	nodeSocket = "node.sock"
	// maxSocketPath is the longest path that Linux accepts, without the zero byte at the end.
	maxSocketPath = 107
)

// prepareRealNodes makes the credentials and the configuration that the API server needs to talk to kubelets.
func prepareRealNodes(c *Cluster, o Options) error {
	if !o.RealNodes {
		return nil
	}
	if path := c.NodeSocket(); len(path) > maxSocketPath {
		return fmt.Errorf("the path of the cluster's directory is too long for a socket: %s", path)
	}
	pair, err := c.authority.Issue(pki.Subject{User: "kube-apiserver-kubelet-client", Groups: []string{masters}})
	if err != nil {
		return err
	}
	// Everything that the API server asks of kubelets, and of Services, goes through the proxy.
	egress := fmt.Sprintf(`apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: %q
`, c.NodeSocket())
	if err := os.WriteFile(c.state.file("config", egressConfigFile), []byte(egress), 0o600); err != nil {
		return fmt.Errorf("writing the configuration of the API server: %w", err)
	}
	return pair.Write(c.state.file("pki"), kubeletClientPair)
}

func realNodesArgs(state *stateDir) []string {
	return []string{
		"--advertise-address=" + NodeAPIServerIP,
		"--egress-selector-config-file=" + state.file("config", egressConfigFile),
		"--kubelet-client-certificate=" + state.file("pki", kubeletClientPair+".crt"),
		"--kubelet-client-key=" + state.file("pki", kubeletClientPair+".key"),
		"--kubelet-certificate-authority=" + state.file("pki", clusterCA+".crt"),
		"--kubelet-preferred-address-types=InternalIP",
	}
}

// NodeSocket returns the path of the Unix socket at which the API server expects an HTTP proxy into the network of the
// real node, for connections to its kubelet.
func (c *Cluster) NodeSocket() string { return c.state.file(nodeSocket) }

// TakesRealNodes reports whether the cluster was started to be joined by a real node.
func (c *Cluster) TakesRealNodes() bool { return c.Owned() && c.options.RealNodes }

// APIServerAddress returns where the API server listens, as host:port, and its port.
func (c *Cluster) APIServerAddress() (address string, port int) {
	return net.JoinHostPort(loopback, strconv.Itoa(c.ports.apiServer)), c.ports.apiServer
}

// CAFile returns the path of the certificate of the authority that signs for the users and servers of the cluster.
func (c *Cluster) CAFile() string { return c.state.file("pki", clusterCA+".crt") }

// NodeKubeconfig writes a kubeconfig for a program on the real node to the path. The user has the rights that RBAC
// rules, or the authorizer for nodes, grant.
func (c *Cluster) NodeKubeconfig(path, user string, groups ...string) error {
	if c.authority == nil {
		return ErrNotStarted
	}
	config, err := issueConfig(c.authority, c.admin, pki.Subject{User: user, Groups: groups})
	if err != nil {
		return err
	}
	config.Host = fmt.Sprintf("https://%s:%d", NodeAPIServerIP, c.ports.apiServer)
	config.ServerName = "kubernetes" // One of the names in the certificate.
	return writeKubeconfig(path, user, config)
}

// ServingCertificate writes a certificate for a server with the given names and addresses, and its key, to two files.
func (c *Cluster) ServingCertificate(certPath, keyPath, name string, hosts ...string) error {
	if c.authority == nil {
		return ErrNotStarted
	}
	pair, err := c.authority.Issue(pki.Subject{User: name, Groups: []string{"system:nodes"}, Hosts: hosts})
	if err != nil {
		return err
	}
	for path, content := range map[string][]byte{keyPath: pair.KeyPEM, certPath: pair.CertPEM} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("writing the certificate of %s: %w", name, err)
		}
	}
	return nil
}
