// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/runconfig"
	"github.com/freehold-dev/freehold/pkg/workload"
)

const (
	healthPath = "/health"
	// terminationGraceSeconds is how long a proxy may take to stop. It is ToolHive's value, and also what the
	// API server would set.
	terminationGraceSeconds = 30
	// drainSeconds is how long a proxy that is to stop goes on serving first. A runner refuses connections as soon as it
	// gets the signal to stop, and nodes go on sending it some until they learn of that. A proxy for stdio does not drain:
	// its replacement would share the output of the MCP server with it.
	drainSeconds = 3
)

// EnvUsageMetrics is the environment variable by which a proxyrunner, and ToolHive's operator, report usage metrics or do not.
const EnvUsageMetrics = "TOOLHIVE_USAGE_METRICS_ENABLED"

// More environment variables of the proxyrunner.
const (
	envGeneration     = "THV_MCPSERVER_GENERATION"
	envRedisPassword  = "THV_SESSION_REDIS_PASSWORD"
	envOpenShift      = "OPERATOR_OPENSHIFT"
	envSecretProvider = "TOOLHIVE_SECRETS_PROVIDER"
	secretEnvPrefix   = "TOOLHIVE_SECRET_"
)

// deployment renders the proxy's Deployment.
//
// Unlike ToolHive's operator it passes no patch for the backend's pods, for the backend is not the runner's
// any more, and its template carries no generation: neither an edit of podTemplateSpec nor the bare fact of
// an edit restarts the proxy.
func (r *renderer) deployment(config proxyConfig) {
	var overrides v1beta1.ProxyDeploymentOverrides
	if d := r.proxyOverrides(); d != nil {
		overrides = *d
	}
	name, selector := inventory.Proxy.Name(r.name), ProxySelector(r.name)
	intent := r.want(inventory.Proxy, appsv1ac.Deployment(name, r.namespace).
		WithOwnerReferences(r.owner()).WithLabels(managed).
		WithLabels(withOperatorKeys(overrides.Labels, selector)).
		WithAnnotations(workloadAnnotations(overrides.Annotations)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector)).
			WithTemplate(r.proxyTemplate(overrides.PodTemplateMetadataOverrides, selector, config))))
	intent.bundlesUnknown = r.proxy.bundlesUnknown

	if replicas := r.replicas("replicas", r.server.Spec.Replicas); replicas != nil {
		r.noteSessionStorage(*replicas)
		r.wantReplicas(inventory.Proxy, replicas)
	}
}

// workloadAnnotations returns the user's, without those that the writer of spec.replicas owns.
func workloadAnnotations(user map[string]string) map[string]string {
	user = maps.Clone(user)
	delete(user, v1beta1.AnnotationReplicasSource)
	delete(user, v1beta1.AnnotationReplicasWritten)
	return user
}

func (r *renderer) proxyTemplate(
	overrides *v1beta1.ResourceMetadataOverrides, selector map[string]string, config proxyConfig,
) *corev1ac.PodTemplateSpecApplyConfiguration {
	if overrides == nil {
		overrides = &v1beta1.ResourceMetadataOverrides{}
	}
	annotations := map[string]string{v1beta1.AnnotationRunConfigChecksum: config.checksum}
	maps.Copy(annotations, r.proxy.annotations)
	if at, ok := restartRequest(r.server); ok {
		annotations[v1beta1.AnnotationRestartedAt] = at
	}
	if process := r.in.BackendProcess; process != "" && r.stdio() {
		annotations[v1beta1.AnnotationAttachedTo] = process
	}
	volumes, mounts := r.proxyVolumes(config)
	pod := corev1ac.PodSpec().
		WithServiceAccountName(inventory.RunnerAccount.Name(r.name)).
		WithImagePullSecrets(r.imagePullSecrets()...).
		WithSecurityContext(r.podSecurity(nil)).
		WithTerminationGracePeriodSeconds(terminationGraceSeconds).
		WithVolumes(volumes...).
		WithContainers(r.proxyContainer(mounts))
	r.schedule(pod)
	return corev1ac.PodTemplateSpec().
		WithLabels(withOperatorKeys(overrides.Labels, selector)).
		WithAnnotations(withOperatorKeys(overrides.Annotations, annotations)).
		WithSpec(pod)
}

