// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/images"
	"github.com/freehold-dev/freehold/test/harness"
	"github.com/freehold-dev/freehold/test/mcpclient"
)

// permitting is a policy in Cedar's language by which everybody may call one tool, and nothing else.
func permitting(tool string) string {
	return `permit(principal, action == Action::"call_tool", resource == Tool::"` + tool + `");`
}

// policed has an MCPServer obey the MCPAuthzConfig policy.
func policed(server *v1beta1.MCPServer) {
	server.Spec.AuthzConfigRef = &v1beta1.MCPAuthzConfigReference{Name: "policy"}
}

// cedar is an MCPAuthzConfig of one policy.
func cedar(t *testing.T, policy string) v1beta1.MCPAuthzConfigSpec {
	t.Helper()
	content, err := json.Marshal(map[string]any{"policies": []string{policy}, "entities_json": "[]"})
	if err != nil {
		t.Fatal(err)
	}
	return v1beta1.MCPAuthzConfigSpec{Type: v1beta1.AuthzTypeCedar, Config: runtime.RawExtension{Raw: content}}
}

// createPolicy makes the MCPAuthzConfig policy.
func createPolicy(t *testing.T, ns *harness.Namespace, policy string) {
	t.Helper()
	create(t, toolhive(ns).MCPAuthzConfigs(ns.Name).Create, &v1beta1.MCPAuthzConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "policy"}, Spec: cedar(t, policy),
	})
}

// editPolicy changes it.
func editPolicy(t *testing.T, ns *harness.Namespace, policy string) {
	t.Helper()
	edit(t, toolhive(ns).MCPAuthzConfigs(ns.Name), "policy", func(config *v1beta1.MCPAuthzConfig) {
		config.Spec = cedar(t, policy)
	})
}

// permits checks that a client may call one tool and not the other.
func permits(t *testing.T, ns *harness.Namespace, when, permitted, denied string) {
	t.Helper()
	client := dial(t, ns, "")
	arguments := map[string]map[string]any{"echo": {"text": "hello"}}
	if outcome := client.Call(t.Context(), permitted, arguments[permitted]); outcome.Err != nil {
		t.Errorf("%s: %s is permitted, and got %v", when, permitted, outcome)
	}
	isDenied(t, when+": "+denied, client.Call(t.Context(), denied, arguments[denied]), http.StatusForbidden)
}

// TestPolicyEdit edits the policy of an MCPServer while clients go on calling: as soon as the MCPServer is Ready with the new
// policy, no call is decided by the old one any more.
func TestPolicyEdit(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	ns := operated(t)
	createPolicy(t, ns, permitting("echo"))
	server := serve(t, ns, v1beta1.TransportStreamableHTTP, policed, harness.Replicas(2, 1))
	permits(t, ns, "at first", "echo", "identity")

	callers := map[string]*caller{"new sessions": call(t, ns, false), "a session that lasts": call(t, ns, true)}
	for who, c := range callers {
		c.await(t, who+" are served", func(o mcpclient.Outcome) bool { return decidedBy(o, "echo") })
	}
	began := time.Now()
	editPolicy(t, ns, permitting("identity"))
	edited := inEffect(t, ns, server.Status.AuthzConfigHash, func(s v1beta1.MCPServerStatus) string { return s.AuthzConfigHash })
	ready := time.Now()
	t.Logf("the new policy was in effect after %v", harness.Since(began))
	if err := (harness.Expectation{
		Condition: v1beta1.ConditionAuthzConfigRefValidated, Status: metav1.ConditionTrue,
		Reason: reasonSince(t, enforcing, v1beta1.ReasonAuthzConfigRefValid),
	}).Missing(edited); err != nil {
		t.Error(err)
	}
	for who, c := range callers {
		c.await(t, who+" obey the new policy", func(o mcpclient.Outcome) bool { return o.Began.After(ready) && decidedBy(o, "identity") })
		before, unanswered := 0, 0
		for _, o := range c.soFar() {
			switch {
			case o.Began.After(ready) && decidedBy(o, "echo"):
				t.Errorf("%s: %v after the new policy was in effect, the old one decided about %s: %v", who, o.Began.Sub(ready), o.Tool, o)
			case decidedBy(o, "echo"):
				before++
			case !decidedBy(o, "identity"):
				unanswered++
			}
		}
		t.Logf("%s: the old policy decided about %d calls, and %d had no answer", who, before, unanswered)
	}
}

// decidedBy tells whether a call was decided by the policy that permits one tool.
func decidedBy(o mcpclient.Outcome, permitted string) bool {
	if o.Tool == permitted {
		return o.Err == nil
	}
	return o.Err != nil && o.Code == http.StatusForbidden
}

// caller calls two tools all the time.
type caller struct {
	mu       sync.Mutex
	outcomes []mcpclient.Outcome
}

const (
	// callerPause is at least between the begins of two rounds of calls.
	callerPause = 20 * time.Millisecond
	// enoughCalls is how many calls with an outcome are waited for.
	enoughCalls = 40
)

