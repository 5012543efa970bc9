// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// scaler is a manager that writes numbers of replicas through the scale subresource, as the controller of
// HorizontalPodAutoscalers does.
const scaler = "autoscaler"

// replicasTier is a workload whose number of pods is in the spec of the MCPServer.
type replicasTier struct {
	component harness.Component
	// object is how a selector and a condition name it.
	kind string
	// field of the MCPServer's spec.
	field func(*v1beta1.MCPServer) **int32
	owner string
}

var replicasTiers = map[string]replicasTier{
	"proxy": {
		harness.Proxy, "deployment.apps",
		func(s *v1beta1.MCPServer) **int32 { return &s.Spec.Replicas }, managers.ProxyReplicas,
	},
	"backend": {
		harness.Backend, "statefulset.apps",
		func(s *v1beta1.MCPServer) **int32 { return &s.Spec.BackendReplicas }, managers.BackendReplicas,
	},
}

// asks makes an MCPServer ask for a number of pods; nil for no number.
func (r replicasTier) asks(number *int32) harness.Change {
	return func(s *v1beta1.MCPServer) { *r.field(s) = number }
}

// scale sets the number through the scale subresource.
func (r replicasTier) scale(ctx context.Context, ns *harness.Namespace, server string, number int32) error {
	body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, number)
	_, err := ns.Objects(r.component).Patch(ctx, server, types.MergePatchType, body, metav1.PatchOptions{FieldManager: scaler}, "scale")
	return err
}

func (r replicasTier) mustScale(t *testing.T, ns *harness.Namespace, server string, number int32) {
	t.Helper()
	if err := r.scale(t.Context(), ns, server, number); err != nil {
		t.Fatal(err)
	}
}

// replicasStep is a change of the number that an MCPServer asks for; nil for no number.
type replicasStep struct {
	from *int32
	// scaled, if not nil, is what somebody has set in the meantime.
	scaled *int32
	to     *int32
	// Afterwards the workload has this number, and it is of our writer, of the scaler, or of nobody.
	want         int64
	ours, theirs bool
	// conflict tells that there are two who want it.
	conflict bool
	// What it costs but for the status: applies by the writer of replicas, edits of managedFields, events.
	applies, edits, events int
}

var replicasSteps = map[string]replicasStep{
	"set":              {to: new(int32(2)), want: 2, ours: true, applies: 1},
	"changed":          {from: new(int32(2)), to: new(int32(3)), want: 3, ours: true, applies: 1},
	"released":         {from: new(int32(2)), want: 2, applies: 1, edits: 1, events: 1},
	"released-scaled":  {from: new(int32(2)), scaled: new(int32(4)), want: 4, theirs: true, applies: 1},
	"set-scaled":       {from: new(int32(2)), scaled: new(int32(4)), to: new(int32(3)), want: 4, theirs: true, conflict: true},
	"agreed":           {from: new(int32(2)), scaled: new(int32(4)), to: new(int32(4)), want: 4, ours: true, theirs: true, applies: 1},
	"nothing-to-do":    {scaled: new(int32(4)), want: 4},
	"set-over-default": {to: new(int32(1)), want: 1, ours: true, applies: 1},
	// A scaler that sets 0 is not recorded.
	"none":                 {from: new(int32(2)), to: new(int32(0)), want: 0, ours: true, applies: 1},
	"scaled-none-released": {from: new(int32(2)), scaled: new(int32(0)), want: 0, applies: 1},
	"scaled-none-changed":  {from: new(int32(2)), scaled: new(int32(0)), to: new(int32(3)), want: 3, ours: true, applies: 1},
	"scaled-none-agreed":   {from: new(int32(2)), scaled: new(int32(0)), to: new(int32(0)), want: 0, ours: true, applies: 1},
	"scaled-none-kept":     {from: new(int32(2)), scaled: new(int32(0)), to: new(int32(2)), want: 0, conflict: true},
	"free-none-set":        {scaled: new(int32(0)), to: new(int32(2)), want: 2, ours: true, applies: 1},
}

