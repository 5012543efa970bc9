// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/faultproxy"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

const (
	// shardLabel says which operator works for an MCPServer.
	shardLabel = "example.com/shard"
	// shardServers are how many MCPServers move, and shardMoves is how often.
	shardServers = 5
	shardMoves   = 60
)

// shards are two operators, each of which works for the MCPServers of a label and learns of moves late. They make different
// proxies, so that each Deployment tells which of the two has written it.
type shards struct {
	*harness.Namespace
	lags   [2]atomic.Int64
	random *rand.Rand
	known  specs
}

func shardName(i int) string { return string(rune('a' + i)) }

func newShards(t *testing.T) *shards {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("the seed is %d", seed)
	s := &shards{Namespace: env.Namespace(t), known: specs{}, random: rand.New(rand.NewPCG(seed, 0))}
	env.Expect(t, harness.Moves, s.Name)
	for i := range s.lags {
		proxy := s.Proxy(t, faultproxy.Options{Lags: []faultproxy.Lag{{
			Match: faultproxy.Watches(managers.MCPServer.Group, "mcpservers"),
			By:    func() time.Duration { return time.Duration(s.lags[i].Load()) },
		}}})
		s.OperateThrough(t, proxy, "--mcpserver-selector="+shardLabel+"="+shardName(i), "--runner-image=example.com/runner:"+shardName(i))
	}
	return s
}

// of has an MCPServer be that of a shard.
func of(shard string) harness.Change {
	return func(server *v1beta1.MCPServer) { server.Labels = map[string]string{shardLabel: shard} }
}

// move makes one MCPServer another operator's, or edits it, and may do both at once.
func (s *shards) move(t *testing.T, name string, number int) {
	t.Helper()
	for i := range s.lags {
		s.lags[i].Store(s.random.Int64N(int64(longestLag)))
	}
	s.known.add(s.Edit(t, name, func(server *v1beta1.MCPServer) {
		if s.random.IntN(4) > 0 {
			of(shardName(s.random.IntN(len(s.lags))))(server)
		}
		if s.random.IntN(3) == 0 {
			server.Spec.Image = fmt.Sprintf("example.com/moved:%d", number)
		}
	}))
	if s.random.IntN(3) == 0 {
		s.WritesFor(t, name, s.Mark(t), time.Duration(s.random.Int64N(int64(longestLag))))
	}
}

// awaitEnd waits until every Deployment is that of the operator that works for its MCPServer.
func (s *shards) awaitEnd(t *testing.T, names []string) {
	t.Helper()
	for i := range s.lags {
		s.lags[i].Store(0)
	}
	for _, name := range names {
		harness.Eventually(t, name+" has come to rest", func(ctx context.Context) error {
			server, err := s.Object(ctx, harness.ServerItself, name)
			if err != nil {
				return err
			}
			proxy, err := s.Object(ctx, harness.Proxy, name)
			if err != nil {
				return err
			}
			if want, have := server.GetLabels()[shardLabel], writerOf(proxy); have != want {
				return fmt.Errorf("the proxy is that of %s, want %s", have, want)
			}
			return nil
		})
		s.AwaitSettled(t, name)
	}
	s.Quiet(t, s.Mark(t), harness.Calm)
}

// writerOf returns the operator that has written a Deployment.
func writerOf(deployment *unstructured.Unstructured) string {
	image, _ := harness.ValueAt(deployment.Object, proxyImagePath).(string)
	return image[len("example.com/runner:"):]
}

const proxyImagePath = `.spec.template.spec.containers[name="toolhive"].image`

// TestShards moves MCPServers between two operators whose watches of MCPServers lag behind those of the children. As long as an
// MCPServer stays where it is, the operator that it has left does not write its Deployment after the other one has written it. Neither
// operator writes an older spec than the other has written. In the end each proxy is that of the operator that works for its MCPServer,
// and the children are the same objects as before.
func TestShards(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	s := newShards(t)
	servers, proxies := s.Record(t, harness.FormOf(harness.ServerItself).Resource), s.Record(t, harness.FormOf(harness.Proxy).Resource)
	versions := record(t, s.Namespace)
	var names []string
	for i := range shardServers {
		names = append(names, fmt.Sprintf("moved-%d", i))
		s.known.add(s.Create(t, harness.HTTPServer(names[i], of(shardName(i%len(s.lags))), harness.Environment(editedVariable, "0"))))
	}
	s.Create(t, harness.HTTPServer("nobodys", of("c")))
	s.awaitEnd(t, names)
	before := s.identities(t, names)
	mark := s.Mark(t)
	for i := range shardMoves {
		s.move(t, names[s.random.IntN(len(names))], i)
	}
	s.awaitEnd(t, names)

	if diff := gocmp.Diff(before, s.identities(t, names)); diff != "" {
		t.Errorf("children were made anew (-before +after):\n%s", diff)
	}
	if _, err := s.Object(t.Context(), harness.Proxy, "nobodys"); err == nil {
		t.Error("an MCPServer that no operator selects has a proxy")
	}
	asked, _, err := s.Audit.Since(mark, s.ByOperator(), audit.Verb("list"), audit.Resource(managers.MCPServer.Group, "mcpservers"))
	if err != nil {
		t.Fatal(err)
	}
	versions.check(t, s.known)
	took, moves, edits := 0, 0, len(s.known)-len(names)
	ofServers, ofProxies := servers.Complete(t), proxies.Complete(t)
	for _, name := range names {
		n, m := checkTurns(t, name, ofServers, ofProxies)
		took, moves = took+n, moves+m
	}
	if moves < shardMoves/5 || took == 0 || edits == 0 || len(asked) <= len(s.lags) {
		t.Errorf("%d moves, %d changes of hands, %d edits, asked %d times: the test is about nothing", moves, took, edits, len(asked))
	}
	t.Logf("%d moves, %d changes of hands, %d edits, %d questions", moves, took, edits, len(asked))
}

// identities are the UIDs of the children.
func (s *shards) identities(t *testing.T, names []string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, name := range names {
		for _, component := range []harness.Component{harness.Proxy, harness.Backend, harness.ProxyService} {
			found[name+"/"+string(component)] = string(s.MustObject(t, component, name).GetUID())
		}
	}
	return found
}

// checkTurns fails the test if an operator has written a Deployment after the other one, to which the MCPServer had moved, had
// written it. It returns how often the MCPServer has moved, and how often the Deployment then became the other operator's.
func checkTurns(t *testing.T, name string, servers, proxies []harness.Version) (took, moves int) {
	t.Helper()
	all := slices.Concat(harness.Named(name, servers), harness.Named(name, proxies))
	slices.SortFunc(all, func(a, b harness.Version) int { return cmp.Compare(a.Revision, b.Revision) })
	var shard, writer string
	answered := false // The operator of the shard has written since the MCPServer moved there.
	for _, v := range all {
		if v.GetKind() == v1beta1.MCPServerKind {
			if now := v.GetLabels()[shardLabel]; now != shard {
				shard, answered = now, false
				moves++
			}
			continue
		}
		now := writerOf(v.Unstructured)
		if now == writer {
			continue
		}
		if now != shard && answered {
			t.Errorf("%s is of shard %s, whose operator has written the Deployment, and operator %s wrote it after that, as revision %d", name, shard, now, v.Revision)
		}
		answered = answered || now == shard
		writer = now
		took++
	}
	return took, moves
}
