// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/pkg/bounds"
	"github.com/freehold-dev/freehold/pkg/render"
)

func operatorWith(env map[string]string, args ...string) invocation {
	container := corev1.Container{Name: operatorContainer, Args: args}
	for name, value := range env {
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
	}
	deployment := &appsv1.Deployment{}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "sidecar", Args: []string{"--runner-image=not-this"}}, container}
	return invocationOf("own", &deployment.Spec.Template.Spec)
}

func TestSettingsComeFromArgumentsAndTheEnvironment(t *testing.T) {
	type environment = map[string]string
	for name, test := range map[string]struct {
		operator  invocation
		more      []string
		openshift bool
		want      render.Options
		leaves    bool
		scope     Scope
	}{
		"none": {want: render.Options{RunnerImage: render.DefaultRunnerImage}},
		"arguments before the environment": {
			operator: operatorWith(environment{"TOOLHIVE_RUNNER_IMAGE": "env", "TOOLHIVE_PROXY_HOST": "::"}, "--leader-elect=true", "--runner-image=arg", "-v=2"),
			want:     render.Options{RunnerImage: "arg", ProxyHost: "[::]"},
		},
		"the user's before both": {
			operator: operatorWith(nil, "--runner-image=arg"), more: []string{"--runner-image=mine"},
			want: render.Options{RunnerImage: "mine"},
		},
		"everything": {
			operator: operatorWith(environment{"TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS": "a, b", "OPERATOR_OPENSHIFT": "TRUE", "TOOLHIVE_SKIP_UPDATE_CHECK": "true"},
				"--default-redis-address=r:1", "--default-redis-secret-name=s"),
			want: render.Options{
				RunnerImage: render.DefaultRunnerImage, ImagePullSecrets: []string{"a", "b"}, OpenShift: true, NoUsageMetrics: true,
				DefaultRedis: &render.Redis{Address: "r:1", PasswordSecret: "s", PasswordKey: "redis-password"},
			},
		},
		"lists": {
			operator: operatorWith(nil, "--default-image-pull-secrets=a,b", "--workers", "3", "--leader-elect"), more: []string{"--default-image-pull-secrets=c"},
			want: render.Options{RunnerImage: render.DefaultRunnerImage, ImagePullSecrets: []string{"c"}},
		},
		"configs are left to ToolHive": {
			operator: operatorWith(nil, "--configs", "toolhive"), leaves: true, want: render.Options{RunnerImage: render.DefaultRunnerImage},
		},
		"configs are left to the operator of other MCPServers": {
			operator: operatorWith(nil, "--mcpserver-selector=shard=a"), leaves: true, scope: Scope{Selector: "shard=a"}, want: render.Options{RunnerImage: render.DefaultRunnerImage},
		},
		"one of several operators has the configs": {
			operator: operatorWith(nil, "--mcpserver-selector=shard=a", "--configs=freehold"), scope: Scope{Selector: "shard=a"},
			want: render.Options{RunnerImage: render.DefaultRunnerImage},
		},
		"configs are not, says the user": {
			operator: operatorWith(nil, "--configs=toolhive"), more: []string{"--configs=auto"}, want: render.Options{RunnerImage: render.DefaultRunnerImage},
		},
		"the platform is looked up": {openshift: true, want: render.Options{RunnerImage: render.DefaultRunnerImage, OpenShift: true}},
		"the platform is given": {
			operator: operatorWith(nil, "--openshift=false"), openshift: true,
			want: render.Options{RunnerImage: render.DefaultRunnerImage},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.operator.settings(test.more, func() (*metav1.APIGroupList, error) {
				groups := &metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "apps"}}}
				if test.openshift {
					groups.Groups = append(groups.Groups, metav1.APIGroup{Name: "route.openshift.io"})
				}
				return groups, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			test.want.MaxObjectSize = bounds.DefaultSize
			if diff := cmp.Diff(Settings{Options: test.want, Scope: test.scope, LeavesConfigs: test.leaves}, got); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

// Without a Deployment the settings are those that install.yaml gives the operator, and the user's arguments go before them.
func TestWithoutADeploymentItsSettingsAreAssumed(t *testing.T) {
	assumed, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	container := assumed.Spec.Template.Spec.Containers[0]
	if !slices.Contains(container.Args, "--leader-elect=true") || container.Name != operatorContainer {
		t.Fatalf("this is not the operator's container: %+v", container)
	}
	at := slices.IndexFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == "TOOLHIVE_RUNNER_IMAGE" })
	if at < 0 {
		t.Fatalf("install.yaml names no proxyrunner: %v", container.Env)
	}
	groups := func() (*metav1.APIGroupList, error) { return &metav1.APIGroupList{}, nil }
	for want, args := range map[string][]string{container.Env[at].Value: nil, "mine": {"--runner-image=mine"}} {
		got, err := invocationOf("own", &assumed.Spec.Template.Spec).settings(args, groups)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Settings{Options: render.Options{RunnerImage: want, MaxObjectSize: bounds.DefaultSize}}, got); diff != "" {
			t.Errorf("with %q (-want +got):\n%s", args, diff)
		}
	}
	// What install.yaml sets is read, and not what the code would set by itself.
	assumed.Spec.Template.Spec.Containers[0].Args = append(slices.Clone(container.Args), "--proxy-host=::1")
	if got, err := invocationOf("own", &assumed.Spec.Template.Spec).settings(nil, groups); err != nil || got.ProxyHost != "[::1]" {
		t.Errorf("settings %+v, %v", got, err)
	}
}

func TestWrongSettingsNameTheirFlag(t *testing.T) {
	for _, argument := range []string{"--openshift=maybe", "--default-redis-address=redis", "--mcpserver-selector=shard in"} {
		flag, _, _ := strings.Cut(argument, "=")
		if _, err := operatorWith(nil, argument).settings(nil, nil); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: error %v", argument, err)
		}
	}
}

// What the plugin's user misspells is refused, and not ignored like the operator's other flags.
func TestMisspeltArgumentsOfTheUserAreRefused(t *testing.T) {
	for argument, known := range map[string]bool{
		"--runner-image=example.com/runner:1": true, "--runer-image=example.com/runner:1": false,
		"runner-image=example.com/runner:1": false, "--leader-elect=false": false,
	} {
		_, err := operatorWith(nil, "--leader-elect=false", "--openshift=false").settings([]string{argument}, nil)
		if known != (err == nil) || err != nil && !strings.Contains(err.Error(), "--operator-arg") {
			t.Errorf("%s: error %v", argument, err)
		}
	}
}

func TestSettingsWithoutAnAnswerAreAnError(t *testing.T) {
	broken := errors.New("broken")
	if _, err := (invocation{}).settings(nil, func() (*metav1.APIGroupList, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}