// TestReplicasOfTiers changes the number of pods that an MCPServer asks for, on either tier and with a scaler around.
// A number that is not asked for any more stays what it is, and one that somebody else holds is left to them.
func TestReplicasOfTiers(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	for tierName, tier := range replicasTiers {
		for stepName, step := range replicasSteps {
			name := tierName + "-" + stepName
			ns.Create(t, harness.Server(name, v1beta1.TransportStreamableHTTP, tier.asks(step.from), harness.SharedSessions))
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ns.AwaitSettled(t, name)
				side := fmt.Sprintf("%q with subresource \"scale\" owns", scaler)
				if step.scaled != nil {
					tier.mustScale(t, ns, name, *step.scaled)
					if *step.scaled == 0 {
						side = "an unknown client has set"
					}
					switch {
					case step.from != nil:
						ns.AwaitConflict(t, name, side, ".spec.replicas")
						ns.AwaitWorkloads(t, name) // It is not Ready while the conflict stands.
					case *step.scaled == 0:
						ns.AwaitWorkloads(t, name) // It is Stopped.
					default:
						ns.AwaitSettled(t, name)
					}
				}
				ns.AwaitCalm(t, name)
				mark := ns.Mark(t)
				ns.Edit(t, name, tier.asks(step.to))
				var owners []string
				if step.theirs {
					owners = append(owners, scaler)
				}
				if step.ours {
					owners = append([]string{tier.owner}, owners...)
				}
				ns.AwaitReplicas(t, tier.component, name, step.want, owners...)
				if step.conflict {
					ns.AwaitConflict(t, name, side, ".spec.replicas")
				} else {
					ns.AwaitNoConflict(t, name)
					if ns.AwaitWorkloads(t, name); step.want > 0 {
						ns.AwaitSettled(t, name)
					}
				}
				want := harness.WriteCount{}
				for item, n := range map[string]int{
					string(tier.component) + " replicas": step.applies, string(tier.component): step.edits, "event": step.events,
				} {
					if n > 0 {
						want[item] = n
					}
				}
				checkTierWrites(t, ns, name, mark, want, step.conflict)
				ns.AwaitReplicas(t, tier.component, name, step.want, owners...)
				env.Numbers.Add("replicas: changes with and without a scaler, on both tiers", 1)
			})
		}
	}
}

// checkTierWrites is CheckWrites where a refused write may be what is wanted, and where an event may be the price.
func checkTierWrites(t *testing.T, ns *harness.Namespace, name string, since audit.Mark, want harness.WriteCount, conflict bool) {
	t.Helper()
	if !conflict {
		if n := ns.CheckWrites(t, name, since, want); n > statuses {
			t.Errorf("the status was written %d times", n)
		}
		return
	}
	ns.AwaitCalm(t, name)
	count := harness.CountWrites(name, ns.Writes(t, since))
	if count["status"] > 2 {
		t.Errorf("the status was written %d times", count["status"])
	}
	if diff := cmp.Diff(want, count.Without("status")); diff != "" {
		t.Errorf("what was written is not what should have been (-want +got):\n%s", diff)
	}
}

// awaitCondition waits until a condition has a status and reason, at the present generation, and its message names what
// is to be named.
func awaitCondition(
	t *testing.T, ns *harness.Namespace, name, condition string, status metav1.ConditionStatus, reason string, named ...string,
) {
	t.Helper()
	ns.AwaitServer(t, name, fmt.Sprintf("has condition %s %s %s", condition, status, reason), func(s *v1beta1.MCPServer) error {
		c := meta.FindStatusCondition(s.Status.Conditions, condition)
		if c == nil || c.Status != status || c.Reason != reason || c.ObservedGeneration != s.Generation {
			return fmt.Errorf("it is %+v", c)
		}
		for _, part := range named {
			if !strings.Contains(c.Message, part) {
				return fmt.Errorf("it does not name %s: %s", part, c.Message)
			}
		}
		return nil
	})
}

// TestStdioCapOfSpec asks for more pods than a server with transport stdio can have.
func TestStdioCapOfSpec(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	for tierName, tier := range replicasTiers {
		ns.Create(t, harness.Server(tierName, v1beta1.TransportStdio, tier.asks(new(int32(5)))))
		t.Run(tierName, func(t *testing.T) {
			t.Parallel()
			ns.AwaitSettled(t, tierName)
			ns.AwaitReplicas(t, tier.component, tierName, 1, tier.owner)
			awaitCondition(t, ns, tierName, v1beta1.ConditionStdioReplicaCapped, metav1.ConditionTrue, "StdioTransportCapAt1", "5")
			awaitCondition(t, ns, tierName, v1beta1.ConditionSessionStorageWarning, metav1.ConditionFalse, "SessionStorageWarningNotApplicable")
			// With another transport there may be as many as the spec says.
			ns.Edit(t, tierName, func(s *v1beta1.MCPServer) {
				s.Spec.Transport, s.Spec.MCPPort = v1beta1.TransportStreamableHTTP, 9000
			})
			ns.AwaitReplicas(t, tier.component, tierName, 5, tier.owner)
			awaitCondition(t, ns, tierName, v1beta1.ConditionStdioReplicaCapped, metav1.ConditionFalse, "StdioReplicaCapNotActive")
		})
	}
}

