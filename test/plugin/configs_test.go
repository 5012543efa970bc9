// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/plugin/cmd"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/takeover"
	"github.com/freehold-dev/freehold/test/harness"
)

// team is a group of MCPServers.
const team = `{"apiVersion":"toolhive.stacklok.dev/v1beta1","kind":"MCPGroup","metadata":{"name":"team"},"spec":{}}`

// kept is a namespace whose operator writes the status and the finalizer of an MCPOIDCConfig and of an MCPGroup.
type kept struct {
	*harness.Namespace
	kubectl *harness.Kubectl
}

// config is what is looked at of an object that MCPServers refer to.
type config struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		ConfigHash string
		Phase      string
		Conditions []metav1.Condition
	}
}

// get reads an object, such as mcpgroup/team.
func (k *kept) get(t *testing.T, object string) (found config) {
	t.Helper()
	if err := json.Unmarshal([]byte(k.kubectl.Run(t, "get", object, "-o", "json", "--show-managed-fields")), &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// await waits until an object is as a check wants it.
func (k *kept) await(t *testing.T, object, what string, check func(config) bool) {
	t.Helper()
	harness.Eventually(t, object+" "+what, func(context.Context) error {
		if found := k.get(t, object); !check(found) {
			return fmt.Errorf("it is %+v", found)
		}
		return nil
	})
}

// holders are the managers that hold something of an object, but for its users.
func holders(of config) (all []string) {
	for _, e := range of.ManagedFields {
		if e.Manager != "kubectl" {
			all = append(all, e.Manager+" "+string(e.Operation)+" "+e.Subresource)
		}
	}
	slices.Sort(all)
	return all
}

// tells reports whether the condition FieldsOwned of an object tells of a conflict.
func tells(of config) bool {
	return meta.IsStatusConditionFalse(of.Status.Conditions, v1beta1.ConditionFieldsOwned)
}

func isKept(of config) bool { return len(of.Finalizers) > 0 && len(of.Status.Conditions) > 0 }

func newKept(t *testing.T) *kept {
	t.Helper()
	k := &kept{Namespace: env.Namespace(t)}
	k.kubectl = k.Kubectl(t)
	apply(t, k.kubectl, configuration("https://idp.example.com"))
	apply(t, k.kubectl, team)
	return k
}

// setStatus merges into a status as another manager does.
func (k *kept) setStatus(t *testing.T, manager, object, status string) {
	t.Helper()
	k.kubectl.Run(t, "patch", object, "--subresource=status", "--type=merge", "--field-manager="+manager, "--patch", `{"status":`+status+`}`)
}

// TestConflictsOfConfigs sets the status of what MCPServers refer to under another name. Condition, event and plugin name both sides
// and the way out, which is gone.
func TestConflictsOfConfigs(t *testing.T) {
	k := newKept(t)
	p := k.Operate(t, "--configs=freehold")
	k.await(t, "mcpoidcconfig/corp", "is kept", isKept)
	k.await(t, "mcpgroup/team", "is kept", isKept)
	hash := k.get(t, "mcpoidcconfig/corp").Status.ConfigHash
	if got := must(t, k.Namespace, cmd.ExitDone, "conflicts", known); got.out != "No conflicts.\n" || got.errOut != "" {
		t.Errorf("it says %s%s", got.out, got.errOut)
	}
	k.setStatus(t, "somebody", "mcpoidcconfig/corp", `{"configHash":"mine"}`)
	k.setStatus(t, "somebody", "mcpgroup/team", `{"phase":"Failed"}`)
	for _, object := range []string{"mcpoidcconfig/corp", "mcpgroup/team"} {
		k.await(t, object, "tells of the conflict", tells)
	}
	golden(t, k.Namespace, "conflicts-configs", must(t, k.Namespace, cmd.ExitFound, "conflicts", known).out)
	golden(t, k.Namespace, "conflicts-configs-wide", must(t, k.Namespace, cmd.ExitFound, "conflicts", "mcpgroup/team", known, "-o", "wide").out)
	golden(t, k.Namespace, "conflicts-configs-yaml", must(t, k.Namespace, cmd.ExitFound, "conflicts", "mcpoidc/corp", known, "-o", "yaml").out)
	all := must(t, k.Namespace, cmd.ExitFound, "conflicts", "-A", known).out
	says(t, "of all namespaces", all, "mcpgroup.toolhive.stacklok.dev/team (namespace "+k.Name+")")
	if got := must(t, env.Namespace(t), cmd.ExitDone, "conflicts", known); got.out != "No conflicts.\n" {
		t.Errorf("of another namespace it says %s", got.out)
	}
	must(t, k.Namespace, cmd.ExitDone, "conflicts", known, "--operator-arg=--configs=toolhive")
	says(t, "another kind", must(t, k.Namespace, cmd.ExitFailed, "conflicts", "namespace/"+k.Name, known).errOut, "is neither an MCPServer nor")
	says(t, "no such object", must(t, k.Namespace, cmd.ExitFailed, "conflicts", "mcpgroup/none", known).errOut, "not found")

	var answer printers.Conflicts
	if err := json.Unmarshal([]byte(must(t, k.Namespace, cmd.ExitFound, "conflicts", known, "-o", "json").out), &answer); err != nil {
		t.Fatal(err)
	}
	for _, c := range answer.Configs {
		met, err := harness.Metric(t.Context(), p, "freehold_field_conflicts", fmt.Sprintf("writer=%q", c.Fields[0].Writer), `manager_class="other"`)
		if err != nil || int(met) != len(c.Fields) {
			t.Errorf("the operator counts %v conflicts of %s, %v; the plugin %d", met, c.Object, err, len(c.Fields))
		}
		says(t, "the condition", c.Told.Message, `field manager "somebody" with subresource "status" owns `+c.Fields[0].Path+" of "+c.Object+"; "+c.Fields[0].Writer+" wants", c.End+": "+c.Clear)
		event := k.kubectl.Run(t, "get", "events", "--field-selector=reason=FieldManagerConflict", "-o", "jsonpath={.items[*].message}")
		says(t, "the event", event, c.Told.Message)
		k.kubectl.Shell(t, c.Clear)
	}
	k.await(t, "mcpoidcconfig/corp", "is the operator's again", func(c config) bool { return c.Status.ConfigHash == hash && !tells(c) })
	k.await(t, "mcpgroup/team", "is the operator's again", func(c config) bool { return c.Status.Phase == "Ready" && !tells(c) })
	must(t, k.Namespace, cmd.ExitDone, "conflicts", known)

	// ToolHive's operator works beside Freehold's, which then writes no more.
	k.setStatus(t, managers.ToolHiveOperator, "mcpoidcconfig/corp", `{"configHash":"theirs"}`)
	k.AwaitOperatorRest(t)
	says(t, "beside ToolHive", must(t, k.Namespace, cmd.ExitFound, "conflicts", known).out,
		".status.configHash", "thv-operator (Update/status)", "Stop ToolHive's operator and run Freehold's with --configs=freehold")
}

// TestHandbackOfConfigs hands back what MCPServers refer to, with the last of them. ToolHive's operator goes on with it by update,
// beside an operator of Freehold's that leaves it alone; and Freehold can take it over again.
func TestHandbackOfConfigs(t *testing.T) {
	k := newKept(t)
	p := k.Operate(t, "--configs=freehold")
	k.Create(t, harness.HTTPServer("web", func(s *v1beta1.MCPServer) {
		s.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: "corp", Audience: "tools"}
		s.Spec.GroupRef = &v1beta1.MCPGroupRef{Name: "team"}
	}))
	k.Create(t, harness.HTTPServer("api", func(s *v1beta1.MCPServer) {
		s.Spec.OIDCConfigRef = &v1beta1.MCPOIDCConfigReference{Name: "corp", Audience: "tools"}
	}))
	k.await(t, "mcpgroup/team", "is kept", isKept)
	k.await(t, "mcpoidcconfig/corp", "is kept", isKept)
	for _, name := range []string{"web", "api"} {
		k.AwaitServer(t, name, "has a finalizer", func(s *v1beta1.MCPServer) error {
			if len(s.Finalizers) == 0 || len(s.Status.Conditions) == 0 {
				return fmt.Errorf("it is %+v", s)
			}
			return nil
		})
	}
	k.AwaitOperatorRest(t)
	harness.Stop(t, p)

	before := k.get(t, "mcpoidcconfig/corp")
	const stays = "note: mcpoidcconfig.toolhive.stacklok.dev/corp stays Freehold's, as MCPServer api does, which refers to it\n"
	preview := must(t, k.Namespace, cmd.ExitDone, "handback", "web", "--dry-run")
	says(t, "the preview", preview.out+preview.errOut, "mcpgroup.toolhive.stacklok.dev/team (namespace "+k.Name+"):\n  Its finalizer and its status stay", stays)
	if got := k.get(t, "mcpgroup/team"); slices.Contains(holders(got), "thv-operator Update ") {
		t.Errorf("the preview has written: %v", holders(got))
	}
	if got := must(t, k.Namespace, cmd.ExitDone, "handback", "web", "--yes"); got.errOut != stays {
		t.Errorf("it says %s", got.errOut)
	}
	ofToolHive := []string{"thv-operator Update ", "thv-operator Update status"}
	if got := holders(k.get(t, "mcpgroup/team")); !slices.Equal(got, ofToolHive) {
		t.Errorf("the group is held by %v", got)
	}
	if got := holders(k.get(t, "mcpoidcconfig/corp")); !slices.Equal(got, []string{"freehold-config-finalizer Apply ", "freehold-config-status Apply status"}) {
		t.Errorf("what another MCPServer refers to is held by %v", got)
	}
	// One that is on its way out goes back as well: ToolHive's operator releases it.
	k.kubectl.Run(t, "delete", "mcpoidcconfig/corp", "--wait=false")
	must(t, k.Namespace, cmd.ExitDone, "handback", "api", "--yes")
	after := k.get(t, "mcpoidcconfig/corp")
	if got := holders(after); !slices.Equal(got, ofToolHive) || !slices.Equal(after.Finalizers, before.Finalizers) ||
		after.Status.ConfigHash != before.Status.ConfigHash || len(after.Status.Conditions) != len(before.Status.Conditions) {
		t.Errorf("it is held by %v: %+v", got, after)
	}
	if again := must(t, k.Namespace, cmd.ExitDone, "handback", "web", "api", "--yes"); again.out != "Freehold owns nothing of them.\n" {
		t.Errorf("the second time it says %s", again.out)
	}

	k.kubectl.Run(t, "delete", "mcpserver/web", "mcpserver/api", "--wait=false")
	mark := k.Mark(t)
	p = k.Operate(t, "--takeover=off")
	k.owned(t, p, "toolhive", 2)
	k.setStatus(t, managers.ToolHiveOperator, "mcpgroup/team", `{"phase":"Pending","servers":null,"serverCount":0}`)
	k.setStatus(t, managers.ToolHiveOperator, "mcpoidcconfig/corp", `{"configHash":"theirs"}`)
	k.kubectl.Run(t, "patch", "mcpoidcconfig/corp", "--type=merge", "--field-manager="+managers.ToolHiveOperator, "--patch", `{"metadata":{"finalizers":null}}`)
	harness.Eventually(t, "it is gone", func(ctx context.Context) error {
		if out, err := k.kubectl.Try(ctx, harness.Call{Args: []string{"get", "mcpoidcconfig/corp", "--ignore-not-found"}}); err != nil || out != "" {
			return fmt.Errorf("%s %w", out, err)
		}
		return nil
	})
	k.AwaitOperatorRest(t)
	for _, e := range k.Writes(t, mark) {
		if audit.Resource(v1beta1.SchemeGroupVersion.Group, "mcpgroups")(e) || audit.Resource(v1beta1.SchemeGroupVersion.Group, "mcpoidcconfigs")(e) {
			t.Errorf("Freehold has written %v", e)
		}
	}
	harness.Stop(t, p)
	p = k.Operate(t, "--configs=freehold")
	k.owned(t, p, "freehold", 1)
	k.await(t, "mcpgroup/team", "is taken over again", func(c config) bool {
		return c.Status.Phase == "Ready" && slices.Equal(holders(c), []string{"freehold-config-finalizer Apply ", "freehold-group-status Apply status"})
	})
}

// TestHandbackOfConfigsInterrupted lets an operator of Freehold's start while the plugin holds what it was to hand back. The operator
// takes it back.
func TestHandbackOfConfigsInterrupted(t *testing.T) {
	harness.Long(t)
	k := newKept(t)
	p := k.Operate(t, "--configs=freehold")
	k.await(t, "mcpgroup/team", "is kept", isKept)
	k.await(t, "mcpoidcconfig/corp", "is kept", isKept)
	k.AwaitOperatorRest(t)
	harness.Stop(t, p)
	before := k.get(t, "mcpoidcconfig/corp")
	for i := range 2 {
		live := &unstructured.Unstructured{}
		if err := live.UnmarshalJSON([]byte(k.kubectl.Run(t, "get", "mcpoidcconfig/corp", "-o", "json", "--show-managed-fields"))); err != nil {
			t.Fatal(err)
		}
		patch, err := takeover.HandbackAlone(live)[i].Gather(live, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		k.kubectl.Run(t, "patch", "mcpoidcconfig/corp", "--type=json", "--field-manager="+managers.Plugin, "--patch", string(patch))
	}
	if got := holders(k.get(t, "mcpoidcconfig/corp")); !slices.Equal(got, []string{"kubectl-freehold Apply ", "kubectl-freehold Apply status"}) {
		t.Fatalf("it is held by %v", got)
	}
	k.Operate(t)
	k.await(t, "mcpoidcconfig/corp", "is Freehold's again", func(c config) bool {
		return slices.Equal(holders(c), holders(before)) && !tells(c) && c.Status.ConfigHash == before.Status.ConfigHash
	})
	must(t, k.Namespace, cmd.ExitDone, "conflicts", known)
}

// owned waits until the operator counts so many objects as an operator's.
func (k *kept) owned(t *testing.T, p *operator.Process, owner string, count int) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("%d are %s's", count, owner), func(ctx context.Context) error {
		got, err := harness.Metric(ctx, p, "freehold_configs", fmt.Sprintf("owner=%q", owner))
		if err == nil && int(got) != count {
			err = fmt.Errorf("%v are", got)
		}
		return err
	})
}
