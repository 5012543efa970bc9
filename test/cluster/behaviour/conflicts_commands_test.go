// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/test/harness"
)

// settlement is a disagreement that the author of the MCPServer settles, with the command that the condition tells.
type settlement struct {
	otherWriter
	// command is the sentence of the condition that the command is in, without its end.
	command string
	// condition tells that it was done.
	condition string
	// trail are the writes to the object that settle it.
	trail []string
	// first is done before the command is carried out; nil for nothing.
	first step
	// twice tells that the other one writes again, and it is settled again.
	twice bool
}

const (
	toTake  = "Take ownership: "
	toYield = "Leave it: "
)

var settlements = map[string]settlement{
	"take-image": {
		otherWriter: otherWriter{
			component: harness.Proxy, path: imagePath,
			write:  runs("set", "image", "OBJECT", "toolhive=example.com/other:1"),
			then:   standings{value: becomes("example.com/other:1"), owners: []string{"kubectl-set Update"}},
			class:  managers.ClassKubectl,
			lastly: standings{value: unchanged, owners: []string{"freehold-proxy Apply"}, news: []string{"FieldManagerConflict", "FieldsTaken"}},
		},
		command: toTake, condition: v1beta1.ConditionFieldsTaken, twice: true,
		trail: []string{"edit by freehold-ownership: 200", "apply by freehold-proxy: 200"},
	},
	"take-replicas": {
		otherWriter: otherWriter{
			spec: []harness.Change{scaled(1, 1)}, component: harness.Proxy, path: replicasPath,
			write:  autoscales(2),
			then:   standings{value: becomes(int64(2)), owners: []string{hpaOwner}},
			class:  managers.ClassScaler,
			lastly: standings{value: unchanged, owners: []string{"freehold-proxy-replicas Apply"}, news: []string{"FieldManagerConflict", "FieldsTaken"}},
		},
		// The claim of an autoscaler outlives it. One that is there would set its number again.
		first: func(t *testing.T, s *scene) {
			t.Helper()
			s.kubectl.Run(t, "delete", "horizontalpodautoscaler", "--all", "--wait=true")
		},
		command: toTake, condition: v1beta1.ConditionFieldsTaken,
		trail: []string{"edit by freehold-ownership: 200", "apply by freehold-proxy-replicas: 200"},
	},
	"take-none": {
		otherWriter: otherWriter{
			spec: []harness.Change{scaled(1, 1)}, component: harness.Proxy, path: replicasPath,
			write:  runs("scale", "OBJECT", "--replicas=0"),
			then:   standings{value: becomes(int64(0))},
			class:  managers.ClassUnknown,
			lastly: standings{value: unchanged, owners: []string{"freehold-proxy-replicas Apply"}, news: []string{"FieldManagerConflict", "FieldsTaken"}},
		},
		command: toTake, condition: v1beta1.ConditionFieldsTaken,
		trail: []string{"apply by freehold-proxy-replicas: 200"},
	},
	// What somebody else has taken is theirs already: nothing is released.
	"yield-variable": {
		otherWriter: otherWriter{
			component: harness.Proxy, path: `.spec.template.spec.containers[name="toolhive"].env[name="OPERATOR_OPENSHIFT"].value`,
			write:  runs("set", "env", "OBJECT", "OPERATOR_OPENSHIFT=true"),
			then:   standings{value: becomes("true"), owners: []string{"kubectl-set Update"}},
			class:  managers.ClassKubectl,
			lastly: standings{value: becomes("true"), owners: []string{"kubectl-set Update"}, news: []string{"FieldManagerConflict"}},
		},
		command: toYield, condition: v1beta1.ConditionFieldsYielded,
	},
	// The API server would refuse a probe with two handlers, and name neither manager.
	"take-probe": {
		otherWriter: probeOfKubectl(unchanged, nil, "FieldsTaken"),
		command:     toTake, condition: v1beta1.ConditionFieldsTaken,
		trail: []string{"edit by freehold-ownership: 200", "apply by freehold-proxy: 200"},
	},
	"yield-probe": {
		otherWriter: probeOfKubectl(becomes(int64(8080)), []string{"kubectl-patch Update"}, "FieldsReleased"),
		command:     toYield, condition: v1beta1.ConditionFieldsYielded,
		trail: []string{"edit by freehold-ownership: 200"},
	},
	// Nor does it accept two ports of one name.
	"take-port": {
		otherWriter: portOfKubectl(),
		command:     toTake, condition: v1beta1.ConditionFieldsTaken,
		trail: []string{"edit by freehold-ownership: 200", "apply by freehold-proxy: 200"},
	},
	// What both have is given up.
	"yield-shared": {
		otherWriter: otherWriter{
			component: harness.ProxyService, path: ".spec.sessionAffinity",
			write: func(t *testing.T, s *scene) {
				t.Helper()
				shared := map[string]any{"spec": map[string]any{"sessionAffinity": "ClientIP"}}
				s.MustApply(t, argo, s.component, s.server, false, shared)
				asks(func(server *v1beta1.MCPServer) { server.Spec.SessionAffinity = "None" })(t, s)
			},
			then:   standings{value: unchanged, owners: []string{argo + " Apply", "freehold-service Apply"}},
			class:  managers.ClassGitOps,
			lastly: standings{value: unchanged, owners: []string{argo + " Apply"}, news: []string{"FieldManagerConflict", "FieldsReleased"}},
		},
		command: toYield, condition: v1beta1.ConditionFieldsYielded,
		trail: []string{"apply by freehold-service: 200", "edit by freehold-ownership: 200"},
	},
}

