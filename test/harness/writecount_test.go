// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

func TestWritesAreCountedByWriter(t *testing.T) {
	writes := []*audit.Event{
		request(server, applies(managers.Finalizer, swap)),
		request(server, applies(managers.Status, swap), status),
		request(server, applies(managers.Status, swap), status, code(409)),
		request(deployment, applies(managers.Proxy, create)),
		request(deployment, applies(managers.ProxyReplicas, swap)),
		request(deployment, applies(managers.Proxy, swap), code(409)),
		request(deployment, applies(managers.ProxyReplicas, swap), code(409)),
		request(on("", "services", "mcp-a"), deletes("")),
		request(on("", "services", "mcp-a-headless"), deletes(""), code(409)),
		request(on("", "configmaps", "a-runconfig"), applies(managers.RunConfig, create)),
		request(on("events.k8s.io", "events", ""), verb("create"), func(e *audit.Event) { e.Body = []byte(`{"regarding":{"name":"a"}}`) }),
		request(on("events.k8s.io", "events", "a.17"), verb("patch")),
		// Not a's.
		request(on("", "services", "mcp-a-x"), applies(managers.Service, create)),
		request(on("apps", "deployments", "b"), applies(managers.Proxy, create)),
		request(on("events.k8s.io", "events", ""), verb("create"), func(e *audit.Event) { e.Body = []byte(`{"regarding":{"name":"b"}}`) }),
	}
	count := CountWrites("a", writes)
	want := WriteCount{
		"finalizer": 1, "status": 1, "status (409)": 1, "proxy": 1, "proxy replicas": 1, "proxy (409)": 1,
		"proxy replicas (409)": 1, "delete service/backend": 1, "delete service/headless (409)": 1, "runconfig": 1, "event": 2,
	}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Errorf("cost (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[Component]int{Proxy: 2, HeadlessService: 1}, count.Lost()); diff != "" {
		t.Errorf("lost (-want +got):\n%s", diff)
	}
	want = WriteCount{"finalizer": 1, "status (409)": 1, "proxy": 1, "proxy replicas": 1, "delete service/backend": 1, "runconfig": 1, "event": 2}
	if diff := cmp.Diff(want, count.Without("status")); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

func TestAMetricIsReadByItsLabels(t *testing.T) {
	const text = `# HELP freehold_writes_total Intents.
freehold_writes_total{kind="Role",outcome="unchanged",writer="a b"} 3
freehold_writes_total{kind="Role",outcome="applied",writer="a b"} 2
freehold_writes_total{kind="Service",outcome="unchanged",writer="c"} 1.5e+01
freehold_writes_total_other{outcome="unchanged"} 100
up 1
`
	for name, test := range map[string]struct {
		metric string
		labels []string
		want   float64
	}{
		"all":           {"freehold_writes_total", nil, 20},
		"one label":     {"freehold_writes_total", []string{`outcome="unchanged"`}, 18},
		"two labels":    {"freehold_writes_total", []string{`outcome="unchanged"`, `writer="a b"`}, 3},
		"none":          {"freehold_writes_total", []string{`outcome="refused"`}, 0},
		"no labels":     {"up", nil, 1},
		"of no process": {"down", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := sum(text, test.metric, test.labels)
			if err != nil || got != test.want {
				t.Errorf("%v, %v; want %v", got, err, test.want)
			}
		})
	}
}
