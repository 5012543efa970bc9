// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package settings has the settings of the operator that affect what it writes, as flags and as environment variables. The
// operator is started with them, and kubectl freehold reads them from the operator's Deployment.
package settings

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/bounds"
	"github.com/freehold-dev/freehold/pkg/render"
)

// Platforms that --openshift can name.
const (
	platformAuto       = "auto"
	platformOpenShift  = "true"
	platformKubernetes = "false"
)

// Rendering are the settings. Where ToolHive's operator reads one from the environment, so does Freehold's, under the same
// name; a flag goes before the environment.
type Rendering struct {
	// RunnerImage is the image of ToolHive's proxyrunner.
	RunnerImage string
	// ProxyHost is the address that the proxies listen on; empty for all.
	ProxyHost string
	// PullSecrets are added to those of each MCPServer.
	PullSecrets []string
	// RedisAddress is that of the Redis for MCPServers that name no store, as host:port; empty for none. RedisSecret and
	// RedisSecretKey locate its password; an empty RedisSecret means that it has none.
	RedisAddress, RedisSecret, RedisSecretKey string
	// RedisTLS is true or false, as strconv.ParseBool reads it: whether the proxies speak TLS with that Redis. RedisCASecret
	// and RedisCAKey name where the certificates of the authorities to trust are; both are empty for those of the proxy's
	// image.
	RedisTLS, RedisCASecret, RedisCAKey string
	// OpenShift is auto, true or false.
	OpenShift string
	// UsageMetrics is whether the proxies report usage metrics to Stacklok.
	UsageMetrics bool
	// MaxObjectSize is that of render.Options.
	MaxObjectSize int
}

// Environment looks a variable up, as os.LookupEnv does.
type Environment func(name string) (value string, ok bool)

// Get returns a variable, or a fallback where it is not set or empty.
func (e Environment) Get(name, fallback string) string {
	if value, ok := e(name); ok && value != "" {
		return value
	}
	return fallback
}

// New returns the defaults, overlaid by the environment.
func New(env Environment) *Rendering {
	r := &Rendering{
		RunnerImage:    env.Get("TOOLHIVE_RUNNER_IMAGE", render.DefaultRunnerImage),
		ProxyHost:      env.Get("TOOLHIVE_PROXY_HOST", ""),
		PullSecrets:    List(env.Get("TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS", "")),
		RedisAddress:   env.Get("TOOLHIVE_DEFAULT_REDIS_ADDR", ""),
		RedisSecret:    env.Get("TOOLHIVE_DEFAULT_REDIS_SECRET_NAME", ""),
		RedisSecretKey: env.Get("TOOLHIVE_DEFAULT_REDIS_SECRET_KEY", "redis-password"),
		RedisTLS:       env.Get("TOOLHIVE_DEFAULT_REDIS_TLS_ENABLED", "false"),
		RedisCASecret:  env.Get("TOOLHIVE_DEFAULT_REDIS_TLS_CA_SECRET_NAME", ""),
		RedisCAKey:     env.Get("TOOLHIVE_DEFAULT_REDIS_TLS_CA_SECRET_KEY", ""),
		OpenShift:      platformAuto,
		MaxObjectSize:  bounds.DefaultSize,
		// As in ToolHive: nothing but these values turns them off. The latter variable also turns ToolHive's update checks off, and
		// neither Freehold nor the proxyrunner makes any.
		UsageMetrics: env.Get(render.EnvUsageMetrics, "") != "false" &&
			!strings.EqualFold(env.Get(envSkipUpdateCheck, ""), "true"),
	}
	if value, ok := env("OPERATOR_OPENSHIFT"); ok {
		// As in ToolHive: anything but true is Kubernetes.
		r.OpenShift = platformKubernetes
		if strings.EqualFold(value, "true") {
			r.OpenShift = platformOpenShift
		}
	}
	return r
}

// AddFlags adds the flags. What is set so far is their default; a list that is given replaces it.
func (r *Rendering) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&r.RunnerImage, "runner-image", r.RunnerImage,
		"Image of ToolHive's proxyrunner. Environment: TOOLHIVE_RUNNER_IMAGE.")
	flags.StringVar(&r.ProxyHost, "proxy-host", r.ProxyHost,
		"IP address that the proxies listen on, or localhost; empty means 0.0.0.0. Environment: TOOLHIVE_PROXY_HOST.")
	flags.StringSliceVar(&r.PullSecrets, "default-image-pull-secrets", r.PullSecrets,
		"Image pull secrets added to those of each MCPServer. Environment: TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS.")
	flags.StringVar(&r.RedisAddress, "default-redis-address", r.RedisAddress,
		"Redis, as host:port, for the sessions of MCPServers that name no store. Environment: TOOLHIVE_DEFAULT_REDIS_ADDR.")
	flags.StringVar(&r.RedisSecret, "default-redis-secret-name", r.RedisSecret,
		"Secret, in each MCPServer's namespace, with the password of that Redis. Environment: TOOLHIVE_DEFAULT_REDIS_SECRET_NAME.")
	flags.StringVar(&r.RedisSecretKey, "default-redis-secret-key", r.RedisSecretKey,
		"Key of the password in that Secret. Environment: TOOLHIVE_DEFAULT_REDIS_SECRET_KEY.")
	flags.StringVar(&r.RedisTLS, "default-redis-tls", r.RedisTLS,
		"Whether the proxies use TLS with that Redis. Environment: TOOLHIVE_DEFAULT_REDIS_TLS_ENABLED.")
	flags.Lookup("default-redis-tls").NoOptDefVal = "true"
	flags.StringVar(&r.RedisCASecret, "default-redis-tls-ca-secret-name", r.RedisCASecret,
		"Secret, in each MCPServer's namespace, with that Redis's certificate authorities; empty trusts those of the proxy's image. "+
			"Environment: TOOLHIVE_DEFAULT_REDIS_TLS_CA_SECRET_NAME.")
	flags.StringVar(&r.RedisCAKey, "default-redis-tls-ca-secret-key", r.RedisCAKey,
		"Key of the certificates in that Secret. Environment: TOOLHIVE_DEFAULT_REDIS_TLS_CA_SECRET_KEY.")
	flags.StringVar(&r.OpenShift, "openshift", r.OpenShift,
		"Whether the cluster assigns user ids: auto, true or false. Environment: OPERATOR_OPENSHIFT.")
	flags.BoolVar(&r.UsageMetrics, "usage-metrics", r.UsageMetrics,
		"Whether the proxies report usage metrics to Stacklok. Environment: TOOLHIVE_USAGE_METRICS_ENABLED=false or "+
			"TOOLHIVE_SKIP_UPDATE_CHECK=true turns it off.")
	flags.IntVar(&r.MaxObjectSize, "max-object-size", r.MaxObjectSize,
		"Largest spec of an MCPServer or a configuration, in bytes; a referenced ConfigMap may have twice that. Larger objects are "+
			"refused as TooLarge and not kept in memory.")
}

