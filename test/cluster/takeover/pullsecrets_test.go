// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

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
func addPullSecret(t *testing.T, ns *harness.Namespace, manager string, component harness.Component, secret string) {
	t.Helper()
	accounts := ns.Core.CoreV1().ServiceAccounts(ns.Name)
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
func hasPullSecrets(t *testing.T, ns *harness.Namespace, component harness.Component, want ...string) {
	t.Helper()
	account, err := ns.Core.CoreV1().ServiceAccounts(ns.Name).Get(t.Context(), harness.FormOf(component).Name(shared), metav1.GetOptions{})
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
	ns := env.Namespace(t)
	first := ns.Operate(t)
	ns.Create(t, harness.HTTPServer(shared, pullSecrets("reg")))
	ns.AwaitStatus(t, shared, harness.Fine...)
	ns.AwaitSettled(t, shared)
	ns.AwaitRest(t)

	// The other controller adds its secrets, and takes its time with the second.
	for _, secret := range []string{"dockercfg-1", "dockercfg-2"} {
		mark := ns.Mark(t)
		for _, component := range accounts {
			addPullSecret(t, ns, pullSecretController, component, secret)
		}
		ns.AwaitOperatorRest(t)
		if writes := ns.Writes(t, mark); len(writes) > 0 {
			t.Errorf("after %s was added there are writes: %v", secret, writes)
		}
		ns.AwaitStatus(t, shared, harness.Fine...)
	}
	for _, component := range accounts {
		hasPullSecrets(t, ns, component, "reg", "dockercfg-1", "dockercfg-2")
	}

	// A new process sees it for the first time.
	mark := ns.Mark(t)
	ns.ReplaceOperator(t, first)
	ns.AwaitOperatorRest(t)
	if writes := ns.Writes(t, mark); len(writes) > 0 {
		t.Errorf("after a restart there are writes: %v", writes)
	}

	// A name is missing in the list that another manager owns.
	ns.Edit(t, shared, pullSecrets("reg", "more"))
	ns.AwaitStatus(t, shared, harness.Expectation{
		Condition: v1beta1.ConditionFieldsOwned, Status: metav1.ConditionFalse, Reason: "FieldManagerConflict",
		Message: []string{".imagePullSecrets", pullSecretController},
	})
	ns.AwaitRest(t)
	ns.Quiet(t, ns.Mark(t), harness.Calm)
	for _, component := range accounts {
		hasPullSecrets(t, ns, component, "reg", "dockercfg-1", "dockercfg-2")
	}

	// One way out is to add the name, the other one is to take the list; the controller adds its secret again.
	addPullSecret(t, ns, "kubectl-edit", harness.BackendAccount, "more")
	ns.Edit(t, shared, func(server *v1beta1.MCPServer) {
		server.Annotations = map[string]string{v1beta1.AnnotationTake: "serviceaccount/web-proxy-runner:.imagePullSecrets"}
	})
	ns.AwaitStatus(t, shared, harness.Fine...)
	ns.AwaitServer(t, shared, "the list is taken", func(server *v1beta1.MCPServer) error {
		return harness.Expectation{Condition: v1beta1.ConditionFieldsTaken, Status: metav1.ConditionTrue, Reason: "Taken", Message: []string{pullSecretController}}.Missing(server)
	})
	hasPullSecrets(t, ns, harness.ProxyAccount, "reg", "more")
	hasPullSecrets(t, ns, harness.BackendAccount, "reg", "dockercfg-1", "dockercfg-2", "more")
	ns.AwaitRest(t)
	mark = ns.Mark(t)
	addPullSecret(t, ns, pullSecretController, harness.ProxyAccount, "dockercfg-3")
	ns.AwaitOperatorRest(t)
	ns.Quiet(t, mark, harness.Calm)
	ns.AwaitStatus(t, shared, harness.Fine...)
	hasPullSecrets(t, ns, harness.ProxyAccount, "reg", "more", "dockercfg-3")
}

// TestTakeoverOfPullSecrets: ToolHive wrote the list, and another controller has added to it since.
func TestTakeoverOfPullSecrets(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	s := newInstallation(t)
	s.install(t, "edited", shared)
	s.Edit(t, shared, pullSecrets("reg"))
	for _, component := range accounts {
		addPullSecret(t, s.Namespace, managers.ToolHiveOperator, component, "reg")
		addPullSecret(t, s.Namespace, pullSecretController, component, "dockercfg")
	}
	first := s.Operate(t)
	s.awaitTakenOver(t, shared)
	s.AwaitStatus(t, shared, harness.Fine...)
	for _, component := range accounts {
		hasPullSecrets(t, s.Namespace, component, "reg", "dockercfg")
	}
	warned, err := s.Warnings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range warned[shared] {
		t.Errorf("there is a warning: %s: %s", event.Reason, event.Note)
	}
	s.settleAndStayQuiet(t, first)
}
