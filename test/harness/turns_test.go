// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import "testing"

// TestEachLongTestHasATurnEverySixthDay counts the turns of tests over some days: each has one every sixth day, and the longest ones of the
// real node do not come together.
func TestEachLongTestHasATurnEverySixthDay(t *testing.T) {
	longest := []string{"TestVirtualMCPServer", "TestBothOperators", "TestDeletion"}
	names := append([]string{"TestBadInput", "TestShards", "TestTwoOperatorsTurnNoProxyBack"}, longest...)
	const days = 3 * turns
	for _, name := range names {
		var had int
		for seed := 20261125; seed < 20261125+days; seed++ {
			switch wait := awaitsTurn(name, seed); {
			case wait == 0:
				had++
			case awaitsTurn(name, seed+wait) != 0:
				t.Errorf("%s does not have its turn %d days after %d, as told", name, wait, seed)
			}
		}
		if had != days/turns {
			t.Errorf("%s had its turn %d times in %d days", name, had, days)
		}
	}
	for seed := range turns {
		var together []string
		for _, name := range longest {
			if awaitsTurn(name, seed) == 0 {
				together = append(together, name)
			}
		}
		if len(together) > 1 {
			t.Errorf("with seed %d, these have their turn: %v", seed, together)
		}
	}
}

// seconds is how long the long tests without a real node took on two processors, in November 2026.
var seconds = map[string]int{
	"TestWhatOthersWriteStays": 144, "TestControllerRuntime": 122, "TestAPIServerOutage": 109, "TestBesideHelm": 82,
	"TestKindInstalledLater": 82, "TestGetImage": 80, "TestWritesOfTheOperatorTouchNothingOfCoauthors": 74,
	"TestANewConfigIsLeftToToolHiveForAMinute": 61, "TestHandbackOfConfigsInterrupted": 61, "TestBadInput": 58,
	"TestRenamedWriters": 53, "TestTwoOperatorsTurnNoObjectBack": 50, "TestPausedLeader": 49, "TestBadAnswersAreForgotten": 48,
	"TestObjectsOfToolHive": 45, "TestDoctor": 43, "TestEtcdIsRestoredFromASnapshot": 44, "TestOddInput": 42,
	"TestTwoOperatorsTurnNoProxyBack": 42, "TestZeroValues": 41, "TestRestartWhileRolling": 41, "TestPodTemplateFields": 38, "TestNamespaceDeletion": 36,
	"TestShards": 36, "TestTakeoverPace": 32, "TestWatchNamespaces": 32, "TestScale": 31, "TestForeignObjects": 30, "TestNewerSchema": 30,
	"TestContestedOverrides": 28, "TestTakeoverContested": 27, "TestUninstallKeepingWorkloads": 26, "TestDelaysAreShown": 25,
	"TestUninstallEverything": 23, "TestStdioIsSetBackAgainstAnAutoscaler": 22, "TestUninstallInterrupted": 22, "TestStuck": 21,
	"TestLeftoversOfAPredecessorAreWritten": 20, "TestUninstallButDefinitions": 20, "TestUninstallToToolHive": 19,
	"TestTakeoverOfPullSecrets": 16, "TestPodTemplateEverything": 15, "TestAHastyScalerIsAnsweredAfterWaitsThatDouble": 15,
	"TestAnEditUnderAWritersNameIsAConflict": 14, "TestLibraryExample": 11, "TestStuckForGood": 11,
	"TestACollidingNameIsOfWhoComesFirst": 10, "TestSlowConfigMap": 6,
}

// TestTurnsAreAlike shows that short runs take about the same time whichever long tests have their turn.
func TestTurnsAreAlike(t *testing.T) {
	sum, shares := 0, [turns]int{}
	for name, took := range seconds {
		sum += took
		for seed := range shares {
			if awaitsTurn(name, seed) == 0 {
				shares[seed] += took
			}
		}
	}
	for seed, share := range shares {
		if mean := sum / turns; share < mean*3/4 || share > mean*5/4 {
			t.Errorf("the long tests of seed %d take %d s, and those of all seeds %d s on average: %v", seed, share, mean, shares)
		}
	}
}
