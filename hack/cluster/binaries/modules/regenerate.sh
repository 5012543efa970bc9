#!/usr/bin/env bash
# Copyright The Freehold Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes the build modules of the local cluster for given versions:
#
#   regenerate.sh [kubernetes [KUBERNETES ETCD] | kubernetes-older KUBERNETES | earlier [KUBERNETES] | kwok [KWOK] | coredns [COREDNS] |
#                  toolhive [TOOLHIVE] | toolhive-substituted [TOOLHIVE]]
#
# Earlier is the minor version of Kubernetes before that of the other programs, see EarlierControllerManager.
#
# Without versions it keeps those that the module has now; without any argument it does this for all modules.
# A module is kept as NAME.mod and NAME.sum, because a directory with a go.mod cannot be embedded into a Go program.
# The versions that the functions take are arguments of this script.
# shellcheck disable=SC2119,SC2120
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
here=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export GOWORK=off GOFLAGS=-mod=mod

# pinned MODULE FILE: the version of MODULE that FILE requires.
pinned() {
	awk -v module="$1" '$1 == "require" { $1 = ""; $0 = $0 } $1 == module { print $2; exit }' "$2"
}

# keep NAME: the go.mod and go.sum of the working directory become NAME.mod and NAME.sum.
keep() {
	go mod tidy
	cp go.mod "$here/$1.mod"
	cp go.sum "$here/$1.sum"
}

# kubernetes_module NAME KUBERNETES PACKAGE@VERSION...: a module with programs of Kubernetes and others.
kubernetes_module() {
	local name=$1 kubernetes=$2
	shift 2
	mkdir "$scratch/$name" && cd "$scratch/$name"

	# Kubernetes requires its own libraries by path inside its source tree. Outside of it, the published
	# version of the same release has to take their place. Language version and GODEBUG settings change how
	# the programs behave, so they are those of Kubernetes too.
	local upstream
	upstream=$(go mod download -json "k8s.io/kubernetes@$kubernetes" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p') || {
		echo "cannot download k8s.io/kubernetes@$kubernetes" >&2
		exit 1
	}
	{
		echo "module github.com/freehold-dev/freehold/hack/cluster/binaries/$name"
		echo
		sed -n '/^go /p; /^godebug /p; /^godebug (/,/^)/p' "$upstream" | awk '!seen[$0]++'
		echo
		echo "require k8s.io/kubernetes $kubernetes"
		echo
		echo "replace ("
		sed -n "s#^[[:space:]]*\(k8s.io/[a-z0-9.-]*\) => ./staging/.*#  \1 => \1 v0.${kubernetes#v1.}#p" "$upstream"
		echo ")"
	} >go.mod
	go get -tool "$@"
	keep "$name"
}

kubernetes() {
	local kubernetes=${1:-$(pinned k8s.io/kubernetes "$here/kubernetes.mod")}
	local etcd=${2:-$(pinned go.etcd.io/etcd/server/v3 "$here/kubernetes.mod")}
	kubernetes_module kubernetes "$kubernetes" \
		"k8s.io/kubernetes/cmd/kube-apiserver@$kubernetes" \
		"k8s.io/kubernetes/cmd/kube-controller-manager@$kubernetes" \
		"k8s.io/kubernetes/cmd/kube-scheduler@$kubernetes" \
		"k8s.io/kubernetes/cmd/kubectl@$kubernetes" \
		"k8s.io/kubernetes/cmd/kubelet@$kubernetes" \
		"k8s.io/kubernetes/cmd/kube-proxy@$kubernetes" \
		"go.etcd.io/etcd/server/v3@$etcd"
}

# An API server and its controllers of an older minor version, to test against: it stays what it is.
kubernetes_older() {
	local kubernetes=${1:?which version}
	kubernetes_module "kubernetes-$kubernetes" "$kubernetes" \
		"k8s.io/kubernetes/cmd/kube-apiserver@$kubernetes" \
		"k8s.io/kubernetes/cmd/kube-controller-manager@$kubernetes" \
		"k8s.io/kubernetes/cmd/kube-scheduler@$kubernetes"
}

