// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/freehold-dev/freehold/hack/cluster/binaries"
)

func TestComponents(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		want    []Component
	}{
		"default":         {Options{}, []Component{Etcd, APIServer, ControllerManager, Scheduler, Kwok}},
		"no fake pods":    {Options{NoFakePods: true}, []Component{Etcd, APIServer, ControllerManager, Scheduler}},
		"real nodes":      {Options{RealNodes: true}, []Component{Etcd, APIServer, ControllerManager, Scheduler}},
		"API server only": {Options{APIServerOnly: true}, []Component{Etcd, APIServer}},
	} {
		if got := test.options.withDefaults().components(); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestEarlierControllers(t *testing.T) {
	usual, earlier := Options{}, Options{EarlierControllers: true}
	want := usual.programs()
	if !slices.Equal(want, usual.components()) {
		t.Errorf("the programs are %v, want %v", want, usual.components())
	}
	want[slices.Index(want, binaries.KubeControllerManager)] = binaries.EarlierControllerManager
	if got := earlier.programs(); !slices.Equal(got, want) {
		t.Errorf("the programs are %v, want %v", got, want)
	}
	if !slices.Equal(earlier.components(), usual.components()) {
		t.Errorf("the components are %v, want %v", earlier.components(), usual.components())
	}
}

func TestMakesServiceAccounts(t *testing.T) {
	for controllers, want := range map[string]bool{
		"":                              true,
		"*":                             true,
		"*,-serviceaccount-controller":  false,
		"-serviceaccount-controller,*":  false,
		"deployment-controller":         false,
		"x,serviceaccount-controller,y": true,
	} {
		if got := (Options{Controllers: controllers}).withDefaults().makesServiceAccounts(); got != want {
			t.Errorf("with the controllers %q: %t, want %t", controllers, got, want)
		}
	}
	if (Options{APIServerOnly: true}).withDefaults().makesServiceAccounts() {
		t.Error("an API server alone makes ServiceAccounts")
	}
}

func TestGCPercent(t *testing.T) {
	t.Setenv("GOGC", "50")
	if got := (Options{}).environment(); !slices.Equal(got, os.Environ()) {
		t.Errorf("the environment is %q", got)
	}
	// Of a name that is set twice, the last value counts.
	if got := (Options{GCPercent: 400}).environment(); got[len(got)-1] != "GOGC=400" {
		t.Errorf("the environment ends in %q", got[len(got)-1])
	}
}

func TestValidate(t *testing.T) {
	if err := (Options{}).withDefaults().validate(); err != nil {
		t.Errorf("the defaults are not valid: %v", err)
	}
	for _, options := range []Options{{FakeNodes: -1}, {PodReadyDelay: -time.Second}, {GCPercent: -1}, {APIServerOnly: true, RealNodes: true}, {APIServerOnly: true, EarlierControllers: true}} {
		if err := options.withDefaults().validate(); err == nil {
			t.Errorf("valid: %+v", options)
		}
	}
}

func TestStagesHaveNoPlaceholderLeft(t *testing.T) {
	got := stages(1500 * time.Millisecond)
	if strings.Contains(got, "@") {
		t.Errorf("a placeholder is left:\n%s", got)
	}
	for _, want := range []string{"durationMilliseconds: 1500\n", `.metadata.annotations["` + ReadyAfterAnnotation + `"]`} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
}
