// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// HeldStatus is what others hold of an MCPServer's status and the operator does not: it shares what it wants to be the
// same. What the operator would write there cannot be told from outside, so Ours is missing. There is nothing of a status
// that the operator does not write.
func HeldStatus(server *v1beta1.MCPServer) (Intent, error) {
	intent := Intent{Writer: managers.Status, Object: ref(managers.MCPServer, server, server.Name)}
	writers := managers.Registry().Writers()
	i := slices.IndexFunc(writers, func(w fieldmanager.Writer) bool { return w.Name == managers.Status })
	if i < 0 || ownership.ApplyEntry(server, managers.Status, statusSubresource) == nil {
		return intent, nil
	}
	by := func(_ *metav1.ManagedFieldsEntry, owner ownership.Owner) bool {
		return !owner.Applies(managers.Status, statusSubresource) && !managers.IsToolHive(owner.Manager)
	}
	held, err := ownership.HeldBy(server, by, writers[i].Claim.Covers)
	if err != nil || held.Empty() {
		return intent, err
	}
	alone, err := ownership.Alone(server, held, managers.Status, statusSubresource)
	if err != nil {
		return intent, err
	}
	object, err := Encode(server)
	if err != nil {
		return intent, err
	}
	alone.Iterate(func(path fieldpath.Path) {
		c := Contested{Path: path.String(), Location: path.Copy(), Theirs: At(object, path)}
		for _, o := range ownership.Owners(server, c.Path) {
			if !o.Applies(managers.Status, statusSubresource) {
				c.Owners = append(c.Owners, o)
			}
		}
		intent.Contested = append(intent.Contested, c)
	})
	return intent, nil
}

const statusSubresource = "status"
