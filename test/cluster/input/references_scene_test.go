// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	toolhivev1beta1 "github.com/freehold-dev/freehold/generated/clientset/versioned/typed/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

const (
	// web is the name of the MCPServer of most tests, and shared that of what it refers to.
	web    = "web"
	shared = "shared"
)

// scene is a namespace with the configurations that MCPServers share in it.
type scene struct{ *harness.Namespace }

func newScene(t *testing.T) scene {
	t.Helper()
	return scene{env.Namespace(t)}
}

const (
	// foreign leaves the status and the deletion of what is shared to another operator, whose part the test plays.
	foreign = "--configs=toolhive"
	// ours has the operator see to both from the start.
	ours = "--configs=freehold"
)

// address is that of an issuer of its own for each number.
func address(number int) string { return fmt.Sprintf("https://idp-%d.example.com", number) }

// issuer is an MCPOIDCConfig.
func issuer(address string) *v1beta1.MCPOIDCConfig {
	return &v1beta1.MCPOIDCConfig{
		ObjectMeta: metav1.ObjectMeta{Name: shared},
		Spec: v1beta1.MCPOIDCConfigSpec{
			Type: v1beta1.MCPOIDCConfigTypeInline, Inline: &v1beta1.InlineOIDCSharedConfig{Issuer: address},
		},
	}
}

// authenticated lets an MCPServer accept tokens of the shared issuer alone.
func authenticated(server *v1beta1.MCPServer) {
	server.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: shared, Audience: "mcp"}
}

// issued is what the condition of an MCPServer's issuer should be.
func issued(status metav1.ConditionStatus, reason string, message ...string) harness.Expectation {
	return harness.Expectation{Condition: v1beta1.ConditionOIDCConfigRefValidated, Status: status, Reason: reason, Message: message}
}

var (
	missing    = issued(metav1.ConditionFalse, v1beta1.ReasonOIDCConfigRefNotFound, shared, "does not exist")
	notValid   = issued(metav1.ConditionFalse, v1beta1.ReasonOIDCConfigRefNotValid, shared)
	usable     = issued(metav1.ConditionTrue, v1beta1.ReasonOIDCConfigRefValid, shared)
	notReady   = harness.Expectation{Condition: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: "NotReady"}
	goesOn     = "keeps the configuration that it has"
	noneIsMade = "No proxy is made"
)

func (s scene) issuers() toolhivev1beta1.MCPOIDCConfigInterface {
	return s.Env.Servers.ToolhiveV1beta1().MCPOIDCConfigs(s.Name)
}

