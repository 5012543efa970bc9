// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// withPullSecrets is an MCPServer with pull secrets.
func withPullSecrets(server *v1beta1.MCPServer, names ...string) *v1beta1.MCPServer {
	overrides := &v1beta1.ProxyDeploymentOverrides{}
	for _, name := range names {
		overrides.ImagePullSecrets = append(overrides.ImagePullSecrets, v1beta1.LocalObjectReference{Name: name})
	}
	server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: overrides}
	return server
}

// sharedAccount is the ServiceAccount that another controller looks after as well.
const sharedAccount = "web-sa"

// addPullSecret does what a controller does that gives each ServiceAccount a pull secret of its own.
func (o *operating) addPullSecret(secret string) {
	o.t.Helper()
	list := corev1ac.ServiceAccount(sharedAccount, "shop")
	for _, name := range append(o.pullSecrets(), secret) {
		list.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(name))
	}
	o.took()
	if _, err := o.core.CoreV1().ServiceAccounts("shop").Apply(o.t.Context(), list, metav1.ApplyOptions{FieldManager: "openshift", Force: true}); err != nil {
		o.t.Fatal(err)
	}
	o.rest()
}

func (o *operating) pullSecrets() (names []string) {
	o.t.Helper()
	found, _ := get[*corev1.ServiceAccount](o.apiServer, sharedAccount)
	for _, secret := range found.ImagePullSecrets {
		names = append(names, secret.Name)
	}
	return names
}

// The list of pull secrets is left to a controller that has added its own, at no request. It is a conflict when a name is
// missing, and none any more when the name is there.
func TestPullSecretsAreSharedWithAnotherController(t *testing.T) {
	resync := func(c *Config) { c.Resync = time.Minute }
	operate(t, []runtime.Object{withPullSecrets(newServer("web"), "reg")}, resync, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		for _, secret := range []string{"dockercfg-1", "dockercfg-2"} {
			o.addPullSecret(secret)
			o.expect(nil, "the controller added "+secret)
		}
		<-time.After(10 * time.Minute)
		o.rest()
		o.expect(nil, "nobody contests the list")
		if status, reason, message := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue {
			t.Errorf("FieldsOwned is %s because of %s: %s", status, reason, message)
		}

		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { withPullSecrets(server, "reg", "more") })
		o.rest()
		_, reason, message := o.condition("web", v1beta1.ConditionFieldsOwned)
		if reason != "FieldManagerConflict" || !strings.Contains(message, ".imagePullSecrets") || !strings.Contains(message, `"openshift"`) {
			t.Errorf("FieldsOwned has the reason %s: %s", reason, message)
		}
		o.took()
		<-time.After(10 * time.Minute)
		o.rest()
		o.expect(nil, "the conflict stands")

		o.addPullSecret("more")
		o.expect([]string{"apply MCPServer/web/status freehold-status"}, "the name is there")
		if got, want := o.pullSecrets(), []string{"reg", "dockercfg-1", "dockercfg-2", "more"}; !slices.Equal(got, want) {
			t.Errorf("the list is %v, want %v", got, want)
		}
		if status, reason, message := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue {
			t.Errorf("FieldsOwned is %s because of %s: %s", status, reason, message)
		}
	})
}

// A list that is taken is ours until the controller adds to it again.
func TestTakenPullSecretsAreSharedAgain(t *testing.T) {
	operate(t, []runtime.Object{withPullSecrets(newServer("web"), "reg")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		o.addPullSecret("dockercfg")
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) { withPullSecrets(server, "reg", "more") })
		o.rest()
		o.annotate("web", v1beta1.AnnotationTake, "openshift")
		o.rest()
		account, _ := get[*corev1.ServiceAccount](o.apiServer, sharedAccount)
		if got := ownership.Owners(account, ".imagePullSecrets"); len(got) != 1 || got[0].Manager != managers.Access {
			t.Errorf("the list belongs to %v", got)
		}
		if got, want := o.pullSecrets(), []string{"reg", "more"}; !slices.Equal(got, want) {
			t.Errorf("the list is %v, want %v", got, want)
		}
		o.addPullSecret("dockercfg")
		o.expect(nil, "the controller added its secret again")
		if status, reason, message := o.condition("web", v1beta1.ConditionFieldsOwned); status != metav1.ConditionTrue {
			t.Errorf("FieldsOwned is %s because of %s: %s", status, reason, message)
		}
	})
}
