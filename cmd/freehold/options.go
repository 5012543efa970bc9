// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configcontroller"
	"github.com/freehold-dev/freehold/pkg/controller"
	"github.com/freehold-dev/freehold/pkg/settings"
)

// namespaceFile holds the namespace of the pod that the operator runs in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// maxSamplingRate makes a trace of every pass.
const maxSamplingRate = 1_000_000

const (
	// shortestResync is that of client-go's event handlers. Its reflectors take any other period but 0, and do nothing else when it is
	// negative.
	shortestResync = time.Second
	// shortestLease is the shortest one that the API server accepts: a Lease has whole seconds.
	shortestLease = time.Second
)

// options are the operator's settings. Where ToolHive's operator reads a setting from the environment, so does
// this one, under the same name; a flag goes before the environment.
type options struct {
	kubeconfig     string
	namespaces     []string
	selector       string
	rendering      settings.Rendering
	workers        int
	takeover       string
	takeovers      int
	configRollouts int
	configs        string
	resync         time.Duration
	// qps and burst limit the requests of each client; without limit when qps is negative.
	qps            float32
	burst          int
	healthAddress  string
	metricsAddress string
	// metricsSecure turns on TLS and permissions; metricsCertificates is the directory of the certificate, "" for none.
	metricsSecure       bool
	metricsCertificates string
	// tracingEndpoint is host:port of the collector of traces, "" for none; tracingSamplingRate is of a million.
	tracingEndpoint     string
	tracingSamplingRate int32

	leaderElect    bool
	leaseName      string
	leaseNamespace string
	leaseDuration  time.Duration
	renewDeadline  time.Duration
	retryPeriod    time.Duration
}

// newOptions returns the defaults, overlaid by the environment.
func newOptions(env settings.Environment) *options {
	return &options{
		namespaces:     settings.List(env.Get("WATCH_NAMESPACE", "")),
		rendering:      *settings.New(env),
		workers:        controller.DefaultWorkers,
		takeover:       string(controller.TakeoverAuto),
		takeovers:      controller.DefaultTakeoversAtOnce,
		configRollouts: controller.DefaultConfigRolloutsAtOnce,
		configs:        string(configcontroller.ConfigsAuto),
		resync:         10 * time.Hour,
		qps:            -1,
		healthAddress:  ":8081",
		metricsAddress: ":8080",

		tracingSamplingRate: maxSamplingRate,

		leaderElect:    true,
		leaseNamespace: env.Get("POD_NAMESPACE", ""),
		leaseDuration:  15 * time.Second,
		renewDeadline:  10 * time.Second,
		retryPeriod:    2 * time.Second,
	}
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", o.kubeconfig,
		"Path of a kubeconfig; empty uses the pod's ServiceAccount.")
	flags.StringSliceVar(&o.namespaces, "watch-namespaces", o.namespaces,
		"Namespaces to watch; empty watches all. Environment: WATCH_NAMESPACE.")
	flags.StringVar(&o.selector, "mcpserver-selector", o.selector,
		"Reconcile only MCPServers with these labels, such as shard=a or 'shard notin (a,b)'; empty means all.")
	o.rendering.AddFlags(flags)
	flags.IntVar(&o.workers, "workers", o.workers, "MCPServers to reconcile at a time, at most half of them in one namespace.")
	flags.StringVar(&o.takeover, "takeover", o.takeover,
		"Which MCPServers created by ToolHive to take over: auto means all, manual those with the annotation "+
			v1beta1.AnnotationTakeover+"="+v1beta1.TakeoverApproved+", off none.")
	flags.IntVar(&o.configRollouts, "config-rollouts-at-once", o.configRollouts,
		"MCPServers of a namespace to roll out at a time for a changed configuration, for each operator.")
	flags.IntVar(&o.takeovers, "takeovers-at-once", o.takeovers,
		"MCPServers of a namespace to take over at a time, for each operator.")
	flags.StringVar(&o.configs, "configs", o.configs,
		"Which operator writes the status and finalizer of MCPOIDCConfigs, other configurations and MCPGroups: freehold takes over "+
			"what ToolHive's operator holds, toolhive leaves all to it, auto what it holds. With --mcpserver-selector auto means "+
			"toolhive; one of these operators needs freehold.")
	flags.DurationVar(&o.resync, "resync-period", o.resync,
		"How often to reconcile every MCPServer anyway; 0 for never. It costs no requests.")
	flags.Float32Var(&o.qps, "kube-api-qps", o.qps,
		"Most requests a second to the API server; negative leaves the limit to its priority and fairness.")
	flags.IntVar(&o.burst, "kube-api-burst", o.burst, "Most requests in a burst; 0 for as many as --kube-api-qps.")
	flags.StringVar(&o.healthAddress, "health-probe-bind-address", o.healthAddress,
		"Address of /livez and /readyz; 0 for none.")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", o.metricsAddress,
		"Address of /metrics; 0 for none.")
	flags.BoolVar(&o.metricsSecure, "metrics-secure", o.metricsSecure,
		"Serve /metrics by TLS, only to clients that may get the path /metrics.")
	flags.StringVar(&o.metricsCertificates, "metrics-certificate-directory", o.metricsCertificates,
		"Directory of tls.crt and tls.key for secure metrics; changes need no restart. Empty means self-signed.")
	flags.StringVar(&o.tracingEndpoint, "tracing-endpoint", o.tracingEndpoint,
		"Collector of traces, as host:port, by OTLP over gRPC without TLS; empty creates none.")
	flags.Int32Var(&o.tracingSamplingRate, "tracing-sampling-rate-per-million", o.tracingSamplingRate,
		"Reconciliations to trace, of a million.")
	flags.BoolVar(&o.leaderElect, "leader-elect", o.leaderElect,
		"Work only while holding the lease, so that several replicas can run.")
	flags.StringVar(&o.leaseName, "leader-elect-resource-name", o.leaseName,
		"Name of the lease; "+defaultLease+" when empty. Operators with different selectors need different leases.")
	flags.StringVar(&o.leaseNamespace, "leader-elect-resource-namespace", o.leaseNamespace,
		"Namespace of the lease; empty means the pod's. Environment: POD_NAMESPACE.")
	flags.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", o.leaseDuration,
		"How long until other replicas take over an unrenewed lease.")
	flags.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", o.renewDeadline,
		"How long the leader tries to renew the lease.")
	flags.DurationVar(&o.retryPeriod, "leader-elect-retry-period", o.retryPeriod,
		"Wait between attempts to get or renew the lease.")
}

