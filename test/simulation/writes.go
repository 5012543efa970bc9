// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

const (
	// mostWrites is how often a process writes the same to an object within a minute, whatever other clients do to it: once, and ten times
	// again.
	mostWrites = 11
	// alteredWrites is how many more there are in a minute in which admission has changed what was written: the process makes the write again
	// to see whether admission lets it be, after waits that double from five seconds.
	alteredWrites = 4
	// mostRollouts is how often a process changes the template of a workload within rolloutsIn, while users and other operators ask for
	// nothing else: seven times because others undo it, and a few times because what it refers to is another one.
	mostRollouts = 10
	rolloutsIn   = 10 * time.Minute
)

// tempo has the times at which writes of operators were carried out, of each kind that there may be a number of in a while.
type tempo map[string][]time.Time

// add takes note of a write. It returns how many there were within a while.
func (t tempo) add(write string, within time.Duration) int {
	now := time.Now()
	recent := slices.DeleteFunc(t[write], func(at time.Time) bool { return now.Sub(at) >= within })
	t[write] = append(recent, now)
	return len(t[write])
}

// checkTempo finds a process that makes the same write again and again, or replaces pods again and again, for the same specs: an edit of an
// MCPServer does not wait.
func (o *oracle) checkTempo(r *apiserver.Request, event watch.EventType, obj, old runtime.Object) {
	o.unanswered[r] = ""
	if r.Verb == "apply" && r.Subresource == "" && isChild(r.Kind) {
		o.unanswered[r] = fmt.Sprint(r.Client, " writes ", r, " for specs ", o.specs, string(intentIn(r.Body)))
	}
	if before, after := templateOf(old), templateOf(obj); event == watch.Modified && before != nil && text(before) != text(after) {
		if n := o.tempo.add(fmt.Sprint(r.Client, " rolls out ", r, " for specs ", o.specs), rolloutsIn); n > mostRollouts {
			o.violated(r, "the pods were replaced %d times within %s, for the same specs", n, rolloutsIn)
		}
	}
}

// allowedWrites is how often a process may have written the same to an object within the last minute. Two MCPServers that ask for an object of
// the same name may each have it in turn.
func (o *oracle) allowedWrites(r *apiserver.Request) int {
	most, servers := mostWrites, 0
	if o.s.policy != nil || time.Since(o.s.lifted) < time.Minute {
		most += alteredWrites
	}
	for _, name := range inventory.Servers(r.Kind.GroupKind(), r.Name) {
		if o.stays(r.Namespace, name) {
			servers++
		}
	}
	return most * max(1, servers)
}

// answered takes note of a request whose answer its client has. A process makes a write again whose answer it does not have.
func (o *oracle) answered(r *apiserver.Request) {
	if write := o.unanswered[r]; write != "" {
		if n := o.tempo.add(write, time.Minute); n > o.allowedWrites(r) {
			o.violated(r, "the same was written %d times within a minute", n)
		}
	}
	delete(o.unanswered, r)
}

// intentIn returns the body of an apply without what says for which version of the object it is, and from which version of other objects it
// comes.
func intentIn(body []byte) []byte {
	var content fields
	if json.Unmarshal(body, &content) != nil {
		return body
	}
	unstructured.RemoveNestedField(content, "metadata", "uid")
	unstructured.RemoveNestedField(content, "metadata", "resourceVersion")
	for _, stamp := range []string{v1beta1.AnnotationSource, v1beta1.AnnotationReferences, v1beta1.AnnotationReplicasSource} {
		unstructured.RemoveNestedField(content, "metadata", "annotations", stamp)
	}
	return []byte(text(content))
}
