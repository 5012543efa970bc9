// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/test/harness"
)

// soon is within how much time drift is to be undone: it comes from an event and takes no time but that of a busy
// machine. The resync period of these operators is hours.
const soon = 10 * time.Second

// driftServer is an MCPServer with all children, to be maltreated at one of its components.
func driftServer(component harness.Component, changes ...harness.Change) *v1beta1.MCPServer {
	// Not the other way round: mcp-x-proxy is a Service of x and of x-proxy.
	name := strings.ReplaceAll(string(component), "/", "-") + "-drift"
	changes = append([]harness.Change{harness.InlineAuthorization}, changes...)
	return harness.Server(name, v1beta1.TransportStreamableHTTP, changes...)
}

// TestDeletedChildren deletes each child by hand. It comes back soon, by one write, and no other child is written; but
// configuration that was made anew replaces the pods that read it.
func TestDeletedChildren(t *testing.T) {
	t.Parallel()
	ns := env.Namespace(t)
	ns.Operate(t)
	for _, component := range harness.ComponentsOf(driftServer(harness.ServerItself)) {
		if component == harness.ServerItself {
			continue
		}
		server := driftServer(component).Name
		ns.Create(t, driftServer(component))
		t.Run(string(component), func(t *testing.T) {
			t.Parallel()
			ns.AwaitSettled(t, server)
			ns.AwaitCalm(t, server)
			victim := ns.MustObject(t, component, server)

			mark, began := ns.Mark(t), time.Now()
			err := ns.Objects(component).Delete(t.Context(), victim.GetName(), metav1.DeleteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			harness.Eventually(t, "the child is back", func(ctx context.Context) error {
				object, err := ns.Object(ctx, component, server)
				if err == nil && object.GetUID() == victim.GetUID() {
					return errors.New("it is still the old one")
				}
				return err
			})
			if took := harness.AtPace(began, time.Since(began)); took > soon {
				t.Errorf("it took %v", took)
			}
			ns.AwaitSettled(t, server)
			want, rolls := harness.Once(string(component)), component == harness.Proxy || component == harness.Backend
			if harness.FormOf(component).Digest {
				want, rolls = harness.Once(string(component), string(harness.Proxy)), true
			}
			status := ns.CheckWrites(t, server, mark, want)
			// Pods go and come with their workload, and the status follows them.
			if status > 0 && !rolls {
				t.Errorf("the status was written %d times", status)
			}
			ns.CheckOwnership(t, server)
		})
	}
}
