// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"fmt"
	"regexp"
	"sync"
	"testing"

	"github.com/freehold-dev/freehold/internal/history"
)

// differences are what may differ between a simulated end and a real one. What matches a pattern is not compared.
var differences = []struct {
	// leaf matches leaves as leavesOf has them.
	leaf *regexp.Regexp
	why  string
	// rare tells that it is there in some runs only.
	rare bool
}{
	{leaf: regexp.MustCompile(`^(ConfigMap/kube-root-ca.crt|ServiceAccount/default) `), why: "controllers that are not simulated put them into every namespace"},
	{leaf: regexp.MustCompile(`^Service/\S+ \.spec\.clusterIPs?(\[0\])?=\d`), why: "the simulation has no range of addresses"},
	{leaf: regexp.MustCompile(`^StatefulSet/\S+ \.status\.(current|update)Revision=`), why: "the simulation has no ControllerRevisions, and another hash"},
	{
		leaf: regexp.MustCompile(`^(Deployment|StatefulSet)/\S+ kube-controller-manager Update status owns \.status\.`),
		why:  "once managedFields are stripped, it owns what it has changed since, and what it writes on the way is a matter of the moment",
	},
	{
		leaf: regexp.MustCompile(`^Deployment/\S+ (\S+ Update status owns )?\.status\.collisionCount`), rare: true,
		why: "where a Deployment is made again before the ReplicaSet of the one before is gone, both would have the same name",
	},
}

// differencesSeen are those that there were, by their index.
type differencesSeen struct {
	mu   sync.Mutex
	seen map[int]bool
}

func (d *differencesSeen) note(i int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil {
		d.seen = map[int]bool{}
	}
	d.seen[i] = true
}

// check fails the test for differences that there were none of, but for rare ones.
func (d *differencesSeen) check(t *testing.T) {
	t.Helper()
	for i, difference := range differences {
		if !d.seen[i] && !difference.rare {
			t.Errorf("nothing matches %s any more", difference.leaf)
		}
	}
}

// leavesOf lists the values of a state, and the fields of owners, that are compared: as "Kind/name path=value" and
// "Kind/name owner owns path".
func leavesOf(t *testing.T, state history.State, seen *differencesSeen) map[string]bool {
	t.Helper()
	leaves := map[string]bool{}
	add := func(leaf string) {
		for i, difference := range differences {
			if difference.leaf.MatchString(leaf) {
				seen.note(i)
				return
			}
		}
		leaves[leaf] = true
	}
	for name, text := range state {
		var found struct {
			Object any
			Owners map[string][]string
		}
		if err := json.Unmarshal(text, &found); err != nil {
			t.Fatal(err)
		}
		flatten(name+" ", found.Object, add)
		for owner, fields := range found.Owners {
			for _, field := range fields {
				add(name + " " + owner + " owns " + field)
			}
		}
	}
	return leaves
}

// flatten tells the leaves of a JSON document by their paths.
func flatten(path string, value any, add func(leaf string)) {
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			flatten(path+"."+key, below, add)
		}
		if len(value) == 0 {
			add(path + "={}")
		}
	case []any:
		for i, below := range value {
			flatten(fmt.Sprintf("%s[%d]", path, i), below, add)
		}
	default:
		add(fmt.Sprintf("%s=%v", path, value))
	}
}
