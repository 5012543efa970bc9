// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
)

// State is the result of a check, and the severity of a finding.
type State string

// States, the worst last.
const (
	// OK is a check that has found nothing.
	OK State = "OK"
	// Warning is something that works and should be otherwise.
	Warning State = "Warning"
	// NotChecked is a check that could not look at everything, and has found no error in the rest.
	NotChecked State = "NotChecked"
	// Error is something that does not work.
	Error State = "Error"
)

var states = []State{OK, Warning, NotChecked, Error}

func worse(a, b State) State {
	return states[max(slices.Index(states, a), slices.Index(states, b))]
}

// WorstFirst compares two states for a list that begins with the worst.
func WorstFirst(a, b State) int { return slices.Index(states, b) - slices.Index(states, a) }

// Diagnosis is the answer of doctor, for programs as well. Names and meanings of its fields, the names of checks and the reasons of
// findings stay; more may come.
type Diagnosis struct {
	// Operator is its Deployment, as NAMESPACE/NAME.
	Operator string `json:"operator"`
	// Plugin is the version of kubectl freehold.
	Plugin string `json:"plugin"`
	// State is the worst of the checks.
	State State `json:"state"`
	// Checks in the order in which they are made.
	Checks []Check `json:"checks"`
}

// Check is the result of one check.
type Check struct {
	// Name of the check, and About, the subject of it.
	Name  string `json:"name"`
	About string `json:"about"`
	State State  `json:"state"`
	// Detail says what was seen.
	Detail string `json:"detail,omitempty"`
	// Findings are the problems.
	Findings []Finding `json:"findings"`
	// NotChecked says why a part could not be looked at, such as for want of a right.
	NotChecked []string `json:"notChecked,omitempty"`
}

