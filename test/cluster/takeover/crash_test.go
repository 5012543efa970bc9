// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/faultproxy"
	"github.com/freehold-dev/freehold/test/harness"
)

// TestTakeoverCrash kills operators in the middle of a takeover, after each of the writes that it takes: the API server
// has carried out the write, and the operator does not learn of it any more. For who comes after it that is the same as
// if it had been killed before its next write. The end is that of a takeover in which nobody was killed.
func TestTakeoverCrash(t *testing.T) {
	t.Parallel()
	for of, rolls := range map[string]bool{"plain": true, "edited": false} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			whole := newInstallation(t)
			whole.install(t, of, takenName)
			p, answered := whole.operateUntil(t, -1)
			whole.awaitTakenOver(t, takenName)
			whole.AwaitRest(t)
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			writes := int(answered.count.Load())
			want := whole.end(t)
			t.Logf("it takes %d writes", writes)
			if writes < 2*len(want) {
				t.Errorf("there are %d objects, and each takes at least two writes", len(want))
			}
			for n := 1; n <= writes; n++ {
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					t.Parallel()
					// Whether two pieces of news go into one status or two is a matter of moments.
					crashAfter(t, of, n, n > writes-2, rolls, want)
				})
			}
		})
	}
}

// takenName is the name of an MCPServer that is taken over alone.
const takenName = "taken"

// crashAfter kills an operator after a number of writes, and compares what the next one makes of it with what is wanted.
// It may be done with fewer.
func crashAfter(t *testing.T, of string, n int, mayBeDone, rolls bool, want map[harness.Component]map[string]string) {
	t.Helper()
	s := newInstallation(t)
	s.install(t, of, takenName)
	before := s.MustObjectsOf(t, takenName)
	first, answered := s.operateUntil(t, n)
	harness.Eventually(t, "the operator has written so often", func(ctx context.Context) error {
		select {
		case <-answered.last:
			return nil
		default:
		}
		server, err := s.Servers.Get(ctx, takenName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if mayBeDone && meta.IsStatusConditionTrue(server.Status.Conditions, v1beta1.ConditionReady) {
			return harness.TakenOver(server)
		}
		return fmt.Errorf("it has written %d times", answered.count.Load())
	})
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	s.Operate(t)
	s.awaitTakenOver(t, takenName)
	s.AwaitRest(t)
	if diff := cmp.Diff(want, s.end(t)); diff != "" {
		t.Errorf("what became of it (-without a crash +with one):\n%s", diff)
	}
	s.checkRolls(t, takenName, before, s.MustObjectsOf(t, takenName), rolls)
}

// TestTakeoverByMany kills each operator after two writes, which is the least that gets it on: as long as there are
// children without an owner, the first one only asks whether the MCPServer still is the one that was seen. The end is that
// of a takeover in which nobody was killed.
func TestTakeoverByMany(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"sidecar", "numbers", "edited-stdio", "policies"} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			whole, broken := newInstallation(t), newInstallation(t)
			for _, s := range []*installation{whole, broken} {
				s.install(t, of, takenName)
			}
			whole.Operate(t)
			whole.awaitTakenOver(t, takenName)
			whole.AwaitRest(t)
			before, lives := broken.MustObjectsOf(t, takenName), 0
			for ; broken.writesTwice(t); lives++ {
				if lives > mostLives {
					t.Fatal("there is no end to it")
				}
			}
			t.Logf("%d operators were killed", lives)
			broken.Operate(t)
			broken.awaitTakenOver(t, takenName)
			broken.AwaitRest(t)
			if diff := cmp.Diff(whole.end(t), broken.end(t)); diff != "" {
				t.Errorf("what became of it (-without a crash +with many):\n%s", diff)
			}
			broken.checkRolls(t, takenName, before, broken.MustObjectsOf(t, takenName), false)
		})
	}
}

// mostLives is more than there are writes in a takeover.
const mostLives = 60

// writesTwice runs an operator until it has made two writes, and kills it. It returns false when there was nothing left
// to write.
func (s *installation) writesTwice(t *testing.T) bool {
	t.Helper()
	p, answered := s.operateUntil(t, 2)
	defer func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := harness.WithinPace(t.Context(), harness.Timeout)
	defer cancel()
	for {
		select {
		case <-answered.last:
			return true
		case <-time.After(harness.Calm):
		case <-ctx.Done():
			server := s.MustObject(t, harness.ServerItself, takenName)
			t.Fatalf("the takeover does not go on: %v", server.Object["status"])
		}
		server := s.AwaitServer(t, takenName, "is there", func(*v1beta1.MCPServer) error { return nil })
		if harness.TakenOver(server) == nil {
			return false
		}
	}
}

// end is the state of the MCPServer and its children in words that are the same in each namespace, see harness.Neutral.
func (s *installation) end(t *testing.T) map[harness.Component]map[string]string {
	t.Helper()
	objects := s.MustObjectsOf(t, takenName)
	server := harness.ServerOf(t, objects)
	found := map[harness.Component]map[string]string{}
	for component := range objects {
		leaves, err := harness.Neutral(server, component, objects)
		if err != nil {
			t.Fatal(err)
		}
		for path, value := range leaves {
			leaves[path] = strings.ReplaceAll(value, s.Name, placeNamespace)
		}
		found[component] = leaves
	}
	return found
}

// writesAnswered counts the writes of an operator that the API server has answered, but for events.
type writesAnswered struct {
	count atomic.Int32
	// last is closed when the API server has answered the one that the operator is to die of.
	last chan struct{}
}

// operateUntil runs an operator that does not get the n-th answer to a write, nor any later one. If n is negative it
// gets all of them.
func (s *installation) operateUntil(t *testing.T, n int) (*harness.CrashableOperator, *writesAnswered) {
	t.Helper()
	answered := &writesAnswered{last: make(chan struct{})}
	proxy := s.Proxy(t, faultproxy.Options{Observe: func(response *http.Response) {
		request := response.Request
		if request.Method == http.MethodGet || strings.Contains(request.URL.Path, "/events") {
			return
		}
		switch count := int(answered.count.Add(1)); {
		case n < 0 || count < n:
		case count == n:
			close(answered.last)
			fallthrough
		default:
			<-request.Context().Done()
		}
	}})
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := proxy.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	return s.CrashableOperator(t, harness.Watching(s.Name), "--kubeconfig="+kubeconfig), answered
}
