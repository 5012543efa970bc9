// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/test/harness"
)

// aboutServers are messages that tell of an MCPServer, and so have to say which.
var aboutServers = []string{"Written", "Write refused", "Not written", "Fields changed hands", "Deleted", "Released the finalizer"}

// entry is one line of a log.
type entry struct {
	message string
	// server is the MCPServer that it is about, as namespace/name; empty for none.
	server string
	// keys are its other values, in no order.
	keys map[string]bool
}

// playScenario lets an operator create an MCPServer, meet a conflict and see the MCPServer deleted. It returns the whole log
// of the operator.
func playScenario(t *testing.T, ns *harness.Namespace, args ...string) string {
	t.Helper()
	args = append(args, "--leader-elect=true", "--leader-elect-resource-namespace="+operator.Namespace)
	process, log := ns.OperateLogged(t, args...)
	ns.Create(t, harness.Server("web", v1beta1.TransportStreamableHTTP))
	ns.AwaitSettled(t, "web")
	dispute(t, ns)
	ns.Delete(t, "web", metav1.DeletePropagationBackground)
	ns.AwaitGone(t, "web")
	harness.Stop(t, process)
	return log()
}

// checkScenario checks that the log reports what has happened, and to which MCPServer.
func checkScenario(t *testing.T, entries []entry, server string) {
	t.Helper()
	told := map[string]int{}
	for _, e := range entries {
		if !slices.Contains(aboutServers, e.message) {
			continue
		}
		told[e.message]++
		if e.server != server {
			t.Errorf("%q is told of MCPServer %q, want %q", e.message, e.server, server)
		}
		for _, key := range []string{"writer", "object", "action"} {
			if (e.message == "Written" || e.message == "Write refused") && !e.keys[key] {
				t.Errorf("%q is told without %s: %v", e.message, key, e.keys)
			}
		}
	}
	for _, message := range []string{"Written", "Write refused", "Released the finalizer"} {
		if told[message] == 0 {
			t.Errorf("%q is not told: %v", message, told)
		}
	}
}

// Each line of a log in JSON is an object, those of libraries and those of the start and the end included. That nobody
// takes the traces is told once, in JSON as well.
func TestEachLineOfALogInJSONIsAnObject(t *testing.T) {
	// The spans are sent ten times a second, and each time in vain.
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
	t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", "100")
	ns := env.Namespace(t)
	log := playScenario(t, ns, "--logging-format=json", "--tracing-endpoint="+closedAddress(t))
	if told := strings.Count(log, "Traces are not delivered"); told != 1 {
		t.Errorf("it is told %d times that traces are not delivered", told)
	}
	var entries []entry
	for line := range strings.Lines(log) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Errorf("no JSON: %v: %s", err, line)
			continue
		}
		for _, key := range []string{"ts", "msg"} {
			if object[key] == nil {
				t.Errorf("a line without %s: %s", key, line)
			}
		}
		one := entry{keys: map[string]bool{}}
		one.message, _ = object["msg"].(string)
		one.server, _ = object["MCPServer"].(string)
		for key := range object {
			one.keys[key] = true
		}
		entries = append(entries, one)
	}
	checkScenario(t, entries, ns.Name+"/web")
}

// closedAddress is one where nobody listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // at once
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

var (
	// headed is a line as text: severity, date, time, process, place in the source, message, values.
	headed = regexp.MustCompile(`^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ [\w.-]+\.go:\d+\] (?:"((?:[^"\\]|\\.)*)"(.*)|.*)$`)
	// value is one of its values. One that spans lines goes on below.
	value    = regexp.MustCompile(` ([\w.]+)=`)
	aboutOne = regexp.MustCompile(` MCPServer="([^"]*)"`)
)

// Each line of a log as text has the head that klog's have, and values by their names.
func TestLogAsText(t *testing.T) {
	ns := env.Namespace(t)
	var entries []entry
	for line := range strings.Lines(playScenario(t, ns)) {
		found := headed.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if found == nil {
			t.Errorf("a line without a head: %s", line)
			continue
		}
		one := entry{message: found[1], keys: map[string]bool{}}
		if about := aboutOne.FindStringSubmatch(found[2]); about != nil {
			one.server = about[1]
		}
		for _, key := range value.FindAllStringSubmatch(found[2], -1) {
			one.keys[key[1]] = true
		}
		entries = append(entries, one)
	}
	checkScenario(t, entries, ns.Name+"/web")
}