func (r *renderer) proxyContainer(mounts []*corev1ac.VolumeMountApplyConfiguration) *corev1ac.ContainerApplyConfiguration {
	probe := func() *corev1ac.ProbeApplyConfiguration {
		return corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().
			WithPath(healthPath).WithPort(intstr.FromString(proxyPortName)))
	}
	container := corev1ac.Container().
		WithName(workload.ProxyContainer).
		WithImage(r.runnerImage()).
		WithArgs("run", r.server.Spec.Image).
		WithEnv(r.proxyEnv()...).
		WithPorts(corev1ac.ContainerPort().
			WithName(proxyPortName).WithContainerPort(r.proxyPort).WithProtocol("TCP")).
		WithSecurityContext(r.containerSecurity(nil)).
		WithVolumeMounts(mounts...).
		WithStartupProbe(probe().WithPeriodSeconds(5).WithTimeoutSeconds(3).WithFailureThreshold(18)).
		WithLivenessProbe(probe().WithInitialDelaySeconds(30).
			WithPeriodSeconds(10).WithTimeoutSeconds(5).WithFailureThreshold(3)).
		WithReadinessProbe(probe().WithInitialDelaySeconds(5).
			WithPeriodSeconds(5).WithTimeoutSeconds(3).WithFailureThreshold(3))
	if !r.stdio() {
		container.WithLifecycle(corev1ac.Lifecycle().WithPreStop(corev1ac.LifecycleHandler().
			WithSleep(corev1ac.SleepAction().WithSeconds(drainSeconds))))
	}
	r.resources = r.proxyResources()
	container.Resources = r.resources
	return container
}

// proxyEnv returns what references ask for and the user may replace, the user's environment, then what steers the proxy and wins, then
// what the user may replace.
func (r *renderer) proxyEnv() []*corev1ac.EnvVarApplyConfiguration {
	vars := slices.Clone(r.proxy.firstEnv)
	if d := r.proxyOverrides(); d != nil {
		vars = append(vars, variables(sourceProxyEnv, envValues(d.Env)...)...)
	}
	if secret, key := r.redisPassword(); secret != "" {
		vars = append(vars, variables(sourceRedisSecrets, envSecret(envRedisPassword, secret, key))...)
	}
	set := func(name, value string) {
		vars = append(vars, variables(sourceOperator, envValue(name, value))...)
	}
	set(envGeneration, strconv.Itoa(runconfig.Generation))
	vars = append(vars, r.proxy.lastEnv...)

	present := map[string]bool{}
	secrets := false
	for _, v := range vars {
		present[*v.config.Name] = true
		secrets = secrets || strings.HasPrefix(*v.config.Name, secretEnvPrefix)
	}
	setIfAbsent := func(name, value string) {
		if !present[name] {
			set(name, value)
		}
	}
	setIfAbsent("XDG_CONFIG_HOME", "/tmp")
	setIfAbsent("HOME", "/tmp")
	setIfAbsent("TOOLHIVE_RUNTIME", "kubernetes")
	setIfAbsent("UNSTRUCTURED_LOGS", "false")
	if secrets {
		// No other provider reads secrets from variables.
		set(envSecretProvider, "environment")
	}
	// Without it the runner asks the API server for OpenShift's routes, which its Role does not let it see
	// and which the operator has found out already.
	setIfAbsent(envOpenShift, strconv.FormatBool(r.opts.OpenShift))
	if r.opts.NoUsageMetrics {
		// The runner makes its chain of middlewares by itself, and reports where nothing in its own environment says otherwise.
		setIfAbsent(EnvUsageMetrics, "false")
	}
	return r.mergeEnv("proxy", vars)
}

// proxyOverrides returns the additions to the proxy's Deployment; nil when there are none.
func (r *renderer) proxyOverrides() *v1beta1.ProxyDeploymentOverrides {
	if o := r.server.Spec.ResourceOverrides; o != nil {
		return o.ProxyDeployment
	}
	return nil
}
