// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/test/harness"
)

// mostRestores is how often a write is made again in the first minute that another client undoes as fast as it can, for as long as warLasts.
const (
	mostRestores = 10
	warLasts     = 30 * time.Second
)

// remover takes something of a child away whenever it is there.
type remover struct {
	component harness.Component
	// patch is a JSON patch that fails while the thing is gone; empty to delete the child.
	patch string
	// taken reports that the MCPServer keeps a request to take a field of the child, which was carried out before.
	taken bool
}

var removers = map[string]remover{
	"a label of a Service": {component: harness.ProxyService, patch: `[{"op":"remove","path":"/metadata/labels/toolhive-name"}]`},
	"a Service":            {component: harness.ProxyService},
	"an owner reference":   {component: harness.ProxyService, patch: `[{"op":"remove","path":"/metadata/ownerReferences/0"}]`},
	"a probe":              {component: harness.Proxy, patch: removeProbe},
	"a Deployment":         {component: harness.Proxy},
	"a probe of a Deployment of which a field was taken": {component: harness.Proxy, patch: removeProbe, taken: true},
}

const removeProbe = `[{"op":"remove","path":"/spec/template/spec/containers/0/livenessProbe"}]`

// remove takes the thing away once, and reports whether it was there.
func (r remover) remove(ctx context.Context, ns *harness.Namespace, name string) (done bool, err error) {
	client := ns.Objects(r.component)
	if r.patch == "" {
		err = client.Delete(ctx, name, metav1.DeleteOptions{})
	} else {
		_, err = client.Patch(ctx, name, types.JSONPatchType, []byte(r.patch), metav1.PatchOptions{FieldManager: "remover"})
	}
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || ctx.Err() != nil {
		return false, nil
	}
	return err == nil, err
}

// settledServer makes the MCPServer web in a namespace of its own, and waits until its operator has nothing left to do.
func settledServer(t *testing.T) *harness.Namespace {
	t.Helper()
	ns := env.Namespace(t)
	ns.Operate(t)
	ns.Create(t, harness.HTTPServer("web"))
	ns.AwaitStatus(t, "web", harness.Fine...)
	ns.AwaitSettled(t, "web")
	return ns
}

// TestARemoverIsNotFoughtAtFullSpeed has another client that takes something away as soon as Freehold has put it back. Freehold makes the
// write again a few times, then it waits, and says so. An edit does not wait.
func TestARemoverIsNotFoughtAtFullSpeed(t *testing.T) {
	t.Parallel()
	for name, r := range removers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := settledServer(t)
			object := ns.MustObject(t, r.component, "web").GetName()
			if r.taken {
				ns.MustPatch(t, harness.Hand, r.component, "web", harness.Replace(harness.FirstContainer+"/image", harness.OtherImage))
				ns.AwaitConflict(t, "web", harness.Hand)
				ns.Annotate(t, "web", v1beta1.AnnotationTake, harness.Hand)
				ns.AwaitNoConflict(t, "web")
				ns.AwaitSettled(t, "web")
			}
			began := ns.Mark(t)

			ctx, cancel := context.WithTimeout(t.Context(), warLasts)
			defer cancel()
			removed, ended := 0, make(chan error, 1)
			go func() {
				for {
					done, err := r.remove(ctx, ns, object)
					if err != nil || ctx.Err() != nil {
						ended <- err
						return
					}
					if done {
						removed++
					}
				}
			}()
			undone := harness.Expectation{Condition: v1beta1.ConditionApplied, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonUndone, Message: []string{object}}
			ns.AwaitStatus(t, "web", undone)
			harness.Eventually(t, "an event about it", func(ctx context.Context) error {
				warnings, err := ns.Warnings(ctx)
				if err != nil {
					return err
				}
				for _, event := range warnings["web"] {
					if event.Reason == v1beta1.ReasonUndone && strings.Contains(event.Note, object) {
						return nil
					}
				}
				return fmt.Errorf("there are %v", warnings["web"])
			})
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			writes := harness.CountWrites("web", ns.Writes(t, began))[string(r.component)]
			t.Logf("removed %d times, written %d times", removed, writes)
			if writes < 2 || writes > mostRestores || removed > mostRestores {
				t.Errorf("within %s it was removed %d times and written %d times", warLasts, removed, writes)
			}

			// Others go on, and what is new is written at once.
			edited := ns.Mark(t)
			ns.Edit(t, "web", func(server *v1beta1.MCPServer) { server.Spec.Image = harness.OtherImage })
			ns.AwaitWrites(t, edited, "the new image", func(events []*audit.Event) bool {
				return harness.CountWrites("web", events)[string(harness.Backend)] > 0
			})
			// The write is made again when its wait is over.
			ns.AwaitStatus(t, "web", harness.Fine...)
		})
	}
}

