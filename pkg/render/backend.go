// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// accountPath is the old field for the pods' ServiceAccount. The API server makes it equal to the one that is applied, and takes that one
// from it where it is missing: a name that is no longer applied would stay.
const accountPath = ".spec.template.spec.serviceAccount"

// ClosedGate is the generation on the backend's pod template that no MCPServer ever reaches, so that no
// proxyrunner ever takes itself for newer than the StatefulSet.
var ClosedGate = strconv.FormatInt(math.MaxInt64, 10)

// Environment variables by which the MCP server learns how to listen.
const (
	envFastMCPPort = "FASTMCP_PORT"
	envHost        = "MCP_HOST"
)

// statefulSet renders the backend. Its pod template is, but for the gate, the one that the proxyrunner
// makes, so that a takeover of a running backend restarts nothing.
func (r *renderer) statefulSet(template *corev1ac.PodTemplateSpecApplyConfiguration) {
	name, labels := inventory.Backend.Name(r.name), BackendLabels(r.server)
	template.WithLabels(labels).
		WithAnnotations(map[string]string{v1beta1.AnnotationGeneration: ClosedGate})
	r.backendPod(template.Spec)

	spec := appsv1ac.StatefulSetSpec().
		// No Service has this name. ToolHive writes it, and it cannot be changed afterwards.
		WithServiceName(name).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(BackendSelector(r.name))).
		WithTemplate(template)
	unset := r.updateStrategy(spec)
	backend := r.want(inventory.Backend, appsv1ac.StatefulSet(name, r.namespace).
		WithOwnerReferences(r.owner()).WithLabels(managed).
		WithLabels(labels).
		WithSpec(spec))
	if r.backendAccount == "" {
		unset = append(unset, accountPath)
	}
	backend.Unset = unset

	if replicas := r.replicas("backendReplicas", r.server.Spec.BackendReplicas); replicas != nil {
		r.wantReplicas(inventory.Backend, replicas)
	}
}

// backendPod completes the user's pod.
func (r *renderer) backendPod(pod *corev1ac.PodSpecApplyConfiguration) {
	// The old field of the same meaning goes, for the API server makes the two equal.
	pod.ServiceAccountName, pod.DeprecatedServiceAccount = nil, nil
	if r.backendAccount != "" {
		pod.WithServiceAccountName(r.backendAccount)
	}
	setDefault(&pod.RestartPolicy, corev1.RestartPolicyAlways)
	pod.WithSecurityContext(r.podSecurity(pod.SecurityContext))

	container := backendContainerOf(pod)
	if container == nil {
		pod.WithContainers(corev1ac.Container().WithName(workload.BackendContainer))
		container = backendContainerOf(pod)
	}
	container.WithImage(r.server.Spec.Image).
		WithArgs(r.server.Spec.Args...).
		WithSecurityContext(r.containerSecurity(container.SecurityContext))
	container.Env = nil
	container.WithEnv(r.backendEnv()...)
	if r.transport == v1beta1.TransportSSE {
		declarePort(container, r.mcpPort)
	}
	// ToolHive says whether there is a standard input, whatever the user wrote. False is left out, as the API
	// server stores it so.
	container.Stdin, container.TTY = nil, nil
	if r.stdio() {
		container.WithStdin(true)
	}
}

// backendServiceAccount returns the ServiceAccount of the backend's pods, given those in the two fields of a pod
// template; empty for the namespace's default one.
func (r *renderer) backendServiceAccount(name, deprecated string) string {
	switch named := r.server.Spec.ServiceAccount; {
	case named == nil:
		return inventory.BackendAccount.Name(r.name)
	case *named != "":
		return *named
	default:
		return cmp.Or(name, deprecated)
	}
}

// backendEnv returns the user's environment of the mcp container, then Secrets, then plain values sorted by name.
func (r *renderer) backendEnv() []*corev1ac.EnvVarApplyConfiguration {
	vars := slices.Clone(r.templateEnv)
	for _, secret := range r.server.Spec.Secrets {
		name := cmp.Or(secret.TargetEnvName, secret.Key)
		vars = append(vars, variables(sourceSecrets, envSecret(name, secret.Name, secret.Key))...)
	}
	// Plain values are one list, sorted by name, the operator's among the user's. Each value of the user's is
	// put before it as well: mergeEnv drops it there, and reports it if it differs from the one that stays.
	operator := r.transportEnv()
	if !r.stdio() {
		operator[envHost] = ""
	}
	plain := map[string]variable{}
	for _, v := range variables(sourceEnv, envValues(r.server.Spec.Env)...) {
		vars = append(vars, v)
		plain[*v.config.Name] = v
	}
	for name, value := range operator {
		plain[name] = variable{sourceOperator, envValue(name, value)}
	}
	for _, name := range slices.Sorted(maps.Keys(plain)) {
		vars = append(vars, plain[name])
	}
	return r.mergeEnv("backend", vars)
}

// transportEnv returns the variables that tell the MCP server, and in the RunConfig the proxy, how the MCP server listens.
func (r *renderer) transportEnv() map[string]string {
	env := map[string]string{workload.EnvTransport: string(r.transport)}
	if !r.stdio() {
		port := strconv.Itoa(int(r.mcpPort))
		env[workload.EnvPort], env[envFastMCPPort] = port, port
	}
	return env
}

// declarePort adds a TCP port, unless the user declared it.
func declarePort(container *corev1ac.ContainerApplyConfiguration, port int32) {
	for _, p := range container.Ports {
		if *p.ContainerPort == port && *p.Protocol == corev1.ProtocolTCP {
			return
		}
	}
	container.WithPorts(corev1ac.ContainerPort().WithContainerPort(port).WithProtocol(corev1.ProtocolTCP))
}

// backendContainerOf returns the MCP server's container in a pod; nil when it has none.
func backendContainerOf(pod *corev1ac.PodSpecApplyConfiguration) *corev1ac.ContainerApplyConfiguration {
	for i := range pod.Containers {
		if c := &pod.Containers[i]; c.Name != nil && *c.Name == workload.BackendContainer {
			return c
		}
	}
	return nil
}
