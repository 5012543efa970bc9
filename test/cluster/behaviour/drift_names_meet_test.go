// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestNamesThatMeetHarmNeither has an MCPServer a, and one whose children have names of a's, with each transport. A Service of a's that has
// lost its owner reference, because of a user or because a was deleted without its children, is neither deleted nor adopted by the other
// one: clients of a would reach another backend, past its proxy.
func TestNamesThatMeetHarmNeither(t *testing.T) {
	t.Parallel()
	for suffix, component := range map[string]harness.Component{"-proxy": harness.ProxyService, "-headless": harness.HeadlessService} {
		for _, transport := range []v1beta1.Transport{v1beta1.TransportStreamableHTTP, v1beta1.TransportStdio} {
			name := fmt.Sprintf("a%s %s", suffix, transport)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				m := &meeting{Namespace: env.Namespace(t), other: "a" + suffix, component: component, wants: transport != v1beta1.TransportStdio}
				m.run(t, harness.Server(m.other, transport))
			})
		}
	}
}

// TestNamesThatMeetAreRememberedApart has a write of one MCPServer's Service refused, while the other one that has a child of that name
// is edited all the time. The waits between the attempts grow all the same.
func TestNamesThatMeetAreRememberedApart(t *testing.T) {
	t.Parallel()
	const (
		lasting = 10 * time.Second
		edits   = 50
		most    = 12 // Waits that start at 0.2 s and double leave room for seven.
	)
	ns := env.Namespace(t)
	ns.Expect(t, harness.Forbidden, ns.Name)
	ns.Operate(t)
	ns.Create(t, harness.HTTPServer("a"))
	ns.AwaitSettled(t, "a")
	ns.Create(t, harness.HTTPServer("a-proxy"))
	ns.AwaitStatus(t, "a-proxy", harness.Expectation{Condition: v1beta1.ConditionFieldsOwned, Status: metav1.ConditionFalse, Reason: "ObjectNotOurs"})
	updates := admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"}},
	}
	ns.Deny(t, updates, admissionregistrationv1.Validation{
		Expression: "object.metadata.name != 'mcp-a-proxy'", Message: "no edits here", Reason: new(metav1.StatusReasonForbidden),
	})
	harness.Eventually(t, "the policy is in force", func(ctx context.Context) error {
		body := []byte(`{"metadata":{"labels":{"probe":"1"}}}`)
		_, err := ns.Core.CoreV1().Services(ns.Name).Patch(ctx, "mcp-a-proxy", types.MergePatchType, body, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return errors.New("the edit is admitted")
		}
		return nil
	})
	ns.AwaitRest(t)
	mark := ns.Mark(t)
	ns.Edit(t, "a", func(server *v1beta1.MCPServer) { server.Spec.ProxyPort = 9090 })
	for i := range edits {
		ns.Annotate(t, "a-proxy", "example.com/edit", strconv.Itoa(i))
		time.Sleep(lasting / edits) //nolint:forbidigo // It is the rate of the edits.
	}
	ns.AwaitStatus(t, "a", harness.WriteForbidden("service/mcp-a-proxy", "no edits here"))
	attempts := 0
	for _, e := range ns.Writes(t, mark) {
		if e.Resource == "services" && e.Name == "mcp-a-proxy" {
			attempts++
		}
	}
	if attempts > most {
		t.Errorf("the Service was tried %d times, want %d at most", attempts, most)
	}
}

// meeting is a component of MCPServer a that another MCPServer has, or would have, as well.
type meeting struct {
	*harness.Namespace
	other     string
	component harness.Component
	// wants tells that the other one has such a child.
	wants bool
}

