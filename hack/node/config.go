// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/hack/node/internal/plan"
)

// Addresses of the node's network. They are reserved for documentation and for benchmarks, and no machine has them.
const (
	// IP is the node's own address, at which its kubelet and its DNS server listen.
	IP         = "192.0.2.11"
	podIPRange = "198.18.0.0/24"
	prefixBits = "/24"
	// dnsHealth is where CoreDNS says whether it knows the Services.
	dnsHealth = "8181"
)

// The users of the node's programs.
const (
	kubeletUser   = "system:node:" + Name
	kubeletGroup  = "system:nodes"
	kubeProxyUser = "system:kube-proxy"
	corednsUser   = "freehold-node-dns"
)

// layout says where the files of a node are.
type layout struct{ dir string }

func (l layout) file(elements ...string) string {
	return filepath.Join(append([]string{l.dir}, elements...)...)
}

func (l layout) containerdSocket() string { return l.file("containerd.sock") }
func (l layout) apiServerSocket() string  { return l.file("api.sock") }
func (l layout) log(program string) string {
	return l.file(logs, program+".log")
}

// write makes the files of the node's programs.
func (l layout) write(c *cluster.Cluster, cgroup string) error {
	for _, sub := range []string{logs, "cni", "kubelet", "cni-state", "volume-plugins", "containerd", "opt"} {
		if err := os.MkdirAll(l.file(sub), 0o755); err != nil {
			return fmt.Errorf("making a directory of the node: %w", err)
		}
	}
	for name, content := range map[string]string{
		"containerd.toml":      l.containerdConfig(),
		"cni/10-pods.conflist": cniConfig,
		"kubelet.yaml":         l.kubeletConfig(c.CAFile(), cgroup),
		"kube-proxy.yaml":      l.kubeProxyConfig(),
		"Corefile":             l.corefile(),
		// Names that CoreDNS does not know exist nowhere.
		"resolv.conf": "",
	} {
		if err := os.WriteFile(l.file(name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("writing the configuration of the node: %w", err)
		}
	}
	if err := c.ServingCertificate(l.file("kubelet.crt"), l.file("kubelet.key"), kubeletUser, Name, IP); err != nil {
		return err
	}
	if err := c.NodeKubeconfig(l.file("kubelet.kubeconfig"), kubeletUser, kubeletGroup); err != nil {
		return err
	}
	if err := c.NodeKubeconfig(l.file("kube-proxy.kubeconfig"), kubeProxyUser); err != nil {
		return err
	}
	return c.NodeKubeconfig(l.file("coredns.kubeconfig"), corednsUser)
}

// containerdConfig never asks for a higher priority with the kernel's out-of-memory killer than the caller has: in a
// container that may be forbidden.
func (l layout) containerdConfig() string {
	return fmt.Sprintf(`version = 2
oom_score = 0
root = %q
state = "/run/containerd"
[grpc]
  address = %q
[plugins."io.containerd.internal.v1.opt"]
  path = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
`, l.file("containerd"), l.containerdSocket(), l.file("opt"), images.Pause, pluginDir(), l.file("cni"))
}

// cniConfig gives each pod a cable of its own to the node, which routes between them. On a bridge, packets between
// pods would pass by the rules of Services unless the kernel has a module loaded.
const cniConfig = `{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [{
    "type": "ptp",
    "ipMasq": false,
    "ipam": {
      "type": "host-local",
      "dataDir": "/run/cni-addresses",
      "ranges": [[{"subnet": "` + podIPRange + `"}]],
      "routes": [{"dst": "0.0.0.0/0"}]
    }
  }]
}
`

func (l layout) kubeletConfig(clientCA, cgroup string) string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[2]q}
authorization: {mode: Webhook}
tlsCertFile: %[3]q
tlsPrivateKeyFile: %[4]q
containerRuntimeEndpoint: %[5]q
clusterDNS: [%[1]s]
clusterDomain: cluster.local
resolvConf: %[6]q
volumePluginDir: %[7]q
# The kernel settings of a node are none of our business, and some machines still have the first control groups.
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
cgroupRoot: /%[8]s
enforceNodeAllocatable: [none]
oomScoreAdj: 0
maxOpenFiles: 20000
makeIPTablesUtilChains: false
# A full disk of a developer is no reason to evict pods or to forget images that cannot be pulled.
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 50Mi, nodefs.available: 200Mi, nodefs.inodesFree: 1%%, imagefs.available: 200Mi}
nodeStatusUpdateFrequency: 2s
serializeImagePulls: false
maxPods: 200
`, IP, clientCA, l.file("kubelet.crt"), l.file("kubelet.key"), "unix://"+l.containerdSocket(), l.file("resolv.conf"),
		l.file("volume-plugins"), cgroup)
}

func (l layout) kubeProxyConfig() string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
hostnameOverride: %s
clusterCIDR: %s
clientConnection: {kubeconfig: %q}
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
# Limits of the machine's connection tracking stay as they are.
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
# Changes are collected for so long before they take effect, which is a second by default.
nftables: {minSyncPeriod: 50ms}
oomScoreAdj: 0
`, Name, podIPRange, l.file("kube-proxy.kubeconfig"))
}

// corefile keeps answers for a second: tests want to see soon what has changed.
func (l layout) corefile() string {
	return fmt.Sprintf(`.:53 {
	bind %[1]s
	ready %[1]s:%[2]s
	errors
	kubernetes cluster.local in-addr.arpa {
		kubeconfig %[3]s
		ttl 1
	}
	cache 1
}
`, IP, dnsHealth, l.file("coredns.kubeconfig"))
}

// plan returns the plan for the first process of the node.
func (l layout) plan(c *cluster.Cluster, programs programs) plan.Plan {
	_, port := c.APIServerAddress()
	return plan.Plan{
		Hostname: Name,
		Binds: []plan.Bind{
			{Source: l.file("kubelet"), Target: "/var/lib/kubelet"},
			{Source: l.file("cni-state"), Target: "/var/lib/cni"},
			{Source: l.file(logs), Target: "/var/log"},
		},
		Addresses: []string{IP + prefixBits, cluster.NodeAPIServerIP + prefixBits},
		// kube-proxy replaces the addresses of Services, but without a route nothing is sent to them from the node.
		Routes: []string{cluster.ServiceIPRange},
		APIServer: plan.Forward{
			Address: net.JoinHostPort(cluster.NodeAPIServerIP, strconv.Itoa(port)),
			Socket:  l.apiServerSocket(),
		},
		Proxy: c.NodeSocket(),
		Programs: []plan.Program{
			{
				Name: "containerd", Path: find(programDirs, "containerd"), Log: l.log("containerd"),
				Args: []string{"--config", l.file("containerd.toml")}, Ready: l.containerdSocket(),
			},
			{
				Name: "kube-proxy", Path: programs.kubeProxy, Log: l.log("kube-proxy"),
				Args: []string{"--config=" + l.file("kube-proxy.yaml")},
			},
			{
				Name: "coredns", Path: programs.coredns, Log: l.log("coredns"),
				Args: []string{"-conf", l.file("Corefile")},
			},
			{
				Name: "kubelet", Path: programs.kubelet, Log: l.log("kubelet"),
				// Pods of an earlier node would start without their images.
				After: l.file(importedFile),
				Args: []string{
					"--config=" + l.file("kubelet.yaml"), "--kubeconfig=" + l.file("kubelet.kubeconfig"),
					"--hostname-override=" + Name, "--node-ip=" + IP,
				},
			},
		},
	}
}
