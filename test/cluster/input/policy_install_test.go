// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	restclient "k8s.io/client-go/rest"

	"github.com/freehold-dev/freehold/deploy/policy"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/test/harness"
)

// The policies, by the files that they are in.
const (
	fieldManagersPolicy = "field-managers"
	runnersPolicy       = "runners"
	ownedFieldsPolicy   = "owned-fields"
)

// installPolicy installs a policy under a name of its own, for one Namespace alone, until the test ends. It
// returns that name, once the API server has found that the expressions fit the kinds that they are about. It takes
// some moments more until the policy is asked.
func installPolicy(t *testing.T, ns *harness.Namespace, file string) string {
	t.Helper()
	text, err := policy.Manifests.ReadFile(file + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return installPolicyOf(t, ns, text)
}

// installPolicyOf is installPolicy for a manifest.
func installPolicyOf(t *testing.T, ns *harness.Namespace, manifest []byte) string {
	t.Helper()
	objects, err := operator.Decode(manifest)
	if err != nil || len(objects) != 2 {
		t.Fatalf("the manifest has %d objects: %v", len(objects), err)
	}
	var of admissionregistrationv1.ValidatingAdmissionPolicy
	var binding admissionregistrationv1.ValidatingAdmissionPolicyBinding
	if err := errors.Join(
		runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(objects[0].Object, &of, true),
		runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(objects[1].Object, &binding, true),
	); err != nil {
		t.Fatal(err)
	}
	of.Name += "-" + ns.Name
	binding.Name, binding.Spec.PolicyName = of.Name, of.Name
	binding.Spec.MatchResources.NamespaceSelector.MatchLabels = map[string]string{corev1.LabelMetadataName: ns.Name}

	client := env.Core.AdmissionregistrationV1()
	if _, err := client.ValidatingAdmissionPolicies().Create(t.Context(), &of, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(
			client.ValidatingAdmissionPolicyBindings().Delete(ctx, binding.Name, metav1.DeleteOptions{}),
			client.ValidatingAdmissionPolicies().Delete(ctx, of.Name, metav1.DeleteOptions{}),
		); err != nil {
			t.Errorf("policy %s stays: %v", of.Name, err)
		}
	})
	if _, err := client.ValidatingAdmissionPolicyBindings().Create(t.Context(), &binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the expressions are checked against the kinds", func(ctx context.Context) error {
		checked, err := client.ValidatingAdmissionPolicies().Get(ctx, of.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if checked.Status.ObservedGeneration != checked.Generation || checked.Status.TypeChecking == nil {
			return fmt.Errorf("not checked yet: %+v", checked.Status)
		}
		for _, warning := range checked.Status.TypeChecking.ExpressionWarnings {
			t.Errorf("%s: %s", warning.FieldRef, warning.Warning)
		}
		return nil
	})
	return of.Name
}

// refusedBy tells why an answer is not the refusal of a policy.
func refusedBy(policy string, err error) error {
	if err == nil {
		return errors.New("it was let pass")
	}
	if !strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'") || !strings.Contains(err.Error(), "denied request") {
		return fmt.Errorf("it was refused, but not by %s: %w", policy, err)
	}
	return nil
}

// warnings are what the API server warned of.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader implements restclient.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// take returns the warnings of a policy since the last time.
func (w *warnings) take(policy string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []string
	for _, text := range w.texts {
		if strings.Contains(text, "ValidatingAdmissionPolicy '"+policy+"'") {
			found = append(found, text)
		}
	}
	w.texts = nil
	return found
}

// somebody is a user at work in a Namespace.
type somebody struct {
	client   dynamic.Interface
	ns       *harness.Namespace
	warnings *warnings
}

// as returns a user who sends requests by a configuration.
func as(t *testing.T, ns *harness.Namespace, config *restclient.Config) *somebody {
	t.Helper()
	s := &somebody{ns: ns, warnings: &warnings{}}
	config = restclient.CopyConfig(config)
	config.WarningHandler = s.warnings
	var err error
	if s.client, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return s
}

// impersonate returns a user with all rights under another name.
func impersonate(t *testing.T, ns *harness.Namespace, name string, groups ...string) *somebody {
	t.Helper()
	config := restclient.CopyConfig(env.Config)
	config.Impersonate = restclient.ImpersonationConfig{UserName: name, Groups: append([]string{"system:masters"}, groups...)}
	return as(t, ns, config)
}

// objects is the client for the objects of a component.
func (s *somebody) objects(component harness.Component) dynamic.ResourceInterface {
	return s.client.Resource(harness.FormOf(component).Resource).Namespace(s.ns.Name)
}
