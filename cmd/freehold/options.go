// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/freehold-dev/freehold/pkg/controller"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/vocabulary"
	"github.com/freehold-dev/freehold/pkg/render"
)

// Platforms that --openshift can name.
const (
	platformAuto       = "auto"
	platformOpenShift  = "true"
	platformKubernetes = "false"
)

// namespaceFile holds the namespace of the pod that the operator runs in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// maxSamplingRate makes a trace of every pass.
const maxSamplingRate = 1_000_000

// options are the operator's settings. Where ToolHive's operator reads a setting from the environment, so does
// this one, under the same name; a flag goes before the environment.
type options struct {
	kubeconfig     string
	namespaces     []string
	runnerImage    string
	proxyHost      string
	pullSecrets    []string
	redisAddress   string
	redisSecret    string
	redisSecretKey string
	openshift      string
	workers        int
	takeover       string
	takeovers      int
	resync         time.Duration
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
func newOptions(env func(string) (string, bool)) *options {
	get := func(name, fallback string) string {
		if value, ok := env(name); ok && value != "" {
			return value
		}
		return fallback
	}
	o := &options{
		namespaces:     splitList(get("WATCH_NAMESPACE", "")),
		runnerImage:    get("TOOLHIVE_RUNNER_IMAGE", render.DefaultRunnerImage),
		proxyHost:      get("TOOLHIVE_PROXY_HOST", ""),
		pullSecrets:    splitList(get("TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS", "")),
		redisAddress:   get("TOOLHIVE_DEFAULT_REDIS_ADDR", ""),
		redisSecret:    get("TOOLHIVE_DEFAULT_REDIS_SECRET_NAME", ""),
		redisSecretKey: get("TOOLHIVE_DEFAULT_REDIS_SECRET_KEY", "redis-password"),
		openshift:      platformAuto,
		workers:        controller.DefaultWorkers,
		takeover:       string(controller.TakeoverAuto),
		takeovers:      controller.DefaultTakeoversAtOnce,
		resync:         10 * time.Hour,
		healthAddress:  ":8081",
		metricsAddress: ":8080",

		tracingSamplingRate: maxSamplingRate,

		leaderElect:    true,
		leaseName:      "freehold",
		leaseNamespace: get("POD_NAMESPACE", ""),
		leaseDuration:  15 * time.Second,
		renewDeadline:  10 * time.Second,
		retryPeriod:    2 * time.Second,
	}
	if value, ok := env("OPERATOR_OPENSHIFT"); ok {
		// As in ToolHive: anything but true is Kubernetes.
		o.openshift = platformKubernetes
		if strings.EqualFold(value, "true") {
			o.openshift = platformOpenShift
		}
	}
	return o
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", o.kubeconfig,
		"Path of a kubeconfig. Empty uses the pod's own ServiceAccount.")
	flags.StringSliceVar(&o.namespaces, "watch-namespaces", o.namespaces,
		"Namespaces to watch; empty watches all. Environment: WATCH_NAMESPACE.")
	flags.StringVar(&o.runnerImage, "runner-image", o.runnerImage,
		"Image of ToolHive's proxyrunner. Environment: TOOLHIVE_RUNNER_IMAGE.")
	flags.StringVar(&o.proxyHost, "proxy-host", o.proxyHost,
		"Address that the proxies listen on; empty means 0.0.0.0. Environment: TOOLHIVE_PROXY_HOST.")
	flags.StringSliceVar(&o.pullSecrets, "default-image-pull-secrets", o.pullSecrets,
		"Image pull secrets added to those of each MCPServer. Environment: TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS.")
	flags.StringVar(&o.redisAddress, "default-redis-address", o.redisAddress,
		"Redis, as host:port, for the sessions of MCPServers that name no store. Environment: TOOLHIVE_DEFAULT_REDIS_ADDR.")
	flags.StringVar(&o.redisSecret, "default-redis-secret-name", o.redisSecret,
		"Secret, in each MCPServer's namespace, with the password of that Redis. Environment: TOOLHIVE_DEFAULT_REDIS_SECRET_NAME.")
	flags.StringVar(&o.redisSecretKey, "default-redis-secret-key", o.redisSecretKey,
		"Key of the password in that Secret. Environment: TOOLHIVE_DEFAULT_REDIS_SECRET_KEY.")
	flags.StringVar(&o.openshift, "openshift", o.openshift,
		"Whether the cluster assigns user ids by itself: auto, true or false. Environment: OPERATOR_OPENSHIFT.")
	flags.IntVar(&o.workers, "workers", o.workers, "How many MCPServers are worked on at a time.")
	flags.StringVar(&o.takeover, "takeover", o.takeover,
		"What becomes of MCPServers that ToolHive has made: auto takes them over, manual those with the annotation "+
			vocabulary.Takeover+"="+vocabulary.TakeoverApproved+", off none.")
	flags.IntVar(&o.takeovers, "takeovers-at-once", o.takeovers,
		"How many MCPServers of a namespace are taken over at a time.")
	flags.DurationVar(&o.resync, "resync-period", o.resync,
		"How often every MCPServer is looked at without a cause; 0 for never. It costs no requests.")
	flags.StringVar(&o.healthAddress, "health-probe-bind-address", o.healthAddress,
		"Address of /livez and /readyz; 0 turns them off.")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", o.metricsAddress,
		"Address of /metrics; 0 turns it off.")
	flags.BoolVar(&o.metricsSecure, "metrics-secure", o.metricsSecure,
		"Serve /metrics by TLS, and only to those whom the API server lets get the path /metrics.")
	flags.StringVar(&o.metricsCertificates, "metrics-certificate-directory", o.metricsCertificates,
		"Directory of the certificate for secure metrics, in tls.crt and tls.key; changes are noticed. Empty means a self-signed one.")
	flags.StringVar(&o.tracingEndpoint, "tracing-endpoint", o.tracingEndpoint,
		"Where traces are sent to, as host:port: a collector that takes OTLP over gRPC, without TLS. Empty makes no traces.")
	flags.Int32Var(&o.tracingSamplingRate, "tracing-sampling-rate-per-million", o.tracingSamplingRate,
		"Of how many in a million passes over an MCPServer a trace is made.")
	flags.BoolVar(&o.leaderElect, "leader-elect", o.leaderElect,
		"Work only while holding the lease, so that several replicas can run.")
	flags.StringVar(&o.leaseName, "leader-elect-resource-name", o.leaseName, "Name of the lease.")
	flags.StringVar(&o.leaseNamespace, "leader-elect-resource-namespace", o.leaseNamespace,
		"Namespace of the lease; empty means the pod's own. Environment: POD_NAMESPACE.")
	flags.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", o.leaseDuration,
		"How long others wait before they take over a lease that is not renewed.")
	flags.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", o.renewDeadline,
		"How long the leader tries to renew before it gives up.")
	flags.DurationVar(&o.retryPeriod, "leader-elect-retry-period", o.retryPeriod,
		"How long to wait between two attempts to get or renew the lease.")
}

