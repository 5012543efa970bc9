// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// trial is something that is done to a component of an MCPServer, for trial.
type trial struct {
	component harness.Component
	// patch is a JSON patch of the object. If apply is not empty, that is applied by force instead.
	patch []harness.Operation
	apply string
	// subresource that is written.
	subresource string
	// by is who does it; nil is a user with all rights.
	by func(t *testing.T, ns *harness.Namespace) *somebody
	// owner is whose field it is, as far as there is something to warn of.
	owner string
}

func (e trial) do(ctx context.Context, s *somebody, server string) error {
	client := s.objects(e.component)
	name, err := s.ns.NameOf(ctx, e.component, server)
	if err != nil {
		return err
	}
	kind, options := types.JSONPatchType, metav1.PatchOptions{FieldManager: harness.Hand, DryRun: []string{metav1.DryRunAll}}
	body, err := json.Marshal(e.patch)
	if err != nil {
		return err
	}
	if e.apply != "" {
		kind, options.FieldManager, options.Force = types.ApplyYAMLPatchType, harness.Team, new(true)
		body = fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,%s}`,
			harness.FormOf(e.component).Resource.GroupVersion(), harness.FormOf(e.component).Kind.Kind, e.apply)
	}
	var subresources []string
	if e.subresource != "" {
		subresources = []string{e.subresource}
	}
	_, err = client.Patch(ctx, name, kind, body, options, subresources...)
	return err
}

func jsonPatch(operations ...harness.Operation) []harness.Operation { return operations }

// asUser acts as another user, such as a component of Kubernetes.
func asUser(name string, groups ...string) func(t *testing.T, ns *harness.Namespace) *somebody {
	return func(t *testing.T, ns *harness.Namespace) *somebody {
		t.Helper()
		return impersonate(t, ns, name, groups...)
	}
}

var otherImage = jsonPatch(harness.Replace(harness.FirstContainer+"/image", "example.com/other:1"))

// trials are what is warned of, and what is not.
var trials = map[string]trial{
	"another image": {component: harness.Proxy, patch: otherImage, owner: managers.Proxy},
	"a variable":    {component: harness.Backend, patch: jsonPatch(harness.Remove(harness.FirstContainer + "/env/0")), owner: managers.Backend},
	"a label of ours": {
		component: harness.Proxy, patch: jsonPatch(harness.Replace("/metadata/labels/toolhive", "no")), owner: managers.Proxy,
	},
	"by force": {component: harness.Proxy, apply: `"metadata":{"labels":{"toolhive":"no"}}`, owner: managers.Proxy},
	"a number": {component: harness.Backend, patch: jsonPatch(harness.Replace("/spec/replicas", 2)), owner: managers.BackendReplicas},
	"a selector": {
		component: harness.BackendService, patch: jsonPatch(harness.Add("/spec/selector/zone", "a")), owner: managers.Service,
	},
	"a label of it":     {component: harness.RunConfig, patch: jsonPatch(harness.Replace("/metadata/labels/toolhive.stacklok.io~1component", "no")), owner: managers.RunConfig},
	"rights":            {component: harness.ProxyRole, patch: jsonPatch(harness.Remove("/rules/0")), owner: managers.Access},
	"who has them":      {component: harness.ProxyBinding, patch: jsonPatch(harness.Replace("/subjects/0/name", "me")), owner: managers.Access},
	"whose account":     {component: harness.ProxyAccount, patch: jsonPatch(harness.Remove("/metadata/ownerReferences")), owner: managers.Access},
	"all records":       {component: harness.Proxy, patch: jsonPatch(harness.Replace("/metadata/managedFields", []any{map[string]any{}})), owner: managers.Proxy},
	"by a tool":         {component: harness.Proxy, patch: otherImage, by: asUser("system:serviceaccount:ci:tool", "system:serviceaccounts:ci"), owner: managers.Proxy},
	"a label of theirs": {component: harness.Proxy, patch: jsonPatch(harness.Add("/metadata/labels/theirs", "yes"))},
	"an annotation":     {component: harness.RunConfig, patch: jsonPatch(harness.Add("/metadata/annotations/theirs", "yes"))},
	"a restart": {
		component: harness.Proxy,
		patch: jsonPatch(harness.Add("/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt",
			"2026-01-01T00:00:00Z")),
	},
	"a sidecar": {
		component: harness.Backend,
		patch:     jsonPatch(harness.Add("/spec/template/spec/containers/-", map[string]any{"name": "theirs", "image": "example.com/sidecar:1"})),
	},
	"the same value":     {component: harness.Proxy, apply: `"metadata":{"labels":{"toolhive":"true"}}`},
	"nothing":            {component: harness.Proxy, patch: jsonPatch(harness.Replace("/metadata/labels/toolhive", "true"))},
	"scaling":            {component: harness.Backend, patch: jsonPatch(harness.Replace("/spec/replicas", 2)), subresource: "scale"},
	"by the manager":     {component: harness.Proxy, patch: otherImage, by: asUser("system:kube-controller-manager")},
	"by a controller":    {component: harness.Proxy, patch: otherImage, by: asUser("system:serviceaccount:kube-system:deployment-controller", "system:serviceaccounts:kube-system")},
	"the MCPServer":      {component: harness.ServerItself, patch: jsonPatch(harness.Replace("/spec/image", "example.com/mcp:2"))},
	"a note on the same": {component: harness.ServerItself, patch: jsonPatch(harness.Add("/metadata/annotations", map[string]any{"theirs": "yes"}))},
}

// TestPolicyOwnedFields changes fields that are the operator's, and fields that are not. All of it is let pass.
func TestPolicyOwnedFields(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	const name, foreign = "warned", "database"
	server := harness.Server(name, v1beta1.TransportStreamableHTTP)
	harness.Replicas(1, 1)(server)
	ns.Create(t, server)
	ns.AwaitSettled(t, name)
	admin := as(t, ns, env.Config)
	object := objectOf(harness.Proxy, foreign)
	if _, err := admin.objects(harness.Proxy).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bound := installPolicy(t, ns, ownedFieldsPolicy)
	harness.Eventually(t, "the policy is asked", func(ctx context.Context) error {
		if err := trials["another image"].do(ctx, admin, name); err != nil {
			return err
		}
		if len(admin.warnings.take(bound)) == 0 {
			return errors.New("there is no warning")
		}
		return nil
	})

	for what, e := range trials {
		somebody := admin
		if e.by != nil {
			somebody = e.by(t, ns)
		}
		if err := e.do(t.Context(), somebody, name); err != nil {
			t.Errorf("%s should be let pass: %v", what, err)
			continue
		}
		checkWarning(t, what, e, name, somebody.warnings.take(bound))
	}
	if err := trials["another image"].do(t.Context(), admin, foreign); err != nil {
		t.Error(err)
	}
	if texts := admin.warnings.take(bound); len(texts) > 0 {
		t.Errorf("a Deployment of nobody's: %q", texts)
	}
	said := ns.Kubectl(t).Shell(t, "kubectl set image deployment/"+name+" toolhive=example.com/other:1 --dry-run=server 2>&1")
	if !strings.Contains(said, "Warning: ") || !strings.Contains(said, bound) || !strings.Contains(said, "edit MCPServer "+name) {
		t.Errorf("kubectl does not tell: %s", said)
	}
	if !audited(t, ns, bound) {
		t.Error("the audit log does not tell of it")
	}
}

// checkWarning looks for what a user has to know: whose field it is, which object, and what to do.
func checkWarning(t *testing.T, what string, e trial, server string, texts []string) {
	t.Helper()
	if e.owner == "" {
		if len(texts) > 0 {
			t.Errorf("%s is nothing to warn of: %q", what, texts)
		}
		return
	}
	if len(texts) != 1 {
		t.Errorf("%s: %d warnings, want 1: %q", what, len(texts), texts)
		return
	}
	form := harness.FormOf(e.component)
	target := strings.ToLower(form.Kind.Kind)
	if form.Kind.Group != "" {
		target += "." + form.Kind.Group
	}
	target += "/" + form.Name(server)
	wanted := []string{e.owner, target, "edit MCPServer " + server, v1beta1.AnnotationTake + "=" + target}
	switch e.component {
	case harness.Proxy, harness.Backend, harness.BackendService:
		wanted = append(wanted, v1beta1.AnnotationYield+"="+target)
	default:
		if strings.Contains(texts[0], v1beta1.AnnotationYield) {
			t.Errorf("%s cannot be left to others: %s", what, texts[0])
		}
	}
	for _, part := range wanted {
		if !strings.Contains(texts[0], part) {
			t.Errorf("%s: the warning does not name %q: %s", what, part, texts[0])
		}
	}
}

// audited tells whether the audit log says of some request that a policy would have refused it.
func audited(t *testing.T, ns *harness.Namespace, policy string) bool {
	t.Helper()
	ns.Mark(t) // What was answered before is in the log now.
	log, err := os.Open(env.Cluster.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadString('\n')
		// The name is also in the request that made the policy.
		if strings.Contains(line, policy) && strings.Contains(line, "validation.policy.admission.k8s.io/validation_failure") {
			return true
		}
		if errors.Is(err, io.EOF) {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
