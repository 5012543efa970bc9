// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	restclient "k8s.io/client-go/rest"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	toolhivev1beta1 "github.com/freehold-dev/freehold/generated/clientset/versioned/typed/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/takeover"
	"github.com/freehold-dev/freehold/test/harness"
)

// reporter may write the status of MCPServers, and nothing else.
type reporter struct {
	*installation
	servers toolhivev1beta1.MCPServerInterface
}

func (s *installation) reporter(t *testing.T) *reporter {
	t.Helper()
	const name = "reporter"
	meta, subject := metav1.ObjectMeta{Name: name}, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1beta1.SchemeGroupVersion.Group}, Resources: []string{"mcpservers/status"}, Verbs: []string{"get", "patch", "update"},
	}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{subject}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}
	if _, err := s.Core.RbacV1().Roles(s.Name).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Core.RbacV1().RoleBindings(s.Name).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config := restclient.CopyConfig(s.Config)
	config.Impersonate.UserName = name
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &reporter{s, client.ToolhiveV1beta1().MCPServers(s.Name)}
}

// forge writes to the status of an MCPServer, as several field managers, that its takeover has come so far; and in vain the record of that,
// and who owns it.
func (r *reporter) forge(t *testing.T, name string, progress v1beta1.TakeoverProgress) {
	t.Helper()
	condition := metav1.Condition{
		Type: v1beta1.ConditionTakenOver, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonTakingOver, Message: "forged",
		LastTransitionTime: metav1.Now(),
	}
	if progress == v1beta1.TakeoverDone {
		condition.Status, condition.Reason = metav1.ConditionTrue, v1beta1.ReasonTakenOver
	}
	for _, manager := range []string{"reporter", managers.ToolHiveOperator, managers.Takeover, managers.Status} {
		server := r.AwaitServer(t, name, "is there", func(*v1beta1.MCPServer) error { return nil })
		conditions := slices.DeleteFunc(slices.Clone(server.Status.Conditions), func(c metav1.Condition) bool { return c.Type == condition.Type })
		entry := metav1.ManagedFieldsEntry{
			Operation: metav1.ManagedFieldsOperationApply, APIVersion: v1beta1.SchemeGroupVersion.String(), FieldsType: "FieldsV1", Time: &condition.LastTransitionTime,
		}
		recorded, owned := entry, entry
		recorded.Manager, recorded.FieldsV1 = managers.Takeover, metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:`+v1beta1.AnnotationTakeoverProgress+`":{}}}}`)
		owned.Manager, owned.FieldsV1 = managers.Finalizer, metav1.NewFieldsV1(`{"f:metadata":{"f:finalizers":{"v:\"`+v1beta1.Finalizer+`\"":{}}}}`)
		body, err := json.Marshal(map[string]any{
			"metadata": map[string]any{
				"annotations":   map[string]string{v1beta1.AnnotationTakeoverProgress: string(progress)},
				"managedFields": append(slices.Clone(server.ManagedFields), recorded, owned),
			},
			"status": map[string]any{"conditions": append(conditions, condition)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.servers.Patch(t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: manager}); !apierrors.IsForbidden(err) {
			t.Fatalf("it may write the MCPServer: %v", err)
		}
		patched, err := r.servers.Patch(t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: manager}, "status")
		if err != nil {
			t.Fatal(err)
		}
		if was, is := takeover.Progress(server), takeover.Progress(patched); was != is {
			t.Errorf("a write of the status turns the record %q into %q", was, is)
		}
		r.AwaitRest(t)
	}
}

// expectOwners expects which of the two workloads have an owner of Freehold's, and what is recorded.
func (s *installation) expectOwners(t *testing.T, name, why string, progress v1beta1.TakeoverProgress, owners ...string) {
	t.Helper()
	var got []string
	objects := s.MustObjectsOf(t, name)
	for component, manager := range map[harness.Component]string{harness.Backend: managers.Backend, harness.Proxy: managers.Proxy} {
		if managers.Owns(objects[component], manager, "") {
			got = append(got, manager)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, owners) {
		t.Errorf("%s: %v own the workloads of %s, want %v", why, got, name, owners)
	}
	if is := takeover.Progress(objects[harness.ServerItself]); is != progress {
		t.Errorf("%s: the takeover of %s is %q, want %q", why, name, is, progress)
	}
}

func (s *installation) awaitProgress(t *testing.T, name string, progress v1beta1.TakeoverProgress) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("the takeover of %s is %s", name, progress), func(ctx context.Context) error {
		server, err := s.Servers.Get(ctx, name, metav1.GetOptions{})
		if err == nil && takeover.Progress(server) != progress {
			err = fmt.Errorf("it is %q; %+v", takeover.Progress(server), server.Status.Conditions)
		}
		return err
	})
}

