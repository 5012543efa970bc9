// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/request"
)

func TestMoreFieldsThanFitAreTakenByTheirManagers(t *testing.T) {
	web := apply.NewObjectRef(managers.Deployment, "shop", "web")
	replicas := desired.Contested{Object: web, Path: ".spec.replicas", Owners: []ownership.Owner{{Since: time.Unix(0, 0)}}}
	contested := []desired.Contested{replicas}
	for i := range 2 * request.MaxEntries {
		contested = append(contested, desired.Contested{
			Object: web, Path: fmt.Sprint(".spec.a", i), Owners: []ownership.Owner{{Manager: "helm"}, {Manager: "kubectl-edit"}},
		})
	}
	toolHive := request.Selector{Manager: "toolhive-operator"}
	got := managersOf(contested, []request.Selector{replicas.Selector(), toolHive})
	want := []request.Selector{
		replicas.Selector(), {Object: web.String(), Manager: "helm"}, {Object: web.String(), Manager: "kubectl-edit"}, toolHive,
	}
	if !slices.Equal(want, got) {
		t.Errorf("%v, want %v", got, want)
	}
}
