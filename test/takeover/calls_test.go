// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/test/harness"
	"github.com/freehold-dev/freehold/test/mcpclient"
)

// caller is a client that calls an MCPServer until it is looked at.
type caller struct {
	*world

	member *member
	pod    string
}

// answered is how long a step of a call may take at most, at pace: see harness.AtPace. The client itself has more patience,
// as it cannot tell a machine that is short of processors from a server that does not answer.
const answered = 5 * time.Second

// callers call the MCPServers of a fleet, each with a new session every time.
//
// A proxy that ToolHive has made refuses connections from the moment on that it is told to stop, and the nodes go on
// sending it some until they have heard of it; those that it has not accepted yet are reset, whatever was sent on them,
// and those that it has not answered when it ends are closed. Freehold cannot mend that in pods that it has not made. A
// connection that is refused has carried no request, so it is safe to try again, and that is what clients do, or the mesh
// for them. Where it is reset or closed, a client may send a request again that changes nothing, as MCP lets a tool say of
// itself; the test server's tools do. To a request about a session that ended with its proxy the answer is 404, and a
// client of MCP has to begin a new one then. So none of these is counted as a call that failed; all are told. Each request
// has a connection of its own: one that is kept would be reset more often, since a request may cross with its end.
type callers []caller

func (w *world) callAll(t *testing.T, members []*member) (all callers) {
	t.Helper()
	for _, m := range members {
		if m.unanswered {
			continue
		}
		args := append(mcpclient.To(m.server), "-fresh", "-reconnect", "-patience=20s", "-timeout=1m", "-interval=400ms", "-repeat=0")
		all = append(all, caller{w, m, mcpclient.Start(t, w.Namespace, args...)})
	}
	for _, c := range all {
		harness.Eventually(t, "calls of "+c.member.server.Name, func(ctx context.Context) error {
			steps, err := mcpclient.Told(ctx, w.Namespace, c.pod)
			if err == nil && len(steps) < 3 {
				err = fmt.Errorf("there were %d steps", len(steps))
			}
			return err
		})
	}
	return all
}

// check tells which steps have failed, or took too long. Where there are several pods of both, none may have.
func (all callers) check(t *testing.T, before map[string]components) {
	t.Helper()
	for _, c := range all {
		name := c.member.server.Name
		steps, err := mcpclient.Told(t.Context(), c.Namespace, c.pod)
		if err != nil {
			t.Error(err)
		}
		failed, redials, resent, again, first := 0, int64(0), int64(0), 0, ""
		for _, told := range steps {
			redials, resent = redials+told.Redials, resent+told.Resent
			if told.Again != "" {
				again++
			}
			took := harness.AtPace(told.Time, told.Took())
			if told.Error == "" && took <= answered {
				continue
			}
			if failed++; failed == 1 {
				first = fmt.Sprintf(", first at %s: %s took %v, %v at pace: %s",
					told.Time.Format("15:04:05.000"), told.Step, told.Took(), took.Round(time.Millisecond), told.Error)
			}
		}
		t.Logf("calls of %s: %d steps, %d failed, %d refused connections and %d requests were tried again, %d sessions were lost%s",
			name, len(steps), failed, redials, resent, again, first)
		if before[name].replicas(t, harness.Proxy) > 1 && before[name].replicas(t, harness.Backend) > 1 && failed > 0 {
			t.Errorf("%s, which has several pods of each, failed in %d steps", name, failed)
		}
	}
}