// publish makes the shared issuer.
func (s scene) publish(t *testing.T, config *v1beta1.MCPOIDCConfig) *v1beta1.MCPOIDCConfig {
	t.Helper()
	made, err := s.issuers().Create(t.Context(), config, metav1.CreateOptions{FieldManager: harness.Author})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// revise edits the shared issuer.
func (s scene) revise(t *testing.T, change func(*v1beta1.MCPOIDCConfig)) (edited *v1beta1.MCPOIDCConfig) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		config, err := s.issuers().Get(t.Context(), shared, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(config)
		edited, err = s.issuers().Update(t.Context(), config, metav1.UpdateOptions{FieldManager: harness.Author})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return edited
}

// judge writes a condition Valid, and a hash, into the status of the shared issuer, as another operator does.
func (s scene) judge(t *testing.T, status metav1.ConditionStatus, generation int64, hash string) {
	t.Helper()
	config, err := s.issuers().Get(t.Context(), shared, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config.Status.ConfigHash, config.Status.ObservedGeneration = hash, generation
	config.Status.Conditions = []metav1.Condition{{
		Type: v1beta1.ConditionValid, Status: status, Reason: "Judged", Message: "judged by another operator", ObservedGeneration: generation,
		LastTransitionTime: metav1.Now(),
	}}
	if _, err := s.issuers().UpdateStatus(t.Context(), config, metav1.UpdateOptions{FieldManager: "another-operator"}); err != nil {
		t.Fatal(err)
	}
}

// withdraw deletes the shared issuer.
func (s scene) withdraw(t *testing.T) {
	t.Helper()
	if err := s.issuers().Delete(t.Context(), shared, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// settled makes MCPServers that accept tokens of the shared issuer, and waits until they have all they need.
func (s scene) settled(t *testing.T, servers ...*v1beta1.MCPServer) {
	t.Helper()
	for _, server := range servers {
		s.Create(t, server)
	}
	for _, server := range servers {
		s.AwaitSettled(t, server.Name)
		s.AwaitCalm(t, server.Name)
	}
}

// deployment returns the proxy's Deployment.
func (s scene) deployment(t *testing.T, server string) *appsv1.Deployment {
	t.Helper()
	found, err := s.Core.AppsV1().Deployments(s.Name).Get(t.Context(), server, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// document returns the RunConfig that the proxy's template names.
func (s scene) document(t *testing.T, server string) string {
	t.Helper()
	text, err := s.read(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (s scene) read(ctx context.Context, server string) (string, error) {
	found, err := s.Object(ctx, harness.RunConfig, server)
	if err != nil {
		return "", err
	}
	text, _, err := unstructured.NestedString(found.Object, "data", "runconfig.json")
	return text, err
}

// awaitDocument waits until the RunConfig that the proxy's template names shows a text, and all is settled.
func (s scene) awaitDocument(t *testing.T, server, text string) {
	t.Helper()
	harness.Eventually(t, "the proxy of "+server+" reads "+text, func(ctx context.Context) error {
		document, err := s.read(ctx, server)
		if err == nil && !strings.Contains(document, text) {
			err = fmt.Errorf("it reads %s", document)
		}
		return err
	})
	s.AwaitSettled(t, server)
	s.AwaitCalm(t, server)
}

// written returns what operators wrote for an MCPServer since the mark, without its status, events, and what lost a race. These tests
// edit the MCPServer while the operator may be writing its status, which then loses a race as well.
func (s scene) written(t *testing.T, server string, since audit.Mark) harness.WriteCount {
	t.Helper()
	s.AwaitCalm(t, server)
	count := harness.CountWrites(server, s.Writes(t, since))
	count.Lost()
	return count.Without("status", "status (409)", "event")
}

// expectWritten fails the test unless operators wrote just this for an MCPServer since the mark, see written.
func (s scene) expectWritten(t *testing.T, server string, since audit.Mark, want harness.WriteCount) {
	t.Helper()
	got := s.written(t, server, since)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("writes for %s: %v, want %v", server, got, want)
	}
}

// pods returns the UIDs of the namespace's pods, by name.
func (s scene) pods(t *testing.T) map[string]types.UID {
	t.Helper()
	list, err := s.Core.CoreV1().Pods(s.Name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]types.UID{}
	for _, pod := range list.Items {
		found[pod.Name] = pod.UID
	}
	return found
}

// documents are the RunConfigs and policies that there were, as every version of them was, by name.
type documents struct{ configMaps, deployments *harness.History }

func (s scene) record(t *testing.T) documents {
	t.Helper()
	return documents{
		configMaps:  s.Record(t, corev1.SchemeGroupVersion.WithResource("configmaps")),
		deployments: s.Record(t, appsv1.SchemeGroupVersion.WithResource("deployments")),
	}
}

// template is what a version of a proxy's Deployment makes pods of.
type template struct {
	harness.Version
	server string
	// document is the RunConfig that it names.
	document string
}

// templates returns what each version of a proxy's Deployment makes pods of, in their order. It fails the test where a RunConfig
// does not say which tokens to accept, and where two versions of a RunConfig differ.
func (d documents) templates(t *testing.T) (found []template) {
	t.Helper()
	texts := map[string]string{}
	for _, v := range d.configMaps.Complete(t) {
		text, ok, _ := unstructured.NestedString(v.Object, "data", "runconfig.json")
		if !ok {
			continue
		}
		name := v.GetName()
		if !strings.Contains(text, `"oidc_config"`) || !strings.Contains(text, `"Issuer": "https://`) {
			t.Errorf("the RunConfig %s lets everybody in: %s", name, text)
		}
		if before, known := texts[name]; known && before != text {
			t.Errorf("the RunConfig %s has changed from %s to %s", name, before, text)
		}
		texts[name] = text
	}
	for _, v := range d.deployments.Complete(t) {
		now := template{Version: v, server: v.GetName()}
		volumes, _, _ := unstructured.NestedSlice(v.Object, "spec", "template", "spec", "volumes")
		for _, volume := range volumes {
			source, _ := volume.(map[string]any)
			name, _, _ := unstructured.NestedString(source, "configMap", "name")
			if text, ok := texts[name]; ok {
				now.document = text
			}
		}
		if now.document == "" {
			t.Errorf("resourceVersion %s of Deployment %s names no RunConfig that there was", v.GetResourceVersion(), v.GetName())
		}
		found = append(found, now)
	}
	return found
}

// never fails the test if a RunConfig, or a template, has shown one of the texts.
func (d documents) never(t *testing.T, texts ...string) {
	t.Helper()
	for _, v := range slices.Concat(d.configMaps.Complete(t), d.deployments.Complete(t)) {
		encoded, err := v.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			if strings.Contains(string(encoded), text) {
				t.Errorf("%s %s has shown %s at resourceVersion %s", v.GetKind(), v.GetName(), text, v.GetResourceVersion())
			}
		}
	}
}