// Finding is something that is wrong.
type Finding struct {
	// Severity is Error or Warning.
	Severity State `json:"severity"`
	// Reason in one word.
	Reason string `json:"reason"`
	// Object in question as kubectl takes it, and its namespace, as far as there are such.
	Object    string `json:"object,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Message says what is wrong and what follows from it, and Do what to do about it: a command, or a sentence.
	Message string `json:"message"`
	Do      string `json:"do"`
}

// about returns a function that adds findings about an object; both names are empty for none.
func (c *Check) about(object, namespace string) func(severity State, reason, message, do string) {
	return func(severity State, reason, message, do string) {
		f := Finding{Severity: severity, Reason: reason, Object: object, Namespace: namespace, Message: message, Do: do}
		c.Findings, c.State = append(c.Findings, f), worse(c.State, severity)
	}
}

// cannot records that something could not be looked at.
func (c *Check) cannot(err error) { c.unknown(reasonOf(err)) }

// reasonOf returns why something could not be looked at, in one line.
func reasonOf(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if apierrors.IsForbidden(err) {
		text = missingRight(text)
	}
	return text
}

// unknown records that something is not known.
func (c *Check) unknown(text string) {
	if !slices.Contains(c.NotChecked, text) {
		c.NotChecked, c.State = append(c.NotChecked, text), worse(c.State, NotChecked)
	}
}

// missingRight names the right that a user lacks. The API server says it like this: User "jane" cannot list resource "pods" in API group
// "" in the namespace "shop".
func missingRight(refusal string) string {
	const cannot = " cannot "
	if i := strings.LastIndex(refusal, cannot); i >= 0 {
		return "needs the right to " + refusal[i+len(cannot):]
	}
	return refusal
}

// Subject is the installation to be looked at.
type Subject struct {
	Client *cluster.Client
	// Operator is its Deployment, as NAMESPACE/NAME.
	Operator string
	// Plugin is the version of kubectl freehold.
	Plugin string
	Now    time.Time
	// Pre is set before Freehold is installed.
	Pre bool
}

// checks are the checks of doctor. Each looks at one thing, and none depends on another's findings.
var checks = []struct {
	name, about string
	look        func(*examination, *Check) error
	pre         bool // It is made before Freehold is installed, too.
}{
	{"crds", "CustomResourceDefinitions: established, with the versions and fields that Freehold and the objects need, one installer", (*examination).crds, true},
	{"operator", "the operator's Deployment: there, and available", (*examination).operator, false},
	{"leader", "the Lease: one replica holds it, and renews it", (*examination).leader, false},
	{"restarts", "the operator's pods: they run, and do not restart", (*examination).restarts, false},
	{"version", "the operator's image: it names a version, that of this plugin", (*examination).version, false},
	{"operators", "other operators: none of ToolHive's or Freehold's works on the same MCPServers, and each MCPServer has one", (*examination).operators, true},
	{"rights", "the rights of the operator's ServiceAccount: all of the ClusterRole freehold", (*examination).rights, false},
	{"policies", "the optional admission policies: whole, and about this operator", (*examination).policies, true},
	{"images", "images of proxyrunners and MCP servers: versions that are known and tested", (*examination).images, false},
	{"names", "names of children: none is taken by an object of another owner", (*examination).names, true},
	{"services", "Services: those of MCPServers lead to no pods of others, and those of others to no backend", (*examination).services, true},
}

// Examine makes all checks. One that cannot read something says so, and the others go on; the error is for a cluster that does not
// answer at all.
func Examine(s Subject) (Diagnosis, error) {
	e := newExamination(s)
	found := Diagnosis{Operator: s.Operator, Plugin: s.Plugin, State: OK, Checks: []Check{}}
	for _, check := range checks {
		if s.Pre && !check.pre {
			continue
		}
		c := Check{Name: check.name, About: check.about, State: OK, Findings: []Finding{}}
		if err := e.make(check.look, &c); err != nil {
			return found, err
		}
		found.Checks, found.State = append(found.Checks, c), worse(found.State, c.State)
	}
	return found, nil
}

// make makes a check. It returns an error only where the cluster has not answered anything yet: one request of many may get no answer.
func (e *examination) make(look func(*examination, *Check) error, c *Check) error {
	err := look(e, c)
	answer := apierrors.APIStatus(nil)
	e.answered = e.answered || err == nil || errors.As(err, &answer) || errors.Is(err, errUnknown)
	if err != nil && !e.answered {
		return err
	}
	if err != nil {
		c.cannot(err)
	}
	return nil
}

// errUnknown means that the operator's Deployment does not show how the operator runs.
var errUnknown = errors.New("how the operator runs is not known")

// examination is what the checks share. Objects that several of them look at are read once.
type examination struct {
	Subject
	// answered is set once the cluster has answered a request.
	answered   bool
	deployment func() (*appsv1.Deployment, error)
	process    func() (cluster.Process, error)
	pods       func() ([]*corev1.Pod, error)
	lease      func() (*coordinationv1.Lease, error)
	servers    func() ([]*v1beta1.MCPServer, error)
	freeholds  func() []cluster.Running
}

func newExamination(s Subject) *examination {
	e := &examination{Subject: s}
	e.deployment = sync.OnceValues(func() (*appsv1.Deployment, error) { return s.Client.Operator(s.Operator) })
	e.process = sync.OnceValues(func() (process cluster.Process, err error) {
		deployment, err := e.deployment()
		if err != nil {
			return process, err
		}
		if process, err = cluster.ProcessOf(deployment); err != nil {
			err = fmt.Errorf("%w: %w", errUnknown, err)
		}
		return process, err
	})
	e.pods = sync.OnceValues(func() (pods []*corev1.Pod, err error) {
		deployment, err := e.deployment()
		if err == nil {
			pods, err = s.Client.Pods(deployment)
		}
		return pods, err
	})
	e.lease = sync.OnceValues(func() (lease *coordinationv1.Lease, err error) {
		process, err := e.process()
		if err == nil {
			lease, err = s.Client.Lease(process.Lease)
		}
		return lease, err
	})
	e.servers = sync.OnceValues(e.readServers)
	e.freeholds = sync.OnceValue(func() []cluster.Running { // those with a Deployment
		found, _, _ := e.Client.Running(cluster.Freehold, e.Now) // The check of operators reports what cannot be looked at.
		return slices.DeleteFunc(found, func(r cluster.Running) bool { return r.Deployment() == "" })
	})
	return e
}

// readServers returns the MCPServers of the namespaces that the operator watches, as far as the user may list them; of all if that is
// not known.
func (e *examination) readServers() (all []*v1beta1.MCPServer, missing error) {
	process, _ := e.process()
	for _, namespace := range scopes(process.Namespaces) {
		found, err := e.Client.Servers(namespace)
		switch {
		case apierrors.IsNotFound(err):
			// Without a definition there is none.
		case err != nil:
			missing = cmp.Or(missing, err)
		}
		all = append(all, found...)
	}
	return all, missing
}

// scopes returns the namespaces that requests are about: these, or with an empty name all.
func scopes(namespaces []string) []string {
	if len(namespaces) == 0 {
		return []string{""}
	}
	return namespaces
}

// deploymentName returns the operator's Deployment as kubectl takes it.
func (e *examination) deploymentName() (object, namespace string) {
	namespace, name, _ := strings.Cut(e.Operator, "/")
	return "deployment.apps/" + name, namespace
}

// someOf returns the first few of many.
func someOf(all []string) string {
	const few = 5
	if len(all) <= few {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:few], ", "), len(all)-few)
}
