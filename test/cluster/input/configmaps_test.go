// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// reference is a ConfigMap of the user's that an MCPServer refers to.
type reference struct {
	refer harness.Change
	key   string
	// good and better are two contents that can be used, and what the RunConfig then shows of each.
	good, better, goodShows, betterShows string
	// bad cannot be used.
	bad string
	// missing, keyless and invalid are what is told.
	missing, keyless, invalid harness.Expectation
}

// userConfigMap is the name of the ConfigMap that the user makes.
const userConfigMap = "from-the-user"

func authzProblem(reason string, message ...string) harness.Expectation {
	return harness.Expectation{Condition: v1beta1.ConditionAuthzConfigValidated, Status: metav1.ConditionFalse, Reason: reason, Message: append(message, userConfigMap)}
}

func cedar(policy string) string {
	return fmt.Sprintf(`{"version":"1.0","type":"cedarv1","cedar":{"policies":[%q],"entities_json":"[]"}}`, policy)
}

var configMapReferences = map[string]reference{
	"authzConfig": {
		refer: func(server *v1beta1.MCPServer) {
			server.Spec.AuthzConfig = &v1beta1.AuthzConfigRef{
				Type: "configMap", ConfigMap: &v1beta1.ConfigMapAuthzRef{Name: userConfigMap, Key: "policy.json"},
			}
		},
		key: "policy.json", bad: `{"version":`,
		good: cedar("permit(principal, action, resource);"), goodShows: "permit(principal, action, resource);",
		better: cedar("forbid(principal, action, resource);"), betterShows: "forbid(principal, action, resource);",
		missing: authzProblem("AuthzConfigMapNotFound", "does not exist"),
		keyless: authzProblem("AuthzConfigMapNotFound", `no key "policy.json"`),
		invalid: authzProblem("InvalidAuthzConfig", `"policy.json"`),
	},
}

// TestReferencedConfigMap takes a ConfigMap that an MCPServer needs through its life: it is missing, comes without the
// key, with a bad content, with a good one, changes, breaks, goes, and comes back.
func TestReferencedConfigMap(t *testing.T) {
	t.Parallel()
	for field, r := range configMapReferences {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, env)
			s.Operate(t)
			server := s.Create(t, harness.HTTPServer("needy", r.refer))

			s.AwaitStatus(t, server.Name, r.missing.Saying("No proxy is made"))
			s.AwaitOneWarning(t, server.Name, r.missing)
			s.AwaitComponents(t, server.Name, slices.DeleteFunc(harness.HTTPComponents(), func(component harness.Component) bool {
				return component == harness.RunConfig || component == harness.Proxy
			}))
			s.AwaitRest(t)
			held := s.ChildVersions(t)[server.Name]

			s.store(t, map[string]string{"other": r.good})
			s.AwaitStatus(t, server.Name, r.keyless)
			s.CheckUnchanged(t, server.Name, held)

			s.store(t, map[string]string{r.key: r.bad})
			s.AwaitStatus(t, server.Name, r.invalid)
			s.CheckUnchanged(t, server.Name, held)

			s.store(t, map[string]string{r.key: r.good})
			s.AwaitStatus(t, server.Name, harness.Fine...)
			s.runConfigShows(t, server.Name, r.goodShows)
			before := s.RunConfigChecksum(t, server.Name)

			s.store(t, map[string]string{r.key: r.better})
			s.runConfigShows(t, server.Name, r.betterShows)
			s.AwaitStatus(t, server.Name, harness.Fine...)
			s.AwaitSettled(t, server.Name)
			s.AwaitRest(t)
			good := s.ChildVersions(t)[server.Name]
			if s.RunConfigChecksum(t, server.Name) == before {
				t.Error("the proxies were not restarted for the other content")
			}

			s.store(t, map[string]string{r.key: r.bad})
			s.AwaitStatus(t, server.Name, r.invalid.Saying("keeps the configuration that it has"))
			s.CheckUnchanged(t, server.Name, good)

			if err := s.Core.CoreV1().ConfigMaps(s.Name).Delete(t.Context(), userConfigMap, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			s.AwaitStatus(t, server.Name, r.missing.Saying("keeps the configuration that it has"))
			s.CheckUnchanged(t, server.Name, good)

			s.store(t, map[string]string{r.key: r.better})
			s.AwaitStatus(t, server.Name, harness.Fine...)
			s.CheckUnchanged(t, server.Name, good)
		})
	}
}

// store creates or replaces the user's ConfigMap.
func (s *stage) store(t *testing.T, data map[string]string) {
	t.Helper()
	configMaps := s.Core.CoreV1().ConfigMaps(s.Name)
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: userConfigMap}, Data: data}
	if _, err := configMaps.Update(t.Context(), configMap, metav1.UpdateOptions{}); err == nil {
		return
	}
	if _, err := configMaps.Create(t.Context(), configMap, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) runConfigShows(t *testing.T, name, text string) {
	t.Helper()
	harness.Eventually(t, "the RunConfig shows "+text, func(ctx context.Context) error {
		found, err := s.Object(ctx, harness.RunConfig, name)
		if err != nil {
			return err
		}
		document, _, err := unstructured.NestedString(found.Object, "data", "runconfig.json")
		if err != nil {
			return err
		}
		if !strings.Contains(document, text) {
			return fmt.Errorf("it is %s", document)
		}
		return nil
	})
}
