// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/rollout"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// Observation is everything that one status is computed from.
type Observation struct {
	// Server is the MCPServer with its previous status.
	Server *v1beta1.MCPServer
	// URL where clients reach the MCPServer; empty keeps the previous one.
	URL string
	// NoService is set while the Service that the URL names does not exist, is being deleted, or is not the MCPServer's.
	NoService bool
	// Astray says how the Service that the URL names leads to others than the proxy's pods; empty when it does not.
	Astray string
	// Unenforced says what the proxy runs with in place of what its references ask for; empty for nothing. It counts while a write is refused.
	Unenforced string
	// SharedSessions is set when the proxy's sessions are in a store that all its pods share.
	SharedSessions bool
	// Unshared is what several pods of the proxy's authorization server would not share, see render.Result; empty for nothing.
	Unshared string
	// LosesSessions is set when the wanted proxyrunner does not serve the sessions in that store that pods of the proxy have
	// begun.
	LosesSessions bool
	// Invalid are the reasons for which nothing was rendered; with any of them no child was written.
	Invalid []Finding
	// Held are the reasons why the proxy, and the objects that it reads, were not written; all others were.
	Held []Finding
	// Hashes are those of the objects that the MCPServer refers to and that can be used.
	Hashes configs.Hashes
	// HashesUnused is set when the proxy has been made from other states of them, because its Deployment was not written.
	HashesUnused bool
	// Notices are conditions that do not keep the MCPServer from being served.
	Notices []Finding
	// Requests are conditions that report the outcome of what the MCPServer's author asks for besides its spec.
	Requests []Finding
	// Refusals are writes that the API server has refused, or that must not be made, and that the user should know of.
	Refusals []Finding
	// Contested are fields of the status itself that other field managers hold, and objects of Freehold's to which ToolHive writes. They
	// keep nothing from being written that the spec asks for.
	Contested []Finding
	// Delays are writes held back by something that usually passes by itself and has not passed: no answer, an object that
	// keeps changing or is being deleted.
	Delays []Finding
	// Unsettled is set when such a thing holds back a write, whether it is reported already or not. So earlier reports may
	// still hold, and nothing is known to be well.
	Unsettled bool
	// Doubtful is set when the conflicts that the status reports may stand, but are not known now.
	Doubtful bool
	// Unwritten is set when a write of the present generation was refused, for whatever reason.
	Unwritten bool
	// Unreported are conditions that were computed before and have not been written. They record since when they hold.
	Unreported []metav1.Condition
	// Deployment of the proxy; nil when it does not exist.
	Deployment *workload.Deployment
	// StatefulSet of the backend; nil when it does not exist.
	StatefulSet *workload.StatefulSet
	// ProxyPods are the pods that the proxy's Service selects.
	ProxyPods []*workload.Pod
	// Proxy and Backend say how far the rollouts of the two workloads have come.
	Proxy, Backend rollout.State
	// Images are those that the ready pods of the backend have, sorted and without repetition.
	Images []string
	// Unapplied is set when pods are not as the spec asks for, since their template could not be written.
	Unapplied bool
	// Withheld is set when the write of a workload was refused or held back, for whatever it is: its template was not written
	// either, and may be another one.
	Withheld bool
	// Recovering is set when some of these failed while the backend was not ready, and have not been started since.
	Recovering bool
}

// Finding is a condition that something else than the children's health decides.
type Finding struct {
	// Condition is the type.
	Condition string
	// Status of the condition.
	Status metav1.ConditionStatus
	// Reason of the condition.
	Reason string
	// Message of the condition.
	Message string
}

// written says which objects are written where no write was refused.
func (o Observation) written() string {
	if len(o.Held) > 0 {
		return "Every object is written except the proxy and what must change with it: they wait for a usable reference"
	}
	return "Every object is written"
}

// wrong returns the problems of the spec, or of the objects that it refers to.
func (o Observation) wrong() []Finding { return slices.Concat(o.Invalid, o.Held) }

// backendReady reports whether at least one backend pod is ready.
func (o Observation) backendReady() bool {
	return o.StatefulSet != nil && o.StatefulSet.Status.ReadyReplicas > 0
}
