// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// sessionCases are the three reasons of the warning about sessions.
var sessionCases = map[string]struct {
	change harness.Change
	status metav1.ConditionStatus
	reason string
}{
	"unset":       {func(*v1beta1.MCPServer) {}, metav1.ConditionFalse, "SessionStorageWarningNotApplicable"},
	"one":         {replicasTiers["proxy"].asks(new(int32(1))), metav1.ConditionFalse, "SessionStorageWarningNotApplicable"},
	"backends":    {replicasTiers["backend"].asks(new(int32(2))), metav1.ConditionFalse, "SessionStorageWarningNotApplicable"},
	"several":     {replicasTiers["proxy"].asks(new(int32(2))), metav1.ConditionTrue, "SessionStorageMissingForReplicas"},
	"in-memory":   {inMemory, metav1.ConditionTrue, "SessionStorageMissingForReplicas"},
	"redis":       {harness.SharedSessions, metav1.ConditionFalse, "SessionStorageConfigured"},
	"redis-and-2": {func(s *v1beta1.MCPServer) { harness.SharedSessions(s); replicasTiers["proxy"].asks(new(int32(2)))(s) }, metav1.ConditionFalse, "SessionStorageConfigured"},
}

func inMemory(s *v1beta1.MCPServer) {
	replicasTiers["proxy"].asks(new(int32(2)))(s)
	s.Spec.SessionStorage = &v1beta1.SessionStorageConfig{Provider: v1beta1.SessionStorageMemory}
}

// TestSessionStorageWarning also looks at the time that pods are given to end.
func TestSessionStorageWarning(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	for name := range sessionCases {
		ns.Create(t, harness.Server(name, v1beta1.TransportStreamableHTTP, sessionCases[name].change))
	}
	for name, c := range sessionCases {
		t.Run(name, func(t *testing.T) {
			ns.AwaitReady(t, name)
			awaitCondition(t, ns, name, v1beta1.ConditionSessionStorageWarning, c.status, c.reason)
			for _, component := range []harness.Component{harness.Proxy, harness.Backend} {
				object := ns.MustObject(t, component, name)
				grace, _, _ := unstructured.NestedInt64(object.Object, "spec", "template", "spec", "terminationGracePeriodSeconds")
				if grace != 30 {
					t.Errorf("pods of %s have %d s to end", component, grace)
				}
			}
			const path = ".spec.template.spec.terminationGracePeriodSeconds"
			proxy := harness.ClaimsOf(map[harness.Component]*unstructured.Unstructured{harness.Proxy: ns.MustObject(t, harness.Proxy, name)})
			if !slices.Contains(proxy[harness.Proxy][managers.Proxy+" Apply "], path) {
				t.Errorf("the proxy's %s is nobody's", path)
			}
		})
	}
}

// TestRedisPassword gives the proxies the password of the session store: the Secret is named, and what is in it is
// nowhere else.
func TestRedisPassword(t *testing.T) {
	t.Parallel()
	const name, password = "sessions", "correct-horse-battery"
	ns := env.Namespace(t)
	_, err := env.Core.CoreV1().Secrets(ns.Name).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "store"}, StringData: map[string]string{"key": password},
	}, metav1.CreateOptions{FieldManager: harness.Author})
	if err != nil {
		t.Fatal(err)
	}
	mark := ns.Mark(t)
	ns.Operate(t)
	ns.Create(t, harness.Server(name, v1beta1.TransportStreamableHTTP, harness.SharedSessions, func(s *v1beta1.MCPServer) {
		s.Spec.SessionStorage.PasswordRef = &v1beta1.SecretKeyRef{Name: "store", Key: "key"}
	}))
	ns.AwaitSettled(t, name)
	proxy, err := env.Core.AppsV1().Deployments(ns.Name).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var refs []corev1.SecretKeySelector
	for _, v := range proxy.Spec.Template.Spec.Containers[0].Env {
		if v.Name == "THV_SESSION_REDIS_PASSWORD" && v.Value == "" && v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil {
			refs = append(refs, *v.ValueFrom.SecretKeyRef)
		}
	}
	want := []corev1.SecretKeySelector{{LocalObjectReference: corev1.LocalObjectReference{Name: "store"}, Key: "key"}}
	if diff := cmp.Diff(want, refs); diff != "" {
		t.Errorf("references to the password (-want +got):\n%s", diff)
	}
	ns.AwaitCalm(t, name)
	writes := ns.Writes(t, mark)
	for _, e := range writes {
		if strings.Contains(string(e.Body), password) {
			t.Errorf("the password was written: %v", e)
		}
	}
	documents := 0
	for component, object := range ns.MustObjectsOf(t, name) {
		text, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		// The Secret is named where it is used, and where the author wrote it.
		named := strings.Contains(string(text), `"store"`)
		if named != (component == harness.Proxy || component == harness.ServerItself) || strings.Contains(string(text), password) {
			t.Errorf("%s: %s", component, text)
		}
		if strings.Contains(string(text), "redis:6379") && component == harness.RunConfig {
			documents++
		}
	}
	if documents != 1 || len(writes) == 0 {
		t.Errorf("the RunConfig does not name the store, or nothing was written: %d, %d", documents, len(writes))
	}
	events, _, err := env.Audit.Since(mark, ns.ByOperator(), audit.Resource("", "secrets"))
	if err != nil || len(events) > 0 {
		t.Errorf("the operator asked for Secrets: %v, %v", events, err)
	}
}