func (m *meeting) run(t *testing.T, other *v1beta1.MCPServer) {
	t.Helper()
	const name = "a"
	service := harness.FormOf(m.component).Name(name)
	first := m.Operate(t)
	m.Create(t, harness.HTTPServer(name))
	m.AwaitSettled(t, name)
	m.Create(t, other)
	m.awaitTold(t, "service/"+service+": it belongs to MCPServer a: a child of each MCPServer has this name")
	m.AwaitSettled(t, name)
	m.AwaitRest(t)
	before := m.MustObject(t, m.component, name)

	// A user takes the reference away, once from an operator at work and once from one that is not there to see it.
	mark := m.Mark(t)
	m.MustPatch(t, harness.Hand, m.component, name, harness.Remove("/metadata/ownerReferences"))
	m.awaitOwner(t, name)
	harness.Stop(t, first)
	m.MustPatch(t, harness.Hand, m.component, name, harness.Remove("/metadata/ownerReferences"))
	m.Operate(t)
	after := m.awaitOwner(t, name)
	m.AwaitRest(t)
	if after.GetUID() != before.GetUID() {
		t.Error("the Service is another one")
	}
	m.checkWriters(t, mark, service, name)

	// It is left behind on purpose.
	mark = m.Mark(t)
	m.Delete(t, name, metav1.DeletePropagationOrphan)
	m.AwaitGone(t, name)
	m.awaitTold(t, "service/"+service+": MCPServer a, since deleted, left it behind", "kubectl delete -n "+m.Name+" service/"+service)
	m.AwaitRest(t)
	m.checkWriters(t, mark, service, name)
	left := m.MustObject(t, m.component, name)
	if left.GetUID() != before.GetUID() || len(left.GetOwnerReferences()) > 0 {
		t.Errorf("what was to stay belongs to %v", left.GetOwnerReferences())
	}
	m.Quiet(t, m.Mark(t), harness.Rest)

	m.Kubectl(t).Run(t, "delete", "-n", m.Name, "service/"+service)
	if m.wants {
		m.AwaitStatus(t, m.other, harness.Fine...)
		m.awaitOwner(t, m.other)
	}
}

// awaitTold waits until the other MCPServer tells of the Service, if it wants it, and that all is well if it does not.
func (m *meeting) awaitTold(t *testing.T, parts ...string) {
	t.Helper()
	if !m.wants {
		m.AwaitStatus(t, m.other, harness.Fine...)
		return
	}
	m.AwaitStatus(t, m.other, harness.Expectation{Condition: v1beta1.ConditionFieldsOwned, Status: metav1.ConditionFalse, Reason: "ObjectNotOurs", Message: parts})
}

// awaitOwner waits until the Service belongs to an MCPServer.
func (m *meeting) awaitOwner(t *testing.T, server string) (service *corev1.Service) {
	t.Helper()
	harness.Eventually(t, "the Service belongs to "+server, func(ctx context.Context) (err error) {
		service, err = m.Core.CoreV1().Services(m.Name).Get(ctx, harness.FormOf(m.component).Name("a"), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if owner := metav1.GetControllerOf(service); owner == nil || owner.Name != server {
			return fmt.Errorf("its owners are %v", service.OwnerReferences)
		}
		return nil
	})
	return service
}

// checkWriters fails the test if the operator has deleted the Service, or tried to, or has written it for another MCPServer.
func (m *meeting) checkWriters(t *testing.T, since audit.Mark, service, server string) {
	t.Helper()
	for _, e := range m.Writes(t, since) {
		if e.Resource != "services" || e.Name != service {
			continue
		}
		if err := writtenFor(e, server); err != nil {
			t.Errorf("%v: %s\n%s", err, e, e.Body)
		}
	}
}

func writtenFor(e *audit.Event, server string) error {
	if e.Verb == "delete" {
		return errors.New("a delete")
	}
	var body struct {
		Metadata struct{ OwnerReferences []metav1.OwnerReference }
	}
	if err := json.Unmarshal(e.Body, &body); err != nil {
		return err
	}
	for _, owner := range body.Metadata.OwnerReferences {
		if owner.Name != server {
			return fmt.Errorf("a write for %s", owner.Name)
		}
	}
	if !strings.Contains(string(e.Body), `"toolhive-name":"`+server+`"`) {
		return errors.New("a write that is not for " + server)
	}
	return nil
}
