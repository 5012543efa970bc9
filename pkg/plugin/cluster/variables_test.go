// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// variablesOf returns variables with values, in order: NAME=VALUE, or NAME and the path of a field of the pod, as NAME@PATH. NAME alone is
// a variable from a ConfigMap.
func variablesOf(texts ...string) (all []corev1.EnvVar) {
	for _, text := range texts {
		if name, value, ok := strings.Cut(text, "="); ok {
			all = append(all, corev1.EnvVar{Name: name, Value: value})
			continue
		}
		name, path, ofPod := strings.Cut(text, "@")
		source := &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "key"}}
		if ofPod {
			source = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
		}
		all = append(all, corev1.EnvVar{Name: name, ValueFrom: source})
	}
	return all
}

// A reference to a variable has its value, as the kubelet gives it to the container. What the specification does not show stays a reference.
func TestAReferenceToAVariableHasItsValue(t *testing.T) {
	env := environmentOf("own", &corev1.Container{Env: variablesOf(
		"EARLY=$(LATE)", "A=a", "LATE=x", "B=$(A)-$(A)$$(A)$A$(", "NS@metadata.namespace", "POD@metadata.name", "MAP", "C=$(NS),$(MAP)", "A=again",
	)})
	want := map[string]string{
		"EARLY": "$(LATE)", "A": "again", "LATE": "x", "B": "a-a$(A)$A$(", "NS": "own", "POD": "$(POD)", "MAP": "$(MAP)", "C": "own,$(MAP)",
	}
	if diff := cmp.Diff(want, env); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

// The namespaces of an operator are those that its container sees. Where the specification does not show them, it may watch all.
func TestNamespacesAreThoseThatTheContainerSees(t *testing.T) {
	for name, test := range map[string]struct {
		env, args []string
		want      []string
		unknown   bool
		// flags is set where only Freehold's operator is concerned, which has flags for it.
		flags bool
	}{
		"none":                             {},
		"a value":                          {env: []string{"WATCH_NAMESPACE=a,b"}, want: []string{"a", "b"}},
		"another variable":                 {env: []string{"POD_NAMESPACE@metadata.namespace", "WATCH_NAMESPACE=a,$(POD_NAMESPACE)"}, want: []string{"a", "freehold-system"}},
		"its own namespace":                {env: []string{"WATCH_NAMESPACE@metadata.namespace"}, want: []string{"freehold-system"}},
		"a ConfigMap":                      {env: []string{"WATCH_NAMESPACE"}, unknown: true},
		"a variable from a ConfigMap":      {env: []string{"MAP", "WATCH_NAMESPACE=a,$(MAP)"}, unknown: true},
		"a variable that is defined later": {env: []string{"WATCH_NAMESPACE=$(A)", "A=a"}, unknown: true},
		"no namespace":                     {env: []string{"WATCH_NAMESPACE=Prod"}, unknown: true},
		"an argument":                      {env: []string{"POD_NAMESPACE@metadata.namespace"}, args: []string{"--watch-namespaces=$(POD_NAMESPACE)"}, want: []string{"freehold-system"}, flags: true},
		"an argument before the variable":  {env: []string{"WATCH_NAMESPACE"}, args: []string{"--watch-namespaces", "a"}, want: []string{"a"}, flags: true},
		"an argument from a ConfigMap":     {env: []string{"MAP"}, args: []string{"--watch-namespaces=$(MAP)"}, unknown: true, flags: true},
		"a selector from a ConfigMap":      {env: []string{"MAP"}, args: []string{"--watch-namespaces=a", "--mcpserver-selector=shard=$(MAP)"}, unknown: true, flags: true},
		"configs from a ConfigMap":         {env: []string{"MAP"}, args: []string{"--mcpserver-selector=shard=a", "--configs=$(MAP)"}, unknown: true, flags: true},
		"a Lease from a ConfigMap":         {env: []string{"MAP"}, args: []string{"--leader-elect-resource-name=$(MAP)"}, unknown: true, flags: true},
		"a flag that is no word":           {env: []string{"MAP"}, args: []string{"--leader-elect=$(MAP)", "--watch-namespaces=a"}, unknown: true, flags: true},
		"a proxyrunner from a ConfigMap":   {env: []string{"TOOLHIVE_RUNNER_IMAGE", "WATCH_NAMESPACE=a"}, want: []string{"a"}},
	} {
		for _, product := range []Product{Freehold, ToolHive} {
			if test.flags && product.Name != Freehold.Name {
				continue
			}
			t.Run(name+", "+product.Name, func(t *testing.T) {
				i := &installation{}
				i.deploy("operator", 1, test.args...)
				container := &i.deployments[0].Spec.Template.Spec.Containers[0]
				container.Env, container.Image = variablesOf(test.env...), "example.com/"+product.image+":v1"
				found, _, err := clientOf(t, i.serve).Running(product, time.Now())
				if err != nil || len(found) != 1 {
					t.Fatalf("it finds %v, error %v", found, err)
				}
				if diff := cmp.Diff(test.want, found[0].Namespaces); diff != "" || found[0].ScopeUnknown != test.unknown || found[0].LeavesConfigs {
					t.Errorf("unknown %v, it leaves what MCPServers refer to: %v; namespaces (-want +got):\n%s", found[0].ScopeUnknown, found[0].LeavesConfigs, diff)
				}
			})
		}
	}
}

// What the operator writes is not worked out from a setting that the Deployment does not show; the user can give it.
func TestASettingThatIsNotShownIsNotGuessed(t *testing.T) {
	called := operatorWith(nil, "--proxy-host=$(HOST)")
	groups := func() (*metav1.APIGroupList, error) { return &metav1.APIGroupList{}, nil }
	if _, err := called.settings(nil, groups); err == nil || !strings.Contains(err.Error(), "--operator-arg=--proxy-host=") {
		t.Errorf("error %v", err)
	}
	if got, err := called.settings([]string{"--proxy-host=::1"}, groups); err != nil || got.ProxyHost != "[::1]" {
		t.Errorf("settings %+v, error %v", got, err)
	}
}

// A Lease is in the namespace that the operator's container sees as its own.
func TestALeaseIsInTheNamespaceThatTheContainerSees(t *testing.T) {
	for want, env := range map[string]string{"freehold-system": "POD_NAMESPACE@metadata.namespace", "leases": "POD_NAMESPACE=leases"} {
		i := &installation{}
		i.deploy("freehold", 1)
		i.deployments[0].Spec.Template.Spec.Containers[0].Env = variablesOf(env)
		process, err := ProcessOf(&i.deployments[0])
		if err != nil || process.Lease.Namespace != want {
			t.Errorf("with %s the Lease is %s, error %v", env, process.Lease, err)
		}
	}
}