// TestStdioCapOfLive scales from outside what may have one pod at most, on either tier, and then lets the MCPServer
// have another transport: the number is nobody's again.
func TestStdioCapOfLive(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	for tierName, tier := range replicasTiers {
		ns.Create(t, harness.Server(tierName, v1beta1.TransportStdio))
		t.Run(tierName, func(t *testing.T) {
			t.Parallel()
			ns.AwaitSettled(t, tierName)
			ns.AwaitReplicas(t, tier.component, tierName, 1)
			tier.mustScale(t, ns, tierName, 3)
			ns.AwaitReplicas(t, tier.component, tierName, 1, tier.owner)
			tier.mustScale(t, ns, tierName, 3)
			ns.AwaitReplicas(t, tier.component, tierName, 1, tier.owner)
			awaitCondition(t, ns, tierName, v1beta1.ConditionStdioReplicaCapped, metav1.ConditionTrue, "StdioReplicasReset",
				fmt.Sprintf("%q with subresource \"scale\"", scaler), tier.kind+"/"+tierName)
			awaitScalerEvent(t, ns, tierName)
			ns.Edit(t, tierName, func(s *v1beta1.MCPServer) {
				s.Spec.Transport, s.Spec.MCPPort = v1beta1.TransportStreamableHTTP, 9000
			})
			ns.AwaitReplicas(t, tier.component, tierName, 1)
			awaitCondition(t, ns, tierName, v1beta1.ConditionStdioReplicaCapped, metav1.ConditionFalse, "StdioReplicaCapNotActive")
			tier.mustScale(t, ns, tierName, 3)
			ns.AwaitSettled(t, tierName)
			ns.AwaitReplicas(t, tier.component, tierName, 3)
		})
	}
}

// awaitScalerEvent waits for the event about a cap that names the scaler.
func awaitScalerEvent(t *testing.T, ns *harness.Namespace, name string) {
	t.Helper()
	harness.Eventually(t, "an event names the scaler", func(ctx context.Context) error {
		list, err := env.Core.EventsV1().Events(ns.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var notes []string
		for _, e := range list.Items {
			if e.Regarding.Name != name {
				continue
			}
			if strings.Contains(e.Note, scaler) {
				return nil
			}
			notes = append(notes, e.Reason+": "+e.Note)
		}
		return errors.New(strings.Join(notes, "\n"))
	})
}

// pushing is how long a scaler keeps setting a number, longer if it has not done so leastPushes times by then. MostCaps is how often
// it can have been set back: at once, and after 1 s, 2 s and 4 s; the first one may count twice, as nobody owned the number before.
const (
	pushing     = 7 * time.Second
	leastPushes = 3
	mostCaps    = 5
)

// TestStdioCapAgainstScaler has a scaler that sets the number again whenever it was set back.
func TestStdioCapAgainstScaler(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	for tierName, tier := range replicasTiers {
		ns.Create(t, harness.Server(tierName, v1beta1.TransportStdio))
		t.Run(tierName, func(t *testing.T) {
			t.Parallel()
			ns.AwaitSettled(t, tierName)
			ns.AwaitCalm(t, tierName)
			mark, pushes := ns.Mark(t), 0
			ctx, cancel := harness.WithinPace(t.Context(), harness.Timeout)
			defer cancel()
			ticker := time.NewTicker(harness.Poll)
			defer ticker.Stop()
			for began := time.Now(); ctx.Err() == nil && (pushes < leastPushes || time.Since(began) < pushing); {
				object, err := ns.Object(t.Context(), tier.component, tierName)
				if err != nil {
					t.Fatal(err)
				}
				if number, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas"); number == 1 {
					tier.mustScale(t, ns, tierName, 3)
					pushes++
				}
				select {
				case <-ctx.Done():
				case <-ticker.C:
				}
			}
			if pushes < leastPushes || pushes > mostCaps+1 {
				t.Errorf("the scaler had to push %d times", pushes)
			}
			count := harness.CountWrites(tierName, ns.Writes(t, mark))
			t.Logf("%d pushes in %v: %v", pushes, pushing, count)
			// To set back costs an edit of managedFields and an apply. Each edit may lose a race against the workload's
			// controller and be made again.
			part := string(tier.component)
			others := ns.WritesByOthers(t, mark, tier.component, tierName)
			if count[part+" replicas"] > mostCaps || count[part] > mostCaps || count[part+" (409)"]+count[part+" replicas (409)"] > others {
				t.Errorf("a scaler that pushes %d times costs %v, with %d writes by others", pushes, count, others)
			}
			// The news is that somebody scales, and then who it is; and there are as many pods as there are for a moment.
			if count["event"] > 2*mostCaps || count["status"] > 6*pushes {
				t.Errorf("there were %d writes of events and %d of the status", count["event"], count["status"])
			}
		})
	}
}