func (o *options) validate() error {
	var errs []error
	for _, namespace := range o.namespaces {
		if reasons := validation.IsDNS1123Label(namespace); len(reasons) > 0 {
			errs = append(errs, fmt.Errorf("--watch-namespaces: %q is no namespace: %s", namespace, strings.Join(reasons, "; ")))
		}
	}
	switch o.openshift {
	case platformAuto, platformOpenShift, platformKubernetes:
	default:
		errs = append(errs, fmt.Errorf("--openshift: %q is none of auto, true, false", o.openshift))
	}
	if o.workers < 1 {
		errs = append(errs, fmt.Errorf("--workers: %d is less than 1", o.workers))
	}
	switch controller.TakeoverMode(o.takeover) {
	case controller.TakeoverAuto, controller.TakeoverManual, controller.TakeoverOff:
	default:
		errs = append(errs, fmt.Errorf("--takeover: %q is none of auto, manual, off", o.takeover))
	}
	if o.takeovers < 1 {
		errs = append(errs, fmt.Errorf("--takeovers-at-once: %d is less than 1", o.takeovers))
	}
	if o.redisAddress != "" {
		if _, _, err := net.SplitHostPort(o.redisAddress); err != nil {
			errs = append(errs, fmt.Errorf("--default-redis-address: %w; give host:port", err))
		}
	}
	for _, endpoint := range []struct{ flag, address string }{
		{"--health-probe-bind-address", o.healthAddress}, {"--metrics-bind-address", o.metricsAddress},
	} {
		if endpoint.address == "0" {
			continue
		}
		if _, _, err := net.SplitHostPort(endpoint.address); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w; give host:port, :port, or 0 to turn it off", endpoint.flag, err))
		}
	}
	if o.metricsCertificates != "" && !o.metricsSecure {
		errs = append(errs, errors.New("--metrics-certificate-directory: needs --metrics-secure"))
	}
	if o.tracingEndpoint != "" {
		if _, _, err := net.SplitHostPort(o.tracingEndpoint); err != nil {
			errs = append(errs, fmt.Errorf("--tracing-endpoint: %w; give host:port", err))
		}
	}
	if o.tracingSamplingRate < 0 || o.tracingSamplingRate > maxSamplingRate {
		errs = append(errs, fmt.Errorf("--tracing-sampling-rate-per-million: %d is not between 0 and %d",
			o.tracingSamplingRate, maxSamplingRate))
	}
	if o.leaderElect && o.leaseNamespace == "" {
		namespace, err := os.ReadFile(namespaceFile)
		if err != nil {
			errs = append(errs, errors.New("leader election outside a pod needs --leader-elect-resource-namespace; or turn it off with --leader-elect=false"))
		}
		o.leaseNamespace = strings.TrimSpace(string(namespace))
	}
	return errors.Join(errs...)
}

// rendering returns the settings that have a part in what is rendered.
func (o *options) rendering(openshift bool) render.Options {
	options := render.Options{
		RunnerImage: o.runnerImage, ProxyHost: o.proxyHost, ImagePullSecrets: o.pullSecrets, OpenShift: openshift,
	}
	if o.redisAddress != "" {
		options.DefaultRedis = &render.Redis{Address: o.redisAddress}
		if o.redisSecret != "" {
			options.DefaultRedis.PasswordSecret, options.DefaultRedis.PasswordKey = o.redisSecret, o.redisSecretKey
		}
	}
	return options
}

func splitList(text string) []string {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}
