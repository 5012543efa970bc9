// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/vocabulary"
	"github.com/freehold-dev/freehold/pkg/render"
)

// Where deploy/ puts the operator.
const (
	// DefaultOperator is the operator's Deployment, as NAMESPACE/NAME.
	DefaultOperator = "freehold-system/freehold"
	// operatorContainer is its container.
	operatorContainer = "freehold"
)

// ErrNoOperator tells that the operator's Deployment is not there, or may not be read.
var ErrNoOperator = errors.New("the operator's Deployment cannot be read")

// OperatorOptions reads the settings of the operator that have a part in what it writes from its Deployment, which is
// named as NAMESPACE/NAME. The arguments go before what the Deployment says. Without a Deployment the error is
// ErrNoOperator, and the options are the defaults with the arguments.
func (c *Client) OperatorOptions(deployment string, args []string) (render.Options, error) {
	settings := settings{}
	namespace, name, _ := strings.Cut(deployment, "/")
	object, err := c.Get(ref(vocabulary.Deployment, namespace, name))
	var missing error
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		missing = fmt.Errorf("%w: %w", ErrNoOperator, err)
	case err != nil:
		return render.Options{}, err
	default:
		found := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, found); err != nil {
			return render.Options{}, fmt.Errorf("the operator's Deployment cannot be read: %w", err)
		}
		settings = settingsOf(found)
	}
	options, err := settings.options(args, c.isOpenShift)
	if err != nil {
		return options, err
	}
	return options, missing
}

// isOpenShift tells, as the operator does, whether this is OpenShift.
func (c *Client) isOpenShift() (bool, error) {
	discovery, err := c.getter.ToDiscoveryClient()
	if err != nil {
		return false, err
	}
	groups, err := discovery.ServerGroups()
	if err != nil {
		return false, err
	}
	for _, group := range groups.Groups {
		if group.Name == "route.openshift.io" {
			return true, nil
		}
	}
	return false, nil
}

// settings are the arguments and the environment of an operator.
type settings struct {
	args []string
	env  map[string]string
}

func settingsOf(deployment *appsv1.Deployment) settings {
	s := settings{env: map[string]string{}}
	containers := deployment.Spec.Template.Spec.Containers
	for i := range containers {
		if containers[i].Name != operatorContainer && len(containers) > 1 {
			continue
		}
		s.args = append(append(s.args, containers[i].Command...), containers[i].Args...)
		for _, variable := range containers[i].Env {
			s.env[variable.Name] = variable.Value
		}
	}
	return s
}

// options reads the settings as the operator does: an argument goes before the environment.
func (s settings) options(more []string, isOpenShift func() (bool, error)) (render.Options, error) {
	var (
		o                    render.Options
		redis, secret, key   string
		platform, pullSecret string
	)
	get := func(name, fallback string) string {
		if value := s.env[name]; value != "" {
			return value
		}
		return fallback
	}
	platform = "auto"
	if value, ok := s.env["OPERATOR_OPENSHIFT"]; ok {
		platform = fmt.Sprint(strings.EqualFold(value, "true"))
	}
	flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	// The operator has other flags as well.
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.StringVar(&o.RunnerImage, "runner-image", get("TOOLHIVE_RUNNER_IMAGE", render.DefaultRunnerImage), "")
	flags.StringVar(&o.ProxyHost, "proxy-host", get("TOOLHIVE_PROXY_HOST", ""), "")
	flags.StringVar(&pullSecret, "default-image-pull-secrets", get("TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS", ""), "")
	flags.StringVar(&redis, "default-redis-address", get("TOOLHIVE_DEFAULT_REDIS_ADDR", ""), "")
	flags.StringVar(&secret, "default-redis-secret-name", get("TOOLHIVE_DEFAULT_REDIS_SECRET_NAME", ""), "")
	flags.StringVar(&key, "default-redis-secret-key", get("TOOLHIVE_DEFAULT_REDIS_SECRET_KEY", "redis-password"), "")
	flags.StringVar(&platform, "openshift", platform, "")
	if err := flags.Parse(append(slices.Clip(s.args), more...)); err != nil {
		return o, fmt.Errorf("the operator's arguments: %w", err)
	}
	for name := range strings.SplitSeq(pullSecret, ",") {
		if name = strings.TrimSpace(name); name != "" {
			o.ImagePullSecrets = append(o.ImagePullSecrets, name)
		}
	}
	if redis != "" {
		o.DefaultRedis = &render.Redis{Address: redis}
		if secret != "" {
			o.DefaultRedis.PasswordSecret, o.DefaultRedis.PasswordKey = secret, key
		}
	}
	switch platform {
	case "auto":
		openshift, err := isOpenShift()
		if err != nil {
			return o, fmt.Errorf("cannot tell whether this is OpenShift: %w", err)
		}
		o.OpenShift = openshift
	default:
		o.OpenShift = platform == "true"
	}
	return o, nil
}