// TestStatusNeitherBeginsNorStopsATakeover has a user who may write the status alone write there that takeovers are under way, and that they
// are done: of an MCPServer that waits for an approval, of one whose takeover is under way, and of one that Freehold has created. Neither
// the operator nor one that is started afterwards believes it.
func TestStatusNeitherBeginsNorStopsATakeover(t *testing.T) {
	t.Parallel()
	for _, progress := range []v1beta1.TakeoverProgress{v1beta1.TakeoverUnderWay, v1beta1.TakeoverDone} {
		t.Run(string(progress), func(t *testing.T) {
			t.Parallel()
			const waits, begun, ours, pauser = "waits", "begun", "ours", "kubectl-rollout"
			s := newInstallation(t)
			s.install(t, "edited", waits, begun)
			s.MustPatch(t, pauser, harness.Proxy, begun, harness.Add("/spec/paused", true))
			s.Create(t, harness.HTTPServer(ours))
			approve := func(name string) {
				s.Edit(t, name, func(server *v1beta1.MCPServer) {
					metav1.SetMetaDataAnnotation(&server.ObjectMeta, v1beta1.AnnotationTakeover, v1beta1.TakeoverApproved)
				})
			}
			approve(begun)
			p := s.Operate(t, "--takeover=manual")
			s.awaitTakeover(t, begun, v1beta1.ReasonTakingOver, "the rollout of the proxy")
			s.awaitTakeover(t, waits, v1beta1.ReasonNeedsApproval, "")
			s.AwaitSettled(t, ours)
			s.AwaitRest(t)
			r := s.reporter(t)
			for _, name := range []string{waits, begun, ours} {
				r.forge(t, name, progress)
			}
			for _, why := range []string{"the same operator", "another one"} {
				s.expectOwners(t, waits, why, "")
				s.expectOwners(t, begun, why, v1beta1.TakeoverUnderWay, managers.Proxy)
				s.expectOwners(t, ours, why, "", managers.Backend, managers.Proxy)
				if why == "the same operator" {
					p = s.ReplaceOperator(t, p, "--takeover=manual")
					s.AwaitRest(t)
				}
			}
			s.MustPatch(t, pauser, harness.Proxy, begun, harness.Replace("/spec/paused", false))
			approve(waits)
			for _, name := range []string{begun, waits} {
				s.awaitProgress(t, name, v1beta1.TakeoverDone)
			}
			s.AwaitRest(t)
			for _, name := range []string{begun, waits} {
				s.expectOwners(t, name, "at the end", v1beta1.TakeoverDone, managers.Backend, managers.Proxy)
			}
		})
	}
}

// TestTakeoverOfAnEarlierVersion leaves MCPServers as a version of Freehold that recorded no progress has left them: one whose takeover is under
// way, and two that were taken over. The former goes on. Of the others nothing is written; and when ToolHive has created a Deployment
// again, that is a conflict.
func TestTakeoverOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	const begun, taken, again, pauser = "begun", "taken", "again", "kubectl-rollout"
	s := newInstallation(t)
	s.install(t, "edited", begun, taken, again)
	s.MustPatch(t, pauser, harness.Proxy, begun, harness.Add("/spec/paused", true))
	p := s.Operate(t)
	s.awaitTakeover(t, begun, v1beta1.ReasonTakingOver, "the rollout of the proxy")
	s.awaitTakenOver(t, taken)
	s.awaitTakenOver(t, again)
	s.AwaitRest(t)
	harness.Stop(t, p)
	for _, name := range []string{begun, taken, again} {
		s.Edit(t, name, func(server *v1beta1.MCPServer) { delete(server.Annotations, v1beta1.AnnotationTakeoverProgress) })
		s.expectOwners(t, name, "an earlier version", "", map[string][]string{
			begun: {managers.Proxy}, taken: {managers.Backend, managers.Proxy}, again: {managers.Backend, managers.Proxy},
		}[name]...)
	}
	server := s.MustObject(t, harness.ServerItself, again)
	propagation := metav1.DeletePropagationForeground
	if err := s.Objects(harness.Proxy).Delete(t.Context(), again, metav1.DeleteOptions{PropagationPolicy: &propagation}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the end of the Deployment", func(ctx context.Context) error {
		if _, err := s.Objects(harness.Proxy).Get(ctx, again, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	s.makeChild(t, harness.Proxy, again, readRecording(t, "edited").object(t, harness.Proxy,
		placeName, again, placeNamespace, s.Name, placeServerUID, string(server.GetUID())))
	s.awaitRolledOut(t, again)

	mark := s.Mark(t)
	s.Operate(t, "--takeover=off")
	s.AwaitConflict(t, again, managers.ToolHiveOperator, "", "deployment.apps/"+again)
	s.MustPatch(t, pauser, harness.Proxy, begun, harness.Replace("/spec/paused", false))
	s.awaitProgress(t, begun, v1beta1.TakeoverDone)
	s.awaitTakenOver(t, begun)
	s.AwaitRest(t)
	s.expectOwners(t, again, "ToolHive came back", "", managers.Backend)
	s.expectOwners(t, begun, "it goes on", v1beta1.TakeoverDone, managers.Backend, managers.Proxy)
	for _, e := range s.Writes(t, mark) {
		if e.Resource != "events" && e.Name == taken {
			t.Errorf("it was taken over already: %v", e)
		}
	}
	s.awaitTakenOver(t, taken)
}
