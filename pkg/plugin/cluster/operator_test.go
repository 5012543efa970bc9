// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/freehold-dev/freehold/pkg/render"
)

func operatorWith(env map[string]string, args ...string) settings {
	container := corev1.Container{Name: operatorContainer, Args: args}
	for name, value := range env {
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
	}
	deployment := &appsv1.Deployment{}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "sidecar", Args: []string{"--runner-image=not-this"}}, container}
	return settingsOf(deployment)
}

func TestOperatorOptions(t *testing.T) {
	type environment = map[string]string
	for name, test := range map[string]struct {
		settings  settings
		more      []string
		openshift bool
		want      render.Options
	}{
		"none": {want: render.Options{RunnerImage: render.DefaultRunnerImage}},
		"arguments before the environment": {
			settings: operatorWith(environment{"TOOLHIVE_RUNNER_IMAGE": "env", "TOOLHIVE_PROXY_HOST": "::"}, "--leader-elect=true", "--runner-image=arg", "-v=2"),
			want:     render.Options{RunnerImage: "arg", ProxyHost: "::"},
		},
		"the user's before both": {
			settings: operatorWith(nil, "--runner-image=arg"), more: []string{"--runner-image=mine"},
			want: render.Options{RunnerImage: "mine"},
		},
		"everything": {
			settings: operatorWith(environment{"TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS": "a, b", "OPERATOR_OPENSHIFT": "TRUE"},
				"--default-redis-address=r:1", "--default-redis-secret-name=s"),
			want: render.Options{
				RunnerImage: render.DefaultRunnerImage, ImagePullSecrets: []string{"a", "b"}, OpenShift: true,
				DefaultRedis: &render.Redis{Address: "r:1", PasswordSecret: "s", PasswordKey: "redis-password"},
			},
		},
		"the platform is looked up": {openshift: true, want: render.Options{RunnerImage: render.DefaultRunnerImage, OpenShift: true}},
		"the platform is given": {
			settings: operatorWith(nil, "--openshift=false"), openshift: true,
			want: render.Options{RunnerImage: render.DefaultRunnerImage},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.settings.options(test.more, func() (bool, error) { return test.openshift, nil })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOperatorOptionsWithoutAnAnswer(t *testing.T) {
	broken := errors.New("broken")
	if _, err := (settings{}).options(nil, func() (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}