earlier() {
	local kubernetes=${1:-$(pinned k8s.io/kubernetes "$here/earlier.mod")}
	kubernetes_module earlier "$kubernetes" "k8s.io/kubernetes/cmd/kube-controller-manager@$kubernetes"
}

kwok() {
	local kwok=${1:-$(pinned sigs.k8s.io/kwok "$here/kwok.mod")}
	mkdir "$scratch/kwok" && cd "$scratch/kwok"
	printf 'module github.com/freehold-dev/freehold/hack/cluster/binaries/kwok\n\ngo 1.26.0\n' >go.mod
	go get -tool "sigs.k8s.io/kwok/cmd/kwok@$kwok"
	keep kwok
}

coredns() {
	local coredns=${1:-$(pinned github.com/coredns/coredns "$here/coredns.mod")}
	mkdir "$scratch/coredns" && cd "$scratch/coredns"
	printf 'module github.com/freehold-dev/freehold/hack/cluster/binaries/coredns\n\ngo 1.26.0\n' >go.mod
	cp "$here/_coredns/main.go" .
	go get "github.com/coredns/coredns@$coredns"
	keep coredns
}

toolhive() {
	local toolhive=${1:-$(pinned github.com/stacklok/toolhive "$here/toolhive.mod")}
	mkdir "$scratch/toolhive" && cd "$scratch/toolhive"
	printf 'module github.com/freehold-dev/freehold/hack/cluster/binaries/toolhive\n\ngo 1.26.0\n' >go.mod
	go get -tool \
		"github.com/stacklok/toolhive/cmd/thv-proxyrunner@$toolhive" \
		"github.com/stacklok/toolhive/cmd/thv-operator@$toolhive" \
		"github.com/stacklok/toolhive/cmd/vmcp@$toolhive"
	keep toolhive
}

# Earlier releases are kept beside, as toolhive-VERSION: regenerate.sh toolhive VERSION, and rename what it has written.

# A release that needs modules which the Go module proxy does not have. The replacements are kept, and edited by hand; those
# by a folder are in _toolhive. Try the plain build first: what is missing today may be there tomorrow. The checksums of earlier
# releases are kept too: those are built from this module while they require the same libraries.
toolhive_substituted() {
	local kept=$here/toolhive-substituted.mod sums=$here/toolhive-substituted.sum folder
	local toolhive=${1:-$(pinned github.com/stacklok/toolhive "$kept")}
	export GOTOOLCHAIN=auto
	cp -r "$here/_toolhive" "$scratch/toolhive-substituted" && cd "$scratch/toolhive-substituted"
	while IFS= read -r folder; do
		printf 'module standin\n\n%s\n' "$(grep '^go ' "$kept")" >"$folder/go.mod"
	done < <(sed -n 's#.* => \./##p' "$kept")
	{
		echo "module github.com/freehold-dev/freehold/hack/cluster/binaries/toolhive"
		echo
		grep '^go ' "$kept"
		echo
		echo "tool ("
		echo "	github.com/stacklok/toolhive/cmd/thv-operator"
		echo "	github.com/stacklok/toolhive/cmd/thv-proxyrunner"
		echo "	github.com/stacklok/toolhive/cmd/vmcp"
		echo ")"
		echo
		echo "require github.com/stacklok/toolhive $toolhive"
		echo
		sed -n '/^replace (/,/^)/p' "$kept"
	} >go.mod
	# Some that only tests of libraries import are missing too; nothing of theirs is built.
	go mod tidy -e
	cp go.mod "$kept"
	awk '!seen[$0]++' go.sum <(grep '^github.com/stacklok/toolhive v' "$sums") >go.sum.all
	mv go.sum.all "$sums"
}

# Each in a shell of its own, for it changes the directory. Not in a list with && or ||, where errors would pass.
case ${1:-all} in
kubernetes | earlier | kwok | coredns | toolhive)
	"$@"
	;;
kubernetes-older)
	kubernetes_older "${@:2}"
	;;
toolhive-substituted)
	toolhive_substituted "${@:2}"
	;;
all)
	(kubernetes)
	(earlier)
	(kwok)
	(coredns)
	(toolhive)
	(toolhive_substituted)
	;;
*)
	sed -n '5,13p' "$here/regenerate.sh" >&2
	exit 2
	;;
esac
