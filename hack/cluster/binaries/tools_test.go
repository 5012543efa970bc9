// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

func TestEveryToolIsPinned(t *testing.T) {
	version := regexp.MustCompile(`^v\d+\.\d+\.\d+$`)
	for _, tool := range everything() {
		got, err := Version(tool)
		if err != nil || !version.MatchString(got) {
			t.Errorf("Version(%s) = %q, %v", tool, got, err)
		}
		r, err := recipeFor(tool)
		if err != nil {
			t.Fatal(err)
		}
		module, err := modfile.Parse("go.mod", r.module.mod, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.module.main != nil {
			continue // Its own main package keeps them there.
		}
		// The directive is what keeps the program's dependencies in go.sum when the module is tidied.
		if !slices.ContainsFunc(module.Tool, func(directive *modfile.Tool) bool { return directive.Path == r.pkg }) {
			t.Errorf("module %s has no tool directive for %s", r.module.name, r.pkg)
		}
	}
	if _, err := Version("no-such-tool"); err == nil {
		t.Error("an unknown tool has a version")
	}
}

func TestKubernetesLibrariesAreOfOneRelease(t *testing.T) {
	for _, module := range append(kubernetesReleases.modules, earlierModule) {
		parsed, err := modfile.Parse("go.mod", module.mod, nil)
		if err != nil {
			t.Fatal(err)
		}
		kubernetes := kubernetesReleases.version(module)
		if len(parsed.Replace) == 0 {
			t.Fatalf("nothing is replaced in module %s", module.name)
		}
		want := "v0." + strings.TrimPrefix(kubernetes, "v1.")
		for _, replace := range parsed.Replace {
			if replace.New.Version != want {
				t.Errorf("%s is %s in module %s, want %s as Kubernetes is %s", replace.Old.Path, replace.New.Version, module.name, want, kubernetes)
			}
		}
	}
}

func TestTheEarlierMinorVersionIsTheOneBefore(t *testing.T) {
	var minors [2]int
	for i, tool := range []Tool{KubeControllerManager, EarlierControllerManager} {
		version, err := Version(tool)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscanf(version, "v1.%d.", &minors[i]); err != nil {
			t.Fatalf("version %s of %s: %v", version, tool, err)
		}
	}
	if minors[1] != minors[0]-1 {
		t.Errorf("the earlier minor version is %d, the other one %d", minors[1], minors[0])
	}
}

func TestBuildArgsStampTheVersion(t *testing.T) {
	args := strings.Join(kubernetesRecipe(kubernetesModule, KubeAPIServer).buildArgs("v1.37.1", "out"), " ")
	for _, want := range []string{
		"-X k8s.io/component-base/version.gitVersion=v1.37.1",
		"-X k8s.io/component-base/version.gitMajor=1 ",
		"-X k8s.io/component-base/version.gitMinor=37 ",
		"-o out k8s.io/kubernetes/cmd/kube-apiserver",
	} {
		if !strings.Contains(args, want) {
			t.Errorf("build arguments lack %q:\n%s", want, args)
		}
	}
}

func TestCacheKeyChangesWithWhatIsBuilt(t *testing.T) {
	base := recipe{module: buildModule{name: "m", mod: []byte("mod"), sum: []byte("sum")}, pkg: "p", stamp: []string{"s"}}
	key := base.cacheKey(Kwok, "v1.0.0")
	if again := base.cacheKey(Kwok, "v1.0.0"); again != key {
		t.Errorf("the same build has the keys %s and %s", key, again)
	}
	for name, change := range map[string]func(*recipe){
		"go.mod":   func(r *recipe) { r.module.mod = []byte("other") },
		"go.sum":   func(r *recipe) { r.module.sum = []byte("other") },
		"main.go":  func(r *recipe) { r.module.main = []byte("main") },
		"stand-in": func(r *recipe) { r.module.standIns = map[string][]byte{"lib/lib.go": []byte("package lib")} },
		"package":  func(r *recipe) { r.pkg = "other" },
		"stamp":    func(r *recipe) { r.stamp = nil },
		// The same bytes in another place.
		"border": func(r *recipe) { r.module.mod, r.module.sum = []byte("mods"), []byte("um") },
	} {
		changed := base
		change(&changed)
		if changed.cacheKey(Kwok, "v1.0.0") == key {
			t.Errorf("another %s has the same key", name)
		}
	}
	if base.cacheKey(Kwok, "v1.0.1") == key || base.cacheKey(Etcd, "v1.0.0") == key {
		t.Error("another version or tool has the same key")
	}
}

func TestBuildStatus(t *testing.T) {
	status := &buildStatus{}
	write := func(text string) {
		t.Helper()
		if _, err := status.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want string) {
		t.Helper()
		if got := status.String(); !strings.HasPrefix(got, want) {
			t.Errorf("status is %q, want %q", got, want)
		}
	}
	expect("linking")
	write("go: downloading k8s.io/api v0.")
	expect("linking")
	write("37.1\n")
	expect("downloading k8s.io/api v0.37.1")
	write("internal/cpu\nk8s.io/api/core/v1\n")
	expect("2 packages compiled")
	status.setTotal(7)
	expect("2 of up to 7 packages compiled")
	write("# k8s.io/broken\nbroken.go:3:4: undefined: x\n")
	expect("2 of up to 7")
	if got, want := strings.TrimSpace(status.messages()), "# k8s.io/broken\nbroken.go:3:4: undefined: x"; got != want {
		t.Errorf("messages are %q, want %q", got, want)
	}
	write(string(bytes.Repeat([]byte("a message\n"), 2*keptMessages)))
	if got := strings.Count(status.messages(), "a message"); got != keptMessages {
		t.Errorf("%d messages are kept, want %d", got, keptMessages)
	}
}
