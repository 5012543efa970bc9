// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"pgregory.net/rapid"

	"github.com/freehold-dev/freehold/internal/filler"
)

// TestOmitZerosLosesNothing: whatever the configuration, the typed object that the API server and every client
// make of it is the same before and after, and nothing more can be left out.
func TestOmitZerosLosesNothing(t *testing.T) {
	t.Run("Deployment", losesNothing[appsv1ac.DeploymentApplyConfiguration, appsv1.Deployment])
	t.Run("StatefulSet", losesNothing[appsv1ac.StatefulSetApplyConfiguration, appsv1.StatefulSet])
	t.Run("Service", losesNothing[corev1ac.ServiceApplyConfiguration, corev1.Service])
	t.Run("ConfigMap", losesNothing[corev1ac.ConfigMapApplyConfiguration, corev1.ConfigMap])
	t.Run("ServiceAccount", losesNothing[corev1ac.ServiceAccountApplyConfiguration, corev1.ServiceAccount])
	t.Run("Role", losesNothing[rbacv1ac.RoleApplyConfiguration, rbacv1.Role])
	t.Run("RoleBinding", losesNothing[rbacv1ac.RoleBindingApplyConfiguration, rbacv1.RoleBinding])
}

func losesNothing[A, L any](t *testing.T) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		var config A
		seed := rapid.Uint64().Draw(t, "seed")
		filler.Fill(rand.New(rand.NewPCG(seed, 0)), &config)
		before := decode[L](t, encode(t, config))

		omitZeros(&config, new(L))
		once := encode(t, config)
		after := decode[L](t, once)
		if diff := cmp.Diff(encode(t, before), encode(t, after)); diff != "" {
			t.Fatalf("the typed object changed (-before +after):\n%s", diff)
		}
		omitZeros(&config, new(L))
		if diff := cmp.Diff(once, encode(t, config)); diff != "" {
			t.Fatalf("pruning twice is not pruning once (-once +twice):\n%s", diff)
		}
		// Each field that is sent is shown, so that the owned fields can be read back.
		if lost := missing("", decode[any](t, once), decode[any](t, encode(t, after))); lost != "" {
			t.Fatalf("%s is sent and never shown again\n%s", lost, once)
		}
	})
}

func decode[V any](t *rapid.T, text string) V {
	var value V
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return value
}

// missing returns the path of something in sent that shown does not have, or the empty string.
func missing(path string, sent, shown any) string {
	switch sent := sent.(type) {
	case map[string]any:
		there, ok := shown.(map[string]any)
		if !ok {
			return path
		}
		for key, value := range sent {
			if _, ok := there[key]; !ok {
				return path + "." + key
			}
			if lost := missing(path+"."+key, value, there[key]); lost != "" {
				return lost
			}
		}
	case []any:
		there, ok := shown.([]any)
		if !ok || len(there) != len(sent) {
			return path
		}
		for i := range sent {
			if lost := missing(fmt.Sprint(path, "[", i, "]"), sent[i], there[i]); lost != "" {
				return lost
			}
		}
	default:
		if !reflect.DeepEqual(sent, shown) {
			return path
		}
	}
	return ""
}