// defaultLease is the name of the lease of operators that work for all MCPServers.
const defaultLease = "freehold"

// selected returns the selector of the MCPServers to work for; nil for all.
func (o *options) selected() (labels.Selector, error) {
	if o.selector == "" {
		return nil, nil
	}
	return labels.Parse(o.selector)
}

func (o *options) validate() error {
	var errs []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	for _, namespace := range o.namespaces {
		reasons := validation.IsDNS1123Label(namespace)
		refuse(len(reasons) > 0, "--watch-namespaces: %q is no namespace: %s", namespace, strings.Join(reasons, "; "))
	}
	selector, err := o.selected()
	refuse(err != nil, "--mcpserver-selector: %w; give labels such as shard=a", err)
	refuse(selector != nil && o.leaderElect && o.leaseName == "", "--mcpserver-selector: needs a lease of its own, since operators with the same "+
		"lease never work at the same time; name it with --leader-elect-resource-name, and add that name to the Role of the leases")
	o.leaseName = cmp.Or(o.leaseName, defaultLease)
	if err := o.rendering.Validate(); err != nil {
		errs = append(errs, err)
	}
	refuse(o.workers < 1, "--workers: %d is less than 1", o.workers)
	switch controller.TakeoverMode(o.takeover) {
	case controller.TakeoverAuto, controller.TakeoverManual, controller.TakeoverOff:
	default:
		refuse(true, "--takeover: %q is none of auto, manual, off", o.takeover)
	}
	refuse(o.resync != 0 && o.resync < shortestResync, "--resync-period: %v is less than %v; 0 turns it off", o.resync, shortestResync)
	refuse(o.qps == 0 || o.burst < 0, "--kube-api-qps, --kube-api-burst: %v and %d: the former must not be 0, the latter not negative", o.qps, o.burst)
	refuse(o.configRollouts < 1, "--config-rollouts-at-once: %d is less than 1", o.configRollouts)
	refuse(o.takeovers < 1, "--takeovers-at-once: %d is less than 1", o.takeovers)
	switch configcontroller.ConfigsMode(o.configs) {
	case configcontroller.ConfigsAuto, configcontroller.ConfigsFreehold, configcontroller.ConfigsToolHive:
	default:
		refuse(true, "--configs: %q is none of auto, freehold, toolhive", o.configs)
	}
	for _, endpoint := range []struct{ flag, address string }{
		{"--health-probe-bind-address", o.healthAddress}, {"--metrics-bind-address", o.metricsAddress},
	} {
		_, _, err := net.SplitHostPort(endpoint.address)
		refuse(endpoint.address != "0" && err != nil, "%s: %w; give host:port, :port, or 0 to turn it off", endpoint.flag, err)
	}
	refuse(o.metricsCertificates != "" && !o.metricsSecure, "--metrics-certificate-directory: needs --metrics-secure")
	_, _, err = net.SplitHostPort(o.tracingEndpoint)
	refuse(o.tracingEndpoint != "" && err != nil, "--tracing-endpoint: %w; give host:port", err)
	refuse(o.tracingSamplingRate < 0 || o.tracingSamplingRate > maxSamplingRate,
		"--tracing-sampling-rate-per-million: %d is not between 0 and %d", o.tracingSamplingRate, maxSamplingRate)
	refuse(o.leaderElect && o.leaseDuration < shortestLease, "--leader-elect-lease-duration: %v is less than %v", o.leaseDuration, shortestLease)
	if o.leaderElect && o.leaseNamespace == "" {
		namespace, err := os.ReadFile(namespaceFile)
		refuse(err != nil, "leader election outside a pod needs --leader-elect-resource-namespace; or turn it off with --leader-elect=false")
		o.leaseNamespace = strings.TrimSpace(string(namespace))
	}
	return errors.Join(errs...)
}
