// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/freehold-dev/freehold/hack/cluster/binaries"
)

// ToolHiveAtLeast reports whether ToolHive's programs of this run are of a release, such as 0.58.0, or of a later one.
func ToolHiveAtLeast(t testing.TB, release string) bool {
	t.Helper()
	running, err := binaries.Version(binaries.ProxyRunner)
	if err != nil {
		t.Fatal(err)
	}
	return version.MustParseSemantic(running).AtLeast(version.MustParseSemantic(release))
}
