// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// Tool is the name of a program that this package can provide. It is also the name of its executable file.
type Tool string

// The programs of a local cluster.
const (
	Etcd                  Tool = "etcd"
	KubeAPIServer         Tool = "kube-apiserver"
	KubeControllerManager Tool = "kube-controller-manager"
	KubeScheduler         Tool = "kube-scheduler"
	Kubectl               Tool = "kubectl"
	Kwok                  Tool = "kwok"
)

// The programs of a real node, and ToolHive's runner, which works there. They are for Linux.
const (
	Kubelet     Tool = "kubelet"
	KubeProxy   Tool = "kube-proxy"
	CoreDNS     Tool = "coredns"
	ProxyRunner Tool = "thv-proxyrunner"
)

// ToolHiveOperator is ToolHive's own operator, whose place Freehold takes for MCPServers, and VirtualMCP is the server that it
// runs for each VirtualMCPServer.
const (
	ToolHiveOperator Tool = "thv-operator"
	VirtualMCP       Tool = "vmcp"
)

// EarlierControllerManager is the kube-controller-manager of the minor version of Kubernetes before that of all other
// programs. It may be older than the API server by that much, and for programs that watch workloads the versions differ
// in its controllers.
const EarlierControllerManager Tool = "kube-controller-manager-earlier"

// All lists every program of a control plane with fake nodes, in the order in which they are best built: the first
// ones share most of their packages with the later ones.
func All() []Tool {
	return []Tool{Etcd, KubeAPIServer, KubeControllerManager, KubeScheduler, Kubectl, Kwok}
}

// OfNode lists the programs that a real node needs besides.
func OfNode() []Tool {
	return []Tool{Kubelet, KubeProxy, CoreDNS, ProxyRunner}
}

// everything lists all programs that there are.
func everything() []Tool {
	return slices.Concat(All(), OfNode(), []Tool{EarlierControllerManager, ToolHiveOperator, VirtualMCP})
}

//go:embed modules/kwok.mod
var kwokMod []byte

//go:embed modules/kwok.sum
var kwokSum []byte

//go:embed modules/coredns.mod
var corednsMod []byte

//go:embed modules/coredns.sum
var corednsSum []byte

// CoreDNS chooses its plugins when it is compiled, so the one for a node has a main package here.
//
//go:embed modules/_coredns/main.go
var corednsMain []byte

var (
	kwokModule    = buildModule{name: "kwok", mod: kwokMod, sum: kwokSum}
	corednsModule = buildModule{name: "coredns", mod: corednsMod, sum: corednsSum, main: corednsMain}
)

// recipe says how one program is built.
type recipe struct {
	module buildModule
	// pkg is the import path of the main package.
	pkg string
	// versionOf is the module whose version is the version of the program.
	versionOf string
	// stamp lists packages in which Kubernetes programs expect their version from the linker. A program without
	// it reports v0.0.0, which clients take for a server too old to talk to.
	stamp []string
}

func recipeFor(tool Tool) (recipe, error) {
	switch tool {
	case KubeAPIServer, KubeControllerManager, KubeScheduler:
		module, err := kubernetesReleases.module()
		return kubernetesRecipe(module, tool), err
	case Kubectl, Kubelet, KubeProxy:
		return kubernetesRecipe(kubernetesModule, tool), nil
	case EarlierControllerManager:
		return kubernetesRecipe(earlierModule, KubeControllerManager), nil
	case Etcd:
		return recipe{
			module:    kubernetesModule,
			pkg:       "go.etcd.io/etcd/server/v3",
			versionOf: "go.etcd.io/etcd/server/v3",
		}, nil
	case Kwok:
		return recipe{module: kwokModule, pkg: "sigs.k8s.io/kwok/cmd/kwok", versionOf: "sigs.k8s.io/kwok"}, nil
	case CoreDNS:
		return recipe{module: corednsModule, pkg: ".", versionOf: "github.com/coredns/coredns"}, nil
	case ProxyRunner, ToolHiveOperator, VirtualMCP:
		module, err := toolhiveReleases.module()
		return recipe{module: module, pkg: toolhiveReleases.versionOf + "/cmd/" + string(tool), versionOf: toolhiveReleases.versionOf}, err
	default:
		return recipe{}, fmt.Errorf("no such tool %q, have %v", tool, everything())
	}
}

// Version returns the pinned version of tool, like "v1.37.1".
func Version(tool Tool) (string, error) {
	r, err := recipeFor(tool)
	if err != nil {
		return "", err
	}
	return r.version()
}

func (r recipe) version() (string, error) {
	file, err := modfile.ParseLax(r.module.name+".mod", r.module.mod, nil)
	if err != nil {
		return "", fmt.Errorf("reading the build module: %w", err)
	}
	i := slices.IndexFunc(file.Require, func(req *modfile.Require) bool { return req.Mod.Path == r.versionOf })
	if i < 0 {
		return "", fmt.Errorf("build module %s does not require %s", r.module.name, r.versionOf)
	}
	return file.Require[i].Mod.Version, nil
}

// buildArgs returns the arguments of the go command that builds the program into the file output.
func (r recipe) buildArgs(version, output string) []string {
	linker := []string{"-s", "-w"}
	for _, pkg := range r.stamp {
		major, minor, _ := strings.Cut(strings.TrimPrefix(semver.MajorMinor(version), "v"), ".")
		linker = append(linker,
			"-X", pkg+".gitVersion="+version,
			"-X", pkg+".gitMajor="+major,
			"-X", pkg+".gitMinor="+minor,
			"-X", pkg+".gitTreeState=clean",
		)
	}
	return []string{
		// -v reports every compiled package, which is what the progress is made of.
		"build", "-v", "-trimpath", "-mod=readonly", "-buildvcs=false",
		"-ldflags", strings.Join(linker, " "), "-o", output, r.pkg,
	}
}

// cacheKey names the directory that holds the built program. Everything that decides what the program is goes into
// it, but for the version of the Go toolchain: a new one is no reason to build for minutes.
func (r recipe) cacheKey(tool Tool, version string) string {
	var input bytes.Buffer
	parts := [][]byte{r.module.mod, r.module.sum, []byte(strings.Join(r.buildArgs(version, ""), "\x00"))}
	if r.module.main != nil {
		parts = append(parts, r.module.main)
	}
	for _, path := range slices.Sorted(maps.Keys(r.module.standIns)) {
		parts = append(parts, []byte(path), r.module.standIns[path])
	}
	for _, part := range parts {
		// The length keeps parts apart that would read the same when joined.
		fmt.Fprintf(&input, "%d:", len(part))
		input.Write(part)
	}
	digest := sha256.Sum256(input.Bytes())
	return fmt.Sprintf("%s-%s-%s-%s-%x", tool, version, runtime.GOOS, runtime.GOARCH, digest[:6])
}