// probeOfKubectl gives a probe of the proxy another handler. Lastly its port has a value and owners, and there is news.
func probeOfKubectl(value wanted, owners []string, news string) otherWriter {
	const probe, whole = "/spec/template/spec/containers/0/livenessProbe", `.spec.template.spec.containers[name="toolhive"].livenessProbe`
	return otherWriter{
		component: harness.Proxy, path: whole + ".tcpSocket.port", whole: whole,
		write: runs("patch", "OBJECT", "--type=json",
			`--patch=[{"op":"remove","path":"`+probe+`/httpGet"},{"op":"add","path":"`+probe+`/tcpSocket","value":{"port":8080}}]`),
		then:   standings{value: becomes(int64(8080)), owners: []string{"kubectl-patch Update"}},
		class:  managers.ClassKubectl,
		lastly: standings{value: value, owners: owners, news: []string{"FieldManagerConflict", news}},
	}
}

// portOfKubectl gives the port of the proxy another number. That cannot be left to others by itself.
func portOfKubectl() otherWriter {
	const whole = `.spec.template.spec.containers[name="toolhive"].ports[containerPort=8081,protocol="TCP"]`
	return otherWriter{
		component: harness.Proxy, path: whole, whole: whole, fields: 4,
		write: runs("patch", "OBJECT", "--type=json",
			`--patch=[{"op":"replace","path":"/spec/template/spec/containers/0/ports/0/containerPort","value":8081}]`),
		then: standings{
			value:  becomes(map[string]any{"containerPort": int64(8081), "name": "http", "protocol": "TCP"}),
			owners: []string{"kubectl-patch Update"},
		},
		class:  managers.ClassKubectl,
		lastly: standings{value: unchanged, news: []string{"FieldManagerConflict", "FieldsTaken"}},
	}
}

// TestCommandsOfTheCondition does what the condition FieldsOwned tells its reader to do: it runs the command, as it
// stands there. It settles the disagreement, at once and without force, and nothing more comes of it.
func TestCommandsOfTheCondition(t *testing.T) {
	t.Parallel()
	for name, settlement := range settlements {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := env.Namespace(t)
			process := ns.Operate(t)
			s := &scene{Namespace: ns, kubectl: ns.Kubectl(t), server: name, component: settlement.component}
			ns.Create(t, harness.Server(name, v1beta1.TransportStreamableHTTP, settlement.spec...))
			ns.AwaitSettled(t, name)
			awaitSilence(t, ns)
			begin(t, s, &settlement.otherWriter)
			disagreeing := map[string]otherWriter{name: settlement.otherWriter}
			awaitSilence(t, ns)
			ns.AwaitWorkloads(t, name) // Else what is tested may lose a race against who writes their status.
			checkGauge(t, process, disagreeing)

			settle(t, s, process, &settlement)
			s.checkEvents(t, settlement.lastly.news)
			if !settlement.twice {
				return
			}
			settlement.write(t, s)
			ns.AwaitConflict(t, name, "kubectl-set", v1beta1.AnnotationTake+"=,")
			awaitSilence(t, ns)
			ns.AwaitWorkloads(t, name) // Else what is tested may lose a race against who writes their status.
			checkGauge(t, process, disagreeing)
			settle(t, s, process, &settlement)
		})
	}
}

// settle runs the command, and looks at what comes of it.
func settle(t *testing.T, s *scene, process *operator.Process, w *settlement) {
	t.Helper()
	if w.first != nil {
		w.first(t, s)
	}
	mark := s.Mark(t)
	s.kubectl.Shell(t, s.command(t, w.command))
	s.AwaitNoConflict(t, s.server)
	s.await(t, w.path, &w.lastly)
	s.AwaitServer(t, s.server, "tells what was done", func(server *v1beta1.MCPServer) error {
		c := meta.FindStatusCondition(server.Status.Conditions, w.condition)
		if c == nil || c.Status != "True" || !strings.Contains(c.Message, w.settling()) {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
	s.AwaitSettled(t, s.server)
	awaitSilence(t, s.Namespace)
	s.Quiet(t, s.Mark(t), harness.Calm)
	if diff := cmp.Diff(w.trail, s.trail(t, mark)); diff != "" {
		t.Errorf("it was not settled as it should have been (-want +got):\n%s", diff)
	}
	s.await(t, w.path, &w.lastly)
	checkGauge(t, process, nil)
}

// command is one of the commands that the condition tells.
func (s *scene) command(t *testing.T, sentence string) string {
	t.Helper()
	server, err := s.Servers.Get(t.Context(), s.server, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	message := meta.FindStatusCondition(server.Status.Conditions, v1beta1.ConditionFieldsOwned).Message
	_, rest, found := strings.Cut(message, sentence)
	if !found {
		t.Fatalf("there is no command in: %s", message)
	}
	command, _, _ := strings.Cut(strings.TrimSuffix(rest, "."), ". Or ")
	command, _, _ = strings.Cut(command, ". "+toYield)
	return command
}

// trail are the writes that operators have made to the scene's object since the mark.
func (s *scene) trail(t *testing.T, since audit.Mark) []string {
	t.Helper()
	form := harness.FormOf(s.component)
	var trail []string
	for _, e := range s.Writes(t, since) {
		if e.Group != form.Resource.Group || e.Resource != form.Resource.Resource || e.Name != form.Name(s.server) {
			continue
		}
		verb := e.Verb
		switch {
		case e.IsForced():
			verb = "forced apply"
		case e.IsApply():
			verb = "apply"
		case strings.Contains(string(e.Body), `"/metadata/managedFields"`):
			verb = "edit"
		}
		trail = append(trail, fmt.Sprintf("%s by %s: %d", verb, e.FieldManager, e.Code))
	}
	return trail
}