// TestAReplicatorIsNotFoughtAtFullSpeed has another client that creates an unwanted child as soon as Freehold has deleted it.
func TestAReplicatorIsNotFoughtAtFullSpeed(t *testing.T) {
	t.Parallel()
	ns := settledServer(t)
	stray := ns.MustObject(t, harness.RunConfig, "web").DeepCopy()
	data := map[string]string{"runconfig.json": "{}"} // one that no pod has read
	stray.SetName(inventory.RunConfig.ContentName("web", data))
	if err := unstructured.SetNestedStringMap(stray.Object, data, "data"); err != nil {
		t.Fatal(err)
	}
	stray.SetUID("")
	stray.SetResourceVersion("")
	stray.SetManagedFields(nil)
	began := ns.Mark(t)
	ctx, cancel := context.WithTimeout(t.Context(), warLasts)
	defer cancel()
	created, ended := 0, make(chan error, 1)
	go func() {
		for {
			_, err := ns.Objects(harness.RunConfig).Create(ctx, stray, metav1.CreateOptions{FieldManager: "replicator"})
			switch {
			case ctx.Err() != nil:
				ended <- nil
				return
			case err == nil:
				created++
			case !apierrors.IsAlreadyExists(err):
				ended <- err
				return
			}
		}
	}()
	ns.AwaitStatus(t, "web", harness.Fine[0], harness.Expectation{
		Condition: v1beta1.ConditionApplied, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonUndone, Message: []string{stray.GetName()},
	})
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	deleted := 0
	for _, e := range ns.Writes(t, began) {
		if e.Verb == "delete" && e.Name == stray.GetName() {
			deleted++
		}
	}
	t.Logf("created %d times, deleted %d times", created, deleted)
	if deleted < 2 || deleted > mostRestores || created > mostRestores+1 {
		t.Errorf("within %s it was created %d times and deleted %d times", warLasts, created, deleted)
	}
	ns.AwaitStatus(t, "web", harness.Fine...)
	if _, err := ns.Objects(harness.RunConfig).Get(t.Context(), stray.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestTwoOperatorsWithOtherSettingsDoNotRollTheProxyOutAgainAndAgain runs two operators, neither of which knows of the other, with two images of
// the proxyrunner. Both tell of the other.
func TestTwoOperatorsWithOtherSettingsDoNotRollTheProxyOutAgainAndAgain(t *testing.T) {
	t.Parallel()
	ns := settledServer(t)
	before, began := ns.MustObject(t, harness.Proxy, "web").GetGeneration(), ns.Mark(t)
	ns.Operate(t, "--runner-image=example.com/runner:other")
	ns.AwaitStatus(t, "web", harness.Expectation{
		Condition: v1beta1.ConditionApplied, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonSecondOperator, Message: []string{"deployment.apps/web", "freehold-proxy"},
	})
	// Each of the two has written a few times.
	const most = 2 * 4
	writes := harness.CountWrites("web", ns.Writes(t, began))[string(harness.Proxy)]
	if rolled := ns.MustObject(t, harness.Proxy, "web").GetGeneration() - before; rolled > most || writes > most {
		t.Errorf("the proxy was written %d times, and rolled out %d times", writes, rolled)
	}
}
