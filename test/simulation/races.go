// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/freehold-dev/freehold/internal/apiserver"
)

// checkRace finds a process that loses a race against itself: the API server refuses its write since the object is another one than the
// process has seen, and it is this process that has changed it, and that knows. It waits until its cache shows what it has written.
func (o *oracle) checkRace(r *apiserver.Request, answer apiserver.Answer) {
	if answer.Code != http.StatusConflict || !r.Writes() || r.Kind == nil || !isOurs(r) || isPlugin(r) {
		return
	}
	body, _, err := scheme.Codecs.UniversalDeserializer().Decode(answer.Body, nil, nil) // Built-in kinds are served as protobuf.
	refusal, ok := body.(*metav1.Status)
	if !ok {
		o.violated(r, "a refusal that cannot be read: %v", err)
		return
	}
	var sent metav1.PartialObjectMetadata
	if err := json.Unmarshal(r.Body, &sent); err == nil && r.Verb == "apply" && sent.ResourceVersion == "1" {
		return // A creation. What there is, no cache shows: it has lost its label.
	}
	if refusal.Details != nil && len(refusal.Details.Causes) > 0 {
		return // Other field managers own some of it.
	}
	obj, ok := o.s.Server.Get(r.Kind, r.Namespace, r.Name)
	if !ok {
		return
	}
	last := o.last[access(obj).GetUID()]
	if _, waits := o.unanswered[last]; last != nil && last.Client == r.Client && !waits {
		o.violated(r, "the process lost a race against itself: %s", refusal.Message)
	}
}
