// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/pkg/plugin/cmd"
	"github.com/freehold-dev/freehold/pkg/plugin/health"
	"github.com/freehold-dev/freehold/test/documents"
	"github.com/freehold-dev/freehold/test/harness"
)

// patient is an installation of Freehold as the README tells to install it, in a cluster of its own. The operator's pods are fake: a
// process stands in for them, and the test holds their Lease.
type patient struct {
	*harness.Namespace
	kubectl *harness.Kubectl
}

func newPatient(t *testing.T) *patient {
	t.Helper()
	p := &patient{Namespace: harness.NewForTest(t).Namespace(t)}
	p.kubectl = p.Kubectl(t)
	p.kubectl.Run(t, "delete", "-k", filepath.Join("..", "..", "deploy", "crd"))
	p.define(t)
	p.install(t)
	p.Operate(t)
	p.Create(t, harness.Server(web, v1beta1.TransportStreamableHTTP))
	p.AwaitReady(t, web)
	return p
}

// define installs the definitions.
func (p *patient) define(t *testing.T) {
	t.Helper()
	p.apply(t, must(t, p.Namespace, cmd.ExitDone, "crd").out)
	p.kubectl.Run(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=1m")
}

func (p *patient) apply(t *testing.T, objects string) {
	t.Helper()
	p.kubectl.Do(t, harness.Call{Args: []string{"apply", "--server-side", "-f", "-"}, Input: objects})
}

// install installs the operator, or what of it is missing.
func (p *patient) install(t *testing.T) {
	t.Helper()
	p.kubectl.Run(t, "apply", "--server-side", "-f", filepath.Join("..", "..", "deploy", "install-without-crd.yaml"))
	p.kubectl.Run(t, "rollout", "status", "deployment/freehold", "-n", operator.Namespace, "--timeout=3m")
	p.lead(t)
}

// lead lets one of the operator's pods hold the Lease.
func (p *patient) lead(t *testing.T) {
	t.Helper()
	pods, err := p.Core.CoreV1().Pods(operator.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=operator"})
	if err != nil {
		t.Fatal(err)
	}
	living := slices.IndexFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp == nil })
	if living < 0 {
		t.Fatal("the operator has no pod")
	}
	p.apply(t, fmt.Sprintf(`{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "freehold", "namespace": "freehold-system"},
		"spec": {"holderIdentity": "%s_1", "leaseDurationSeconds": 3600, "renewTime": "%s"}}`,
		pods.Items[living].Name, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")))
}

// runs is the plugin with the real time.
func (p *patient) runs(t *testing.T, args ...string) result {
	t.Helper()
	return do(t, p.Namespace, call{args: args, ownClock: true})
}

// doctor returns what it finds, and its exit code.
func (p *patient) doctor(t *testing.T, args ...string) (found health.Diagnosis, code int) {
	t.Helper()
	got := p.runs(t, append([]string{"doctor", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(got.out), &found); err != nil {
		t.Fatalf("%v: it ends with %d and prints %s%s", err, got.code, got.out, got.errOut)
	}
	return found, got.code
}

// problems are the checks that are not OK, with what they have found.
func problems(found health.Diagnosis) (all []string) {
	for _, c := range found.Checks {
		for _, f := range c.Findings {
			all = append(all, fmt.Sprintf("%s %s %s: %s", c.Name, f.Reason, f.Object, f.Message))
		}
		for _, text := range c.NotChecked {
			all = append(all, c.Name+" not checked: "+text)
		}
	}
	return all
}

// TestDoctor breaks a healthy installation in several ways, one after the other, and mends it again.
func TestDoctor(t *testing.T) {
	harness.Long(t)
	p := newPatient(t)
	healthy := func() error {
		if found, code := p.doctor(t); code != cmd.ExitDone || found.State != health.OK {
			return fmt.Errorf("doctor ends with %d: %s, %q", code, found.State, problems(found))
		}
		if got := p.runs(t, "status"); got.code != cmd.ExitDone {
			return fmt.Errorf("status ends with %d:\n%s", got.code, got.out)
		}
		return nil
	}
	mark := p.Mark(t)
	if err := healthy(); err != nil {
		t.Fatal(err)
	}
	p.checkWritesNothing(t, mark)
	p.checkScreen(t)
	p.checkServer(t)

	kubectl := func(args ...string) func(*testing.T) { return func(t *testing.T) { p.kubectl.Run(t, args...) } }
	in := func(args ...string) func(*testing.T) { return kubectl(append(args, "-n", operator.Namespace)...) }
	const issuers = "customresourcedefinition/mcpoidcconfigs.toolhive.stacklok.dev"
	for name, test := range map[string]struct {
		harm, mend func(*testing.T)
		// check that tells it, with the reason.
		check, reason string
		// code is that of doctor, and status that of status.
		code, status int
	}{
		"the operator is scaled to 0": {
			in("scale", "deployment/freehold", "--replicas=0"), p.install, "operator", "ScaledToZero", cmd.ExitFound, cmd.ExitFound,
		},
		"no operator":                {in("delete", "deployment/freehold"), p.install, "operator", "NoOperator", cmd.ExitFound, cmd.ExitFound},
		"nobody leads":               {in("patch", "lease/freehold", "--type=merge", "-p", `{"spec":{"holderIdentity":""}}`), p.leadAnew, "leader", "NoLeader", cmd.ExitFound, cmd.ExitFound},
		"the Lease is not renewed":   {in("patch", "lease/freehold", "--type=merge", "-p", `{"spec":{"renewTime":"2026-01-01T00:00:00.000000Z"}}`), p.leadAnew, "leader", "StaleLease", cmd.ExitFound, cmd.ExitFound},
		"a definition is missing":    {kubectl("delete", issuers), p.define, "crds", "NotInstalled", cmd.ExitDone, cmd.ExitDone},
		"a definition is older":      {p.withoutField, p.define, "crds", "FieldsMissing", cmd.ExitDone, cmd.ExitDone},
		"a version has left":         {p.withoutAlpha, p.recordAnew, "crds", "RecordedVersion", cmd.ExitFound, cmd.ExitFound},
		"a field was dropped":        {p.dropped, p.asIs, "crds", "DroppedFields", cmd.ExitFound, cmd.ExitFound},
		"the operator has no rights": {kubectl("delete", "clusterrolebinding/freehold"), p.install, "rights", "RightMissing", cmd.ExitFound, cmd.ExitFound},
		"a policy has no binding":    {p.withoutBinding, kubectl("delete", "-k", filepath.Join("..", "..", "deploy", "policy"), "--ignore-not-found"), "policies", "NoBinding", cmd.ExitDone, cmd.ExitDone},
		"ToolHive's operator runs":   {in("create", "deployment", "thv", "--image=ghcr.io/stacklok/toolhive/operator:v0.44.0"), in("delete", "deployment/thv"), "operators", "ToolHiveRuns", cmd.ExitFound, cmd.ExitDone},
		"a second operator runs":     {kubectl("create", "deployment", "second", "--image=example.com/freehold/freehold:v1"), kubectl("delete", "deployment/second"), "operators", "TwoOperators", cmd.ExitFound, cmd.ExitDone},
		"an image without a version": {p.latest, kubectl("delete", "mcpserver/latest"), "images", "NoVersion", cmd.ExitDone, cmd.ExitDone},
		"a name that is taken":       {p.blocked, kubectl("delete", "mcpserver/blocked", "service/mcp-blocked"), "names", "ObjectNotOurs", cmd.ExitFound, cmd.ExitFound},
	} {
		t.Run(name, func(t *testing.T) {
			test.harm(t)
			harness.Eventually(t, "it is told", func(context.Context) error {
				found, code := p.doctor(t)
				at := slices.IndexFunc(found.Checks, func(c health.Check) bool { return c.Name == test.check })
				if !slices.ContainsFunc(found.Checks[at].Findings, func(f health.Finding) bool { return f.Reason == test.reason && f.Do != "" }) || code != test.code {
					return fmt.Errorf("doctor ends with %d: %q", code, problems(found))
				}
				// Where status reads what the operator has written, that may come later.
				if got := p.runs(t, "status"); got.code != test.status {
					return fmt.Errorf("status ends with %d, want %d:\n%s%s", got.code, test.status, got.out, got.errOut)
				}
				return nil
			})
			test.mend(t)
			harness.Eventually(t, "it is healthy again", func(context.Context) error { return healthy() })
		})
	}
	p.checkRights(t)
	for _, command := range documents.Of(t) {
		if command.Section == droppedFields {
			continue // typed by asIs
		}
		if out := p.kubectl.Shell(t, command.Text); out == "" {
			t.Errorf("%s prints nothing", command)
		}
	}
}

// leadAnew mends the Lease.
func (p *patient) leadAnew(t *testing.T) {
	t.Helper()
	p.kubectl.Run(t, "delete", "lease/freehold", "-n", operator.Namespace)
	p.lead(t)
}

// withoutField makes the definition of MCPServers one of an older ToolHive.
func (p *patient) withoutField(t *testing.T) {
	t.Helper()
	p.apply(t, changed(t, "mcpservers.toolhive.stacklok.dev", func(spec map[string]any) { delete(spec, "proxyReadTimeout") }))
}

// withoutAlpha has a field manager of an MCPServer recorded in a version, which then leaves the definition. What is to be applied to the
// MCPServer is refused, and the user is told why.
func (p *patient) withoutAlpha(t *testing.T) {
	t.Helper()
	p.kubectl.Run(t, "set", "image", "deployment/web", "toolhive=example.com/runner:mine")
	p.AwaitConflict(t, web, "kubectl-set")
	p.kubectl.Do(t, harness.Call{
		Args: []string{"apply", "--server-side", "--field-manager=author-of-alpha", "-f", "-"},
		Input: `{"apiVersion": "toolhive.stacklok.dev/v1alpha1", "kind": "MCPServer", "metadata": {"name": "web"},
			"spec": {"image": "example.com/mcp:1", "transport": "streamable-http"}}`,
	})
	definition := &unstructured.Unstructured{}
	if err := definition.UnmarshalJSON([]byte(changed(t, "mcpservers.toolhive.stacklok.dev", func(map[string]any) {}))); err != nil {
		t.Fatal(err)
	}
	spec := definition.Object["spec"].(map[string]any)
	spec["versions"] = slices.DeleteFunc(spec["versions"].([]any), func(version any) bool { return version.(map[string]any)["name"] == "v1alpha1" })
	text, err := definition.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	p.apply(t, string(text))
	const why = "has managedFields in the version toolhive.stacklok.dev/v1alpha1"
	harness.Eventually(t, "the API server applies nothing", func(context.Context) error {
		for _, verb := range []string{"take", "yield"} {
			got := p.runs(t, verb, "mcpserver/web", "--dry-run=server")
			if got.code == cmd.ExitDone || !strings.Contains(got.errOut, why) || !strings.Contains(got.errOut, "kubectl freehold doctor") {
				return fmt.Errorf("%s ends with %d: %s%s", verb, got.code, got.out, got.errOut)
			}
		}
		return nil
	})
	if got := p.runs(t, "handback", "mcpserver/web", "--dry-run"); got.code == cmd.ExitDone || !strings.Contains(got.out, why) {
		t.Errorf("handback ends with %d: %s%s", got.code, got.out, got.errOut)
	}
	for verb, code := range map[string]int{"owners": cmd.ExitDone, "conflicts": cmd.ExitFound, "diff": cmd.ExitFound} {
		if got := p.runs(t, verb, "mcpserver/web"); got.code != code {
			t.Errorf("%s ends with %d: %s%s", verb, got.code, got.out, got.errOut)
		}
	}
}

// recordAnew mends that as docs/upgrade.md says.
func (p *patient) recordAnew(t *testing.T) {
	t.Helper()
	p.kubectl.Shell(t, `kubectl get mcpservers -A -o json --show-managed-fields | `+
		`sed 's#"apiVersion": "toolhive.stacklok.dev/v1alpha1"#"apiVersion": "toolhive.stacklok.dev/v1beta1"#' | kubectl replace -f -`)
	if found, _ := p.doctor(t); slices.ContainsFunc(problems(found), func(text string) bool { return strings.Contains(text, "RecordedVersion") }) {
		t.Errorf("doctor still finds %q", problems(found))
	}
	p.define(t)
	// The definition has changed several times within two minutes, and each change has ended the operator's watch. A reflector of client-go
	// waits longer each time before it watches again, up to a minute.
	if got := p.runs(t, "take", "mcpserver/web", "--yes", "--timeout=3m"); got.code != cmd.ExitDone {
		t.Errorf("take ends with %d: %s%s", got.code, got.out, got.errOut)
	}
}

// droppedFields is the section of docs/upgrade.md about them.
const droppedFields = "Fields that a CRD does not have"

// dropped makes an MCPServer with a field of an older ToolHive.
func (p *patient) dropped(t *testing.T) {
	t.Helper()
	p.kubectl.Do(t, harness.Call{
		Args: []string{"apply", "--validate=ignore", "-f", "-"},
		Input: `{"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "metadata": {"name": "open"},
			"spec": {"image": "example.com/mcp:1", "transport": "streamable-http", "oidcConfig": {"type": "inline"}}}`,
	})
}

// asIs types that the MCPServer is right without the field.
func (p *patient) asIs(t *testing.T) {
	t.Helper()
	for _, command := range documents.Of(t) {
		if command.Section == droppedFields {
			p.kubectl.Shell(t, strings.ReplaceAll(command.Text, "NAME", "open"))
		}
	}
	p.AwaitStatus(t, "open", harness.Fine...)
	p.kubectl.Run(t, "delete", "mcpserver/open")
}

// withoutBinding installs the policies, and takes the binding of one away.
func (p *patient) withoutBinding(t *testing.T) {
	t.Helper()
	p.kubectl.Run(t, "apply", "-k", filepath.Join("..", "..", "deploy", "policy"))
	p.kubectl.Run(t, "delete", "validatingadmissionpolicybinding/freehold-runners")
}

// latest makes an MCPServer whose image names no version.
func (p *patient) latest(t *testing.T) {
	t.Helper()
	p.Create(t, harness.Server("latest", v1beta1.TransportStreamableHTTP, func(s *v1beta1.MCPServer) { s.Spec.Image = "example.com/mcp:latest" }))
}

// blocked makes an MCPServer, after a Service that has the name of one of its children.
func (p *patient) blocked(t *testing.T) {
	t.Helper()
	p.kubectl.Run(t, "create", "service", "clusterip", "mcp-blocked", "--tcp=80")
	p.Create(t, harness.Server("blocked", v1beta1.TransportStreamableHTTP))
}

// checkWritesNothing looks the requests of both verbs up: none but reviews is a write.
func (p *patient) checkWritesNothing(t *testing.T, mark audit.Mark) {
	t.Helper()
	p.Mark(t)
	sent, _, err := p.Audit.Since(mark, func(e *audit.Event) bool { return strings.HasPrefix(e.UserAgent, "kubectl-freehold/") })
	if err != nil || len(sent) == 0 {
		t.Fatalf("%d requests, error %v", len(sent), err)
	}
	isWrite := audit.Writes()
	for _, e := range sent {
		if isWrite(e) && e.Resource != "subjectaccessreviews" {
			t.Errorf("it sends %s %s", e.Verb, e.URI)
		}
	}
	t.Logf("doctor and status send %d requests", len(sent))
}

// checkScreen shows that a status fits on a screen.
func (p *patient) checkScreen(t *testing.T) {
	t.Helper()
	got := p.runs(t, "status", "-A")
	lines := strings.Split(strings.TrimSuffix(got.out, "\n"), "\n")
	for _, line := range lines {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("it has the line %q", line)
		}
	}
	for _, want := range []string{"v0.1.0, 2 of 2 replicas available in namespace freehold-system", "Leader          freehold-", "MCPServers      1  1 Ready"} {
		if !strings.Contains(got.out, want) || len(lines) > 24 {
			t.Errorf("it does not say %q:\n%s", want, got.out)
		}
	}
}

// checkServer shows one MCPServer with its children and pods, the conditions, and what was told of it.
func (p *patient) checkServer(t *testing.T) {
	t.Helper()
	got := p.runs(t, "status", "mcpserver/"+web)
	for _, want := range []string{
		`(?m)^mcpserver/web \(namespace ` + p.Name + `\)$`, `(?m)^[├└]─ deployment\.apps/web +1 of 1 ready +\d+[sm]`,
		`(?m)^[│ ]  └─ pod/web-[0-9a-f]+-\w+ +Running, ready +\d+[sm]`, `(?m)^│  └─ pod/web-0 +Running, ready +\d+[sm]`,
		`(?m)^[├└]─ service/mcp-web-proxy +\d+[sm]`, `(?m)^Ready +True +Ready +\d+[sm]`, `(?m)^\d+[sm]\d* +Normal +ScalingReplicaSet +deployment\.apps/web +1 `,
	} {
		if got.code != cmd.ExitDone || !regexp.MustCompile(want).MatchString(got.out) {
			t.Errorf("it ends with %d and does not say %s:\n%s%s", got.code, want, got.out, got.errOut)
		}
	}
	var found health.Server
	if err := json.Unmarshal([]byte(p.runs(t, "status", web, "-o", "json").out), &found); err != nil || len(found.Children) < 8 || len(found.Events) == 0 {
		t.Errorf("error %v, for programs it is %+v", err, found)
	}
	if got := p.runs(t, "status", "absent"); got.code != cmd.ExitFailed || !strings.Contains(got.errOut, `"absent" not found`) {
		t.Errorf("of one that is not there it ends with %d: %s", got.code, got.errOut)
	}
}

// checkRights: a user without rights is told which ones each check needs, and one who may read everything learns everything.
func (p *patient) checkRights(t *testing.T) {
	t.Helper()
	found, code := p.doctor(t, "--as=stranger")
	for _, c := range found.Checks {
		if c.State != health.NotChecked || !strings.Contains(strings.Join(c.NotChecked, "\n"), "needs the right to ") {
			t.Errorf("for a stranger %s is %s: %q", c.Name, c.State, c.NotChecked)
		}
	}
	if code != cmd.ExitFailed || found.State != health.NotChecked {
		t.Errorf("for a stranger it ends with %d, and is %s", code, found.State)
	}
	if got := p.runs(t, "status", "--as=stranger"); got.code != cmd.ExitFailed {
		t.Errorf("for a stranger status ends with %d:\n%s", got.code, got.out)
	}
	p.kubectl.Run(t, "create", "clusterrole", "read-all", "--verb=get,list", "--resource=*.*")
	p.kubectl.Run(t, "create", "clusterrolebinding", "read-all", "--clusterrole=read-all", "--user=reader")
	harness.Eventually(t, "the rights hold", func(context.Context) error {
		found, code := p.doctor(t, "--as=reader")
		if code != cmd.ExitDone || found.State != health.OK {
			return fmt.Errorf("it ends with %d: %q", code, problems(found))
		}
		for _, c := range found.Checks {
			if c.Name == "rights" && !strings.Contains(c.Detail, "as RBAC's bindings say") {
				return errors.New(c.Detail)
			}
		}
		return nil
	})
}
