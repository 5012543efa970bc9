// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// texts has texts that many MCPServers hold, by themselves.
type texts struct{ known *lru.Cache }

const (
	rememberedTexts = 512
	// longestText is how long a text may be that is remembered, in bytes.
	longestText = 4 << 10
)

func newTexts() *texts { return &texts{known: lru.New(rememberedTexts)} }

// share returns a text equal to this one, as a rule the same for all callers.
func (t *texts) share(text string) string {
	if known, ok := t.known.Get(text); ok {
		return known.(string)
	}
	if len(text) <= longestText {
		t.known.Add(text, text)
	}
	return text
}

// slimServer is a cache.TransformFunc for MCPServers. They are kept whole. Conditions and managedFields are the largest part
// of them, and are alike: their texts are stored once, without the spare room that decoding leaves.
func (t *texts) slimServer(obj any) (any, error) {
	server, ok := obj.(*v1beta1.MCPServer)
	if !ok {
		return obj, nil
	}
	server.ManagedFields = slices.Clone(server.ManagedFields)
	for i := range server.ManagedFields {
		entry := &server.ManagedFields[i]
		entry.Manager, entry.APIVersion = t.share(entry.Manager), t.share(entry.APIVersion)
		if entry.FieldsV1 != nil {
			entry.FieldsV1 = metav1.NewFieldsV1(t.share(entry.FieldsV1.GetRawString()))
		}
	}
	server.Status.Conditions = slices.Clone(server.Status.Conditions)
	for i := range server.Status.Conditions {
		condition := &server.Status.Conditions[i]
		condition.Type, condition.Reason, condition.Message = t.share(condition.Type), t.share(condition.Reason), t.share(condition.Message)
		condition.Status = metav1.ConditionStatus(t.share(string(condition.Status)))
	}
	return server, nil
}
