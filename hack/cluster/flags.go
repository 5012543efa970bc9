// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"

	"github.com/freehold-dev/freehold/hack/freeport"
)

const (
	// serviceIPRange is where Services get their addresses from, and apiServiceIP is the first of them, which the
	// API server takes for its own Service.
	serviceIPRange = "10.96.0.0/16"
	apiServiceIP   = "10.96.0.1"
	// fakeNodeIP and fakePodIPRange are addresses that are reserved for documentation and for benchmarks: no machine has
	// them, so nothing that is sent to a fake pod reaches a real machine.
	fakeNodeIP     = "192.0.2.1"
	fakePodIPRange = "198.18.0.0/15"
	// clientQPS and clientBurst lift the limits of components that would otherwise be the slowest part of a test.
	clientQPS   = 500
	clientBurst = 1000
	// managedByKwok is the annotation of nodes that kwok plays.
	managedByKwok = "kwok.x-k8s.io/node"
)

// loopback is the only address that a cluster listens on.
const loopback = freeport.Loopback

// ports are the addresses of the processes that need one. All others listen nowhere.
type ports struct {
	etcd, apiServer int
}

func (p ports) etcdURL() string { return fmt.Sprintf("https://%s:%d", loopback, p.etcd) }

func (p ports) apiServerURL() string { return fmt.Sprintf("https://%s:%d", loopback, p.apiServer) }

func etcdArgs(state *stateDir, p ports) []string {
	// A lone member never talks to its peers, so it may advertise any address to them, and listen where the kernel likes.
	// The same one at each start keeps the data usable when ports change.
	const peerURL = "http://" + loopback + ":2380"
	const member = "freehold"
	return []string{
		"--name=" + member,
		"--data-dir=" + state.file("etcd"),
		"--listen-client-urls=" + p.etcdURL(),
		"--advertise-client-urls=" + p.etcdURL(),
		"--listen-peer-urls=http://" + loopback + ":0",
		"--initial-advertise-peer-urls=" + peerURL,
		"--initial-cluster=" + member + "=" + peerURL,
		"--cert-file=" + state.file("pki", etcdServerPair+".crt"),
		"--key-file=" + state.file("pki", etcdServerPair+".key"),
		"--trusted-ca-file=" + state.file("pki", etcdCA+".crt"),
		"--client-cert-auth=true",
		// In milliseconds. A lone member still waits for one election timeout before it leads.
		"--heartbeat-interval=10",
		"--election-timeout=100",
		// Nobody needs this data after the machine has crashed, and waiting for the disk slows everything down.
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

func apiServerArgs(state *stateDir, p ports, o Options) []string {
	args := []string{
		"--etcd-servers=" + p.etcdURL(),
		"--etcd-cafile=" + state.file("pki", etcdCA+".crt"),
		"--etcd-certfile=" + state.file("pki", etcdClientPair+".crt"),
		"--etcd-keyfile=" + state.file("pki", etcdClientPair+".key"),
		"--bind-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", p.apiServer),
		"--tls-cert-file=" + state.file("pki", apiServerPair+".crt"),
		"--tls-private-key-file=" + state.file("pki", apiServerPair+".key"),
		"--client-ca-file=" + state.file("pki", clusterCA+".crt"),
		"--requestheader-client-ca-file=" + state.file("pki", proxyCA+".crt"),
		"--requestheader-allowed-names=" + proxyUser,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + state.file("pki", proxyClientPair+".crt"),
		"--proxy-client-key-file=" + state.file("pki", proxyClientPair+".key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + state.file("pki", serviceAccountKey+".pub"),
		"--service-account-signing-key-file=" + state.file("pki", serviceAccountKey+".key"),
		"--service-cluster-ip-range=" + serviceIPRange,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--audit-policy-file=" + state.file("config", auditPolicyFile),
		"--audit-log-path=" + state.file(auditLogFile),
		"--audit-log-format=json",
		// A test reads what it has just done: an event is in the file when its request has been served, and the
		// file is never rotated away.
		"--audit-log-mode=blocking",
		"--audit-log-maxsize=0",
	}
	if o.RealNodes {
		args = append(args, realNodesArgs(state)...)
	} else {
		// A loopback address must not become an endpoint, so nothing may try to make it one.
		args = append(args, "--advertise-address="+loopback, "--endpoint-reconciler-type=none")
	}
	return append(args, o.APIServerArgs...)
}

func controllerManagerArgs(state *stateDir, controllers string, extra []string) []string {
	return append([]string{
		"--kubeconfig=" + state.file("config", controllerManagerUser.kubeconfig()),
		"--secure-port=0",
		"--leader-elect=false",
		"--controllers=" + controllers,
		"--use-service-account-credentials=true",
		"--root-ca-file=" + state.file("pki", clusterCA+".crt"),
		"--service-account-private-key-file=" + state.file("pki", serviceAccountKey+".key"),
		"--cluster-signing-cert-file=" + state.file("pki", clusterCA+".crt"),
		"--cluster-signing-key-file=" + state.file("pki", clusterCA+".key"),
		fmt.Sprintf("--kube-api-qps=%d", clientQPS),
		fmt.Sprintf("--kube-api-burst=%d", clientBurst),
	}, extra...)
}

func schedulerArgs(state *stateDir) []string {
	return []string{"--config=" + state.file("config", schedulerConfigFile), "--secure-port=0"}
}

func kwokArgs(state *stateDir) []string {
	return []string{
		"--kubeconfig=" + state.file("config", kwokUser.kubeconfig()),
		"--config=" + state.file("config", stagesFile),
		"--manage-all-nodes=false",
		"--manage-nodes-with-annotation-selector=" + managedByKwok + "=fake",
		// Nodes stay Ready by their leases, like real ones.
		"--node-lease-duration-seconds=40",
		"--cidr=" + fakePodIPRange,
		"--node-ip=" + fakeNodeIP,
		// A fake kubelet would listen on all addresses. Zero: there is none.
		"--node-port=0",
	}
}

const (
	auditLogFile        = "audit.log"
	auditPolicyFile     = "audit-policy.yaml"
	schedulerConfigFile = "scheduler.yaml"
	stagesFile          = "stages.yaml"
)

// writeConfig writes the files that the flags above name, but for certificates and kubeconfigs.
func writeConfig(state *stateDir, o Options) error {
	scheduler := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
clientConnection:
  kubeconfig: %q
  qps: %d
  burst: %d
`, state.file("config", schedulerUser.kubeconfig()), clientQPS, clientBurst)
	for name, content := range map[string]string{
		auditPolicyFile:     auditPolicy(o.AuditBodies),
		schedulerConfigFile: scheduler,
		stagesFile:          stages(o.PodReadyDelay),
	} {
		if err := os.WriteFile(state.file("config", name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("writing the configuration of the cluster: %w", err)
		}
	}
	return nil
}
