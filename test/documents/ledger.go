// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import "strings"

// entry says who types some commands, or why nobody does.
type entry struct {
	// file and section name the commands; an empty section stands for all.
	file, section string
	// has is what the commands have in them; empty for any.
	has string
	// test that types them, as PACKAGE.NAME of a package under test/.
	test string
	// reason why no test types them.
	reason string
}

// exceptions are commands that no test types.
var exceptions = []entry{
	{file: "README.md", has: "make test", reason: "is what runs these tests"},
	{file: "SECURITY.md", section: "Verify a release", reason: "needs a release that is published, and the registry that has it"},
	{file: "docs/install.md", has: "kind load", reason: "needs kind; TestGetImage reads the archive's tag, which is what kind goes by"},
	{file: "docs/install.md", has: "k3s ctr", reason: "needs k3s; it is containerd's ctr, and takes the same archive"},
	{file: "docs/install.md", has: "helm ", reason: "needs the program helm; test/tools/chart does the same with its library"},
	{file: "docs/gitops.md", has: "helm ", reason: "needs the program helm; test/tools does the same with its library"},
	{file: "README.md", has: "port-forward", reason: "runs until it is interrupted, and needs a pod that listens; the pods of these suites are fake"},
	{file: "README.md", has: "curl ", reason: "needs a pod that answers; test/node calls MCPServers with a real client"},
	{file: "docs/kubectl-freehold.md", has: "make release", reason: "compiles for five platforms, which takes minutes; hack/verify-release.sh does it for two"},
	{file: "docs/kubectl-freehold.md", has: "kubectl krew", reason: "needs krew; hack/tools/release unpacks the archives by its manifest as krew does"},
	{file: "docs/tutorial.md", has: "make run", reason: "is in the README too, where TestMakeRun types it"},
	{file: "docs/tutorial.md", has: "kind create", reason: "needs kind and Docker"},
	{file: "docs/performance.md", reason: "takes hours, on a machine that does nothing else"},
	{file: "docs/api.md", has: "git clone ", reason: "needs the network; TestModule puts this checkout there"},
	{file: "docs/migration-details.md", has: "helm ", reason: "needs Helm and the charts that ToolHive publishes; TestBesideHelm has what Helm leaves"},
	{file: "docs/monitoring.md", has: " logs ", reason: "the pods of these suites are fake, and write no log"},
	{file: "docs/monitoring.md", has: " top ", reason: "needs metrics-server, which is not Freehold's"},
	{file: "pkg/render/testdata/stored/README.md", reason: "makes test data anew, in the checkout"},
	{file: "test/README.md", reason: "is what runs these tests"},
	{file: "test/harness/testdata/toolhive/README.md", reason: "makes test data anew, on a real node"},
}

// typed are commands that a test types.
var typed = []entry{
	{file: "README.md", section: "Try it", test: "documents.TestMakeRun"},
	{file: "README.md", section: "Install it", test: "documents.TestInstall"},
	{file: "README.md", section: "A first MCPServer, and a first call", test: "documents.TestFirstServer"},
	{file: "docs/install.md", section: "Get the image into the cluster", test: "documents.TestGetImage"},
	{file: "docs/api.md", has: "go mod edit", test: "documents.TestModule"},
	{file: "docs/api.md", has: "go mod tidy", test: "documents.TestModule"},
	{file: "docs/api.md", section: "Clients for MCPServers", test: "documents.TestPrograms"},
	{file: "docs/api.md", section: "Library for operators of other kinds", test: "documents.TestLibraryExample"},
	{file: "docs/availability.md", test: "documents.TestAvailability"},
	{file: "docs/gitops.md", section: "Argo CD", test: "documents.TestGitOps"},
	{file: "docs/kubectl-freehold.md", section: "Install", test: "documents.TestInstallPlugin"},
	{file: "docs/kubectl-freehold.md", section: "Is everything in order?", test: "plugin.TestDoctor"},
	{file: "docs/kubectl-freehold.md", section: "Who owns what", test: "plugin.TestDocumentation"},
	{file: "docs/kubectl-freehold.md", section: "Conflicts", test: "plugin.TestDocumentation"},
	{file: "docs/kubectl-freehold.md", section: "Take, yield, release", test: "plugin.TestDocumentation"},
	{file: "docs/kubectl-freehold.md", section: "What the operator would write", test: "plugin.TestDocumentation"},
	{file: "docs/kubectl-freehold.md", section: "Which writer may own what", test: "plugin.TestDocumentation"},
	{file: "docs/kubectl-freehold.md", section: "From ToolHive, and back", test: "plugin.TestDocumentation"},
	{file: "docs/migration.md", section: "Before you begin", test: "documents.TestMigration"},
	{file: "docs/migration.md", section: "See what will happen", test: "plugin.TestMigration"},
	{file: "docs/migration.md", section: "Do it", test: "documents.TestMigration"},
	{file: "docs/migration.md", section: "What restarts", test: "documents.TestMigration"},
	{file: "docs/migration-details.md", section: "ToolHive's operator for its other kinds", test: "documents.TestPolicies"},
	{file: "docs/migration-details.md", section: "If ToolHive's operator still runs", test: "documents.TestMigration"},
	{file: "docs/migration.md", section: "The way back", test: "plugin.TestMigration"},
	{file: "docs/monitoring.md", test: "documents.TestMonitoring"},
	{file: "docs/ownership.md", test: "documents.TestOwnership"},
	{file: "docs/policies.md", test: "documents.TestPolicies"},
	{file: "docs/references.md", test: "documents.TestReferences"},
	{file: "docs/conditions.md", test: "documents.TestRollouts"},
	{file: "docs/rollouts.md", test: "documents.TestRollouts"},
	{file: "docs/shards.md", test: "documents.TestShards"},
	{file: "docs/tutorial.md", test: "documents.TestTutorial"},
	{file: "docs/uninstall.md", section: "Hand over to ToolHive", test: "documents.TestUninstallToToolHive"},
	{file: "docs/uninstall.md", section: "Keep the workloads", test: "documents.TestUninstallKeepingWorkloads"},
	{file: "docs/uninstall.md", section: "Remove everything", test: "documents.TestUninstallEverything"},
	{file: "docs/uninstall.md", section: "Remove everything but the CRDs", test: "documents.TestUninstallButDefinitions"},
	{file: "docs/uninstall.md", section: "If MCPServers are stuck", test: "documents.TestStuck"},
	{file: "docs/uninstall.md", section: "If no operator can run", test: "documents.TestStuckForGood"},
	{file: "docs/upgrade.md", section: "See what will be written", test: "upgrade.TestUpgrade"},
	{file: "docs/upgrade.md", section: "Upgrade", test: "upgrade.TestUpgrade"},
	{file: "docs/upgrade.md", section: "Roll back", test: "upgrade.TestUpgrade"},
	{file: "docs/upgrade.md", section: "Storage versions", test: "upgrade.TestStorageVersions"},
	{file: "docs/upgrade.md", section: "Fields that a CRD does not have", test: "plugin.TestDoctor"},
}

func (e *entry) isAbout(c Command) bool {
	return e.file == c.File && (e.section == "" || e.section == c.Section) && strings.Contains(c.Text, e.has)
}

// entriesOf are those of a command: its exceptions if it has any, or else who types it.
func entriesOf(c Command) []entry {
	for _, list := range [][]entry{exceptions, typed} {
		var found []entry
		for _, e := range list {
			if e.isAbout(c) {
				found = append(found, e)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}
