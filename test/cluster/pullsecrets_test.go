// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// pullSecretController is the manager of a controller that gives each ServiceAccount a pull secret of its own, as
// OpenShift's does.
const pullSecretController = "openshift-controller-manager"

// shared is the MCPServer whose ServiceAccounts another controller looks after as well.
const shared = "web"

// accounts are the ServiceAccounts of an MCPServer.
var accounts = []harness.Component{harness.ProxyAccount, harness.BackendAccount}

// pullSecrets gives an MCPServer pull secrets.
func pullSecrets(names ...string) harness.Change {
	return func(server *v1beta1.MCPServer) {
		overrides := &v1beta1.ProxyDeploymentOverrides{}
		for _, name := range names {
			overrides.ImagePullSecrets = append(overrides.ImagePullSecrets, v1beta1.LocalObjectReference{Name: name})
		}
		server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: overrides}
	}
}

// addPullSecret adds a secret to a ServiceAccount's list by an update.
func (s *stage) addPullSecret(t *testing.T, manager string, component harness.Component, secret string) {
	t.Helper()
	accounts := s.Core.CoreV1().ServiceAccounts(s.Name)
	account, err := accounts.Get(t.Context(), harness.FormOf(component).Name(shared), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	account.ImagePullSecrets = append(account.ImagePullSecrets, corev1.LocalObjectReference{Name: secret})
	if _, err := accounts.Update(t.Context(), account, metav1.UpdateOptions{FieldManager: manager}); err != nil {
		t.Fatal(err)
	}
}

// hasPullSecrets compares a ServiceAccount's list.
func (s *stage) hasPullSecrets(t *testing.T, component harness.Component, want ...string) {
	t.Helper()
	account, err := s.Core.CoreV1().ServiceAccounts(s.Name).Get(t.Context(), harness.FormOf(component).Name(shared), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, secret := range account.ImagePullSecrets {
		got = append(got, secret.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pull secrets of %s (-want +got):\n%s", component, diff)
	}
}

// TestPullSecretsOfAnotherController has a controller that adds a pull secret to each ServiceAccount. Nobody fights over
// the list; where it lacks a name that the MCPServer asks for, that is told, and there are ways out.
func TestPullSecretsOfAnotherController(t *testing.T) {
	t.Parallel()
	s := newStage(t, env)
	first := s.Operate(t)
	s.Create(t, httpServer(shared, pullSecrets("reg")))
	s.await(t, shared, fine...)
	s.AwaitSettled(t, shared)
	s.settle(t)

	// The other controller adds its secrets, and takes its time with the second.
	for _, secret := range []string{"dockercfg-1", "dockercfg-2"} {
		mark := s.Mark(t)
		for _, component := range accounts {
			s.addPullSecret(t, pullSecretController, component, secret)
		}
		s.awaitCalm(t)
		if writes := s.Writes(t, mark); len(writes) > 0 {
			t.Errorf("after %s was added there are writes: %v", secret, writes)
		}
		s.await(t, shared, fine...)
	}
	for _, component := range accounts {
		s.hasPullSecrets(t, component, "reg", "dockercfg-1", "dockercfg-2")
	}

	// A new process sees it for the first time.
	mark := s.Mark(t)
	s.replace(t, first)
	s.awaitCalm(t)
	if writes := s.Writes(t, mark); len(writes) > 0 {
		t.Errorf("after a restart there are writes: %v", writes)
	}

	// A name is missing in the list that another manager owns.
	s.Edit(t, shared, pullSecrets("reg", "more"))
	s.await(t, shared, expectation{
		v1beta1.ConditionFieldsOwned, metav1.ConditionFalse, "FieldManagerConflict",
		[]string{".imagePullSecrets", pullSecretController},
	})
	s.settle(t)
	s.Quiet(t, s.Mark(t), harness.Calm)
	for _, component := range accounts {
		s.hasPullSecrets(t, component, "reg", "dockercfg-1", "dockercfg-2")
	}

	// One way out is to add the name, the other one is to take the list; the controller adds its secret again.
	s.addPullSecret(t, "kubectl-edit", harness.BackendAccount, "more")
	s.Edit(t, shared, func(server *v1beta1.MCPServer) {
		server.Annotations = map[string]string{v1beta1.AnnotationTake: "serviceaccount/web-proxy-runner:.imagePullSecrets"}
	})
	s.await(t, shared, fine...)
	s.AwaitServer(t, shared, "the list is taken", func(server *v1beta1.MCPServer) error {
		return expectation{v1beta1.ConditionFieldsTaken, metav1.ConditionTrue, "Taken", []string{pullSecretController}}.missing(server)
	})
	s.hasPullSecrets(t, harness.ProxyAccount, "reg", "more")
	s.hasPullSecrets(t, harness.BackendAccount, "reg", "dockercfg-1", "dockercfg-2", "more")
	s.settle(t)
	mark = s.Mark(t)
	s.addPullSecret(t, pullSecretController, harness.ProxyAccount, "dockercfg-3")
	s.awaitCalm(t)
	s.Quiet(t, mark, harness.Calm)
	s.await(t, shared, fine...)
	s.hasPullSecrets(t, harness.ProxyAccount, "reg", "more", "dockercfg-3")
}

// TestTakeoverOfPullSecrets: ToolHive wrote the list, and another controller has added to it since.
func TestTakeoverOfPullSecrets(t *testing.T) {
	t.Parallel()
	s := newInstallation(t)
	s.install(t, "edited", shared)
	s.Edit(t, shared, pullSecrets("reg"))
	for _, component := range accounts {
		s.addPullSecret(t, managers.ToolHiveOperator, component, "reg")
		s.addPullSecret(t, pullSecretController, component, "dockercfg")
	}
	first := s.Operate(t)
	s.awaitTakenOver(t, shared)
	s.await(t, shared, fine...)
	for _, component := range accounts {
		s.hasPullSecrets(t, component, "reg", "dockercfg")
	}
	warned, err := s.warnings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range warned[shared] {
		t.Errorf("there is a warning: %s: %s", event.Reason, event.Note)
	}
	s.settleAndStayQuiet(t, first)
}