// call starts to call the MCPServer, its tools echo and identity in turn: in one session for as long as that works, or with a new one
// for each call. It goes on until the test ends.
func call(t *testing.T, ns *harness.Namespace, lasting bool) *caller {
	t.Helper()
	client := dial(t, ns, "")
	client.Lasting = lasting
	c := &caller{}
	var calling sync.WaitGroup
	calling.Go(func() {
		pause := time.NewTicker(callerPause)
		defer pause.Stop()
		for t.Context().Err() == nil {
			outcomes := []mcpclient.Outcome{client.Echo(t.Context(), "hello"), client.Call(t.Context(), "identity", nil)}
			c.mu.Lock()
			c.outcomes = append(c.outcomes, outcomes...)
			c.mu.Unlock()
			<-pause.C
		}
	})
	t.Cleanup(calling.Wait) // The context of a test ends before that.
	return c
}

// soFar returns what became of the calls.
func (c *caller) soFar() []mcpclient.Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.outcomes)
}

// await waits until enough calls had an outcome as wanted.
func (c *caller) await(t *testing.T, what string, wanted func(mcpclient.Outcome) bool) {
	t.Helper()
	harness.Eventually(t, what, func(context.Context) error {
		outcomes := c.soFar()
		as := slices.DeleteFunc(slices.Clone(outcomes), func(o mcpclient.Outcome) bool { return !wanted(o) })
		if len(as) >= enoughCalls {
			return nil
		}
		if len(outcomes) == 0 {
			return errors.New("there was no call")
		}
		return fmt.Errorf("%d of %d calls are so; the last is %v", len(as), len(outcomes), outcomes[len(outcomes)-1])
	})
}

// deployments are the requests about proxies.
var deployments = audit.Resource("apps", "deployments")

// TestMissingPolicy has an MCPServer refer to a policy that does not exist: there is no proxy until it does.
func TestMissingPolicy(t *testing.T) {
	t.Parallel()
	ns := operated(t)
	mark := ns.Mark(t)
	ns.Create(t, harness.HTTPServer(served, policed, func(server *v1beta1.MCPServer) { server.Spec.Image = images.Server }))
	waiting := ns.AwaitStatus(t, served, harness.Expectation{
		Condition: v1beta1.ConditionAuthzConfigRefValidated, Status: metav1.ConditionFalse,
		Reason: v1beta1.ReasonAuthzConfigRefNotFound, Message: []string{"policy", "No proxy is made"},
	})
	if meta.IsStatusConditionTrue(waiting.Status.Conditions, v1beta1.ConditionReady) {
		t.Errorf("it is Ready: %+v", waiting.Status)
	}
	ns.Quiet(t, mark, harness.Calm, audit.Writes(), deployments)
	_, err := ns.Core.AppsV1().Deployments(ns.Name).Get(t.Context(), served, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Fatalf("there is a proxy without the policy (%v)", err)
	}
	createPolicy(t, ns, permitting("echo"))
	ns.AwaitSettled(t, served)
	routed(t, ns, served)
	permits(t, ns, "with the policy", "echo", "identity")
}

// TestBrokenPolicy edits the policy of a running MCPServer into one that cannot be used. Proxies go on under the old one, also
// those that start meanwhile, until the policy is mended.
func TestBrokenPolicy(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	ns := operated(t)
	createPolicy(t, ns, permitting("echo"))
	server := serve(t, ns, v1beta1.TransportStreamableHTTP, policed)
	first, mark := proxyPod(t, ns), ns.Mark(t)
	editPolicy(t, ns, "permit everything")
	broken := ns.AwaitStatus(t, served, harness.Expectation{
		Condition: v1beta1.ConditionAuthzConfigRefValidated, Status: metav1.ConditionFalse,
		Reason: v1beta1.ReasonAuthzConfigRefNotValid, Message: []string{"The proxy keeps", "generation 1 of mcpauthzconfig/policy"},
	})
	if meta.IsStatusConditionTrue(broken.Status.Conditions, v1beta1.ConditionReady) {
		t.Errorf("it is Ready: %+v", broken.Status)
	}
	ns.Quiet(t, mark, harness.Calm, audit.Writes(), deployments)
	if now := proxyPod(t, ns); now.UID != first.UID {
		t.Errorf("the proxy was replaced: %s by %s", first.Name, now.Name)
	}
	permits(t, ns, "with a broken policy", "echo", "identity")

	if err := ns.Core.CoreV1().Pods(ns.Name).Delete(t.Context(), first.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// Until it is gone, the Deployment may not say yet that a pod is missing, and calls may still be sent to that pod.
	harness.Eventually(t, "the first proxy is gone", func(ctx context.Context) error {
		_, err := ns.Core.CoreV1().Pods(ns.Name).Get(ctx, first.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return cmp.Or(err, errors.New("it is still there"))
	})
	ns.AwaitWorkloads(t, served)
	routed(t, ns, served)
	permits(t, ns, "after a restart with a broken policy", "echo", "identity")

	editPolicy(t, ns, permitting("identity"))
	inEffect(t, ns, server.Status.AuthzConfigHash, func(s v1beta1.MCPServerStatus) string { return s.AuthzConfigHash })
	permits(t, ns, "when the policy is mended", "identity", "echo")
}