// Validate returns an error that names each invalid setting by its flag.
func (r *Rendering) Validate() error {
	var errs []error
	switch r.OpenShift {
	case platformAuto, platformOpenShift, platformKubernetes:
	default:
		errs = append(errs, fmt.Errorf("--openshift is %q; give auto, true or false", r.OpenShift))
	}
	if _, err := r.proxyHost(); err != nil {
		errs = append(errs, fmt.Errorf("--proxy-host: %w; give an IP address, or localhost", err))
	}
	if r.MaxObjectSize < 0 {
		errs = append(errs, fmt.Errorf("--max-object-size: %d is less than 0", r.MaxObjectSize))
	}
	if r.RedisAddress != "" {
		if _, _, err := net.SplitHostPort(r.RedisAddress); err != nil {
			errs = append(errs, fmt.Errorf("--default-redis-address: %w; give host:port", err))
		}
	}
	return errors.Join(append(errs, r.validateRedisTLS())...)
}

// validateRedisTLS refuses settings with which ToolHive's operator refuses to start.
func (r *Rendering) validateRedisTLS() error {
	tls, err := strconv.ParseBool(r.RedisTLS)
	switch {
	case err != nil:
		return fmt.Errorf("--default-redis-tls: %q is neither true nor false", r.RedisTLS)
	case (r.RedisCASecret == "") != (r.RedisCAKey == ""):
		return errors.New("--default-redis-tls-ca-secret-name and --default-redis-tls-ca-secret-key need each other")
	case r.RedisCASecret != "" && !tls:
		return errors.New("--default-redis-tls-ca-secret-name needs --default-redis-tls")
	case tls && r.RedisAddress == "":
		return errors.New("--default-redis-tls needs --default-redis-address")
	}
	return nil
}

// proxyHost returns the address on which the proxies listen. The proxyrunner appends a colon and the port, so IPv6 needs brackets.
func (r *Rendering) proxyHost() (string, error) {
	if r.ProxyHost == "" || r.ProxyHost == "localhost" {
		return r.ProxyHost, nil
	}
	host := r.ProxyHost
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	address, err := netip.ParseAddr(host)
	if err == nil && address.Is6() {
		return "[" + address.String() + "]", nil
	}
	return address.String(), err
}

// Options returns the settings, which are valid, as the renderer takes them.
func (r *Rendering) Options(openshift bool) render.Options {
	host, _ := r.proxyHost()
	options := render.Options{
		RunnerImage: r.RunnerImage, ProxyHost: host, ImagePullSecrets: r.PullSecrets, OpenShift: openshift,
		NoUsageMetrics: !r.UsageMetrics, MaxObjectSize: r.MaxObjectSize,
	}
	if r.RedisAddress != "" {
		options.DefaultRedis = &render.Redis{Address: r.RedisAddress, CASecret: r.RedisCASecret, CAKey: r.RedisCAKey}
		options.DefaultRedis.TLS, _ = strconv.ParseBool(r.RedisTLS)
		if r.RedisSecret != "" {
			options.DefaultRedis.PasswordSecret, options.DefaultRedis.PasswordKey = r.RedisSecret, r.RedisSecretKey
		}
	}
	return options
}

// IsOpenShift reports whether user ids are the platform's to assign. Groups asks the API server for its API groups, and is
// called only where the setting is auto. Like ToolHive's operator this takes the group of OpenShift's routes for the sign;
// unlike it, it does not guess when the API server cannot answer.
func (r *Rendering) IsOpenShift(groups func() (*metav1.APIGroupList, error)) (bool, error) {
	if r.OpenShift != platformAuto {
		return r.OpenShift == platformOpenShift, nil
	}
	list, err := groups()
	if err != nil {
		return false, fmt.Errorf("cannot tell whether this is OpenShift: %w; set --openshift to true or false", err)
	}
	return slices.ContainsFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == "route.openshift.io" }), nil
}

// List takes a list apart that is written with commas, blanks around its items, and empty items.
func List(text string) []string {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}
