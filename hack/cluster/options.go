// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/freehold-dev/freehold/hack/cluster/binaries"
)

// Component is a process of a cluster.
type Component = binaries.Tool

// The components of a cluster, in the order in which they start.
const (
	Etcd              Component = binaries.Etcd
	APIServer         Component = binaries.KubeAPIServer
	ControllerManager Component = binaries.KubeControllerManager
	Scheduler         Component = binaries.KubeScheduler
	Kwok              Component = binaries.Kwok
)

// Options configure a cluster. The zero value is a whole cluster with one fake node.
type Options struct {
	// Dir holds everything of the cluster and stays after Stop: started again there, the cluster has its objects,
	// users and tokens back, at another address. Default: a new directory, removed by Stop.
	Dir string
	// Progress receives lines about what has to be built first. Default: os.Stderr.
	Progress io.Writer
	// Published lets programs be fetched that their authors publish, see binaries.Finder.
	Published bool
	// APIServerOnly leaves out everything but etcd and kube-apiserver. It starts faster and needs half the build,
	// but objects stay as they were written: no garbage collection, no ServiceAccounts, no pods.
	APIServerOnly bool
	// NoFakePods leaves kwok and its nodes out. Pods stay Pending until real nodes join.
	NoFakePods bool
	// RealNodes leaves kwok and its nodes out too, and lets the API server reach the kubelets of package node, which
	// are not on the network of this machine.
	RealNodes bool
	// FakeNodes is the number of nodes that kwok plays, each with room for 10,000 pods. Default: 1.
	FakeNodes int
	// PodReadyDelay is how long a fake pod takes from being scheduled to being Ready. Default: none. A pod can
	// have its own, see ReadyAfterAnnotation.
	PodReadyDelay time.Duration
	// Controllers is the value of the flag of kube-controller-manager. Default: "*".
	Controllers string
	// EarlierControllers runs the kube-controller-manager of the minor version of Kubernetes before that of the API
	// server, see binaries.EarlierControllerManager.
	EarlierControllers bool
	// APIServerArgs and ControllerManagerArgs are more flags; they win over those that the cluster sets itself.
	APIServerArgs, ControllerManagerArgs []string
	// AuditBodies records the body of every write in the audit log. Without it, only deletions have theirs, which
	// holds the preconditions.
	AuditBodies bool
	// GCPercent is the GOGC of the components. More of it saves CPU time and costs memory: the heaps of a control plane without load
	// are small, and collected often. Default: that of this process, or Go's own.
	GCPercent int
}

func (o Options) withDefaults() Options {
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	if o.FakeNodes == 0 {
		o.FakeNodes = 1
	}
	if o.Controllers == "" {
		o.Controllers = "*"
	}
	return o
}

func (o Options) validate() error {
	var errs []error
	if o.FakeNodes < 0 {
		errs = append(errs, errors.New("the number of fake nodes must not be negative; NoFakePods leaves them out"))
	}
	if o.APIServerOnly && o.RealNodes {
		errs = append(errs, errors.New("pods of real nodes need more than the API server"))
	}
	if o.APIServerOnly && o.EarlierControllers {
		errs = append(errs, errors.New("an API server alone has no controllers, earlier ones neither"))
	}
	if o.GCPercent < 0 {
		errs = append(errs, errors.New("the percentage of garbage collection must not be negative"))
	}
	if o.PodReadyDelay < 0 {
		errs = append(errs, errors.New("the ready delay of fake pods must not be negative"))
	}
	return errors.Join(errs...)
}

// components lists what the cluster consists of, in the order of starting.
func (o Options) components() []Component {
	components := []Component{Etcd, APIServer}
	if o.APIServerOnly {
		return components
	}
	components = append(components, ControllerManager, Scheduler)
	if o.NoFakePods || o.RealNodes {
		return components
	}
	return append(components, Kwok)
}

// program returns the program of a component.
func (o Options) program(component Component) binaries.Tool {
	if component == ControllerManager && o.EarlierControllers {
		return binaries.EarlierControllerManager
	}
	return component
}

// programs lists the programs of the cluster's components.
func (o Options) programs() []binaries.Tool {
	var programs []binaries.Tool
	for _, component := range o.components() {
		programs = append(programs, o.program(component))
	}
	return programs
}

// finder finds the programs, or builds them.
func (o Options) finder() binaries.Finder {
	return binaries.Finder{Progress: o.Progress, Published: o.Published}
}

// environment returns the environment of the components.
func (o Options) environment() []string {
	environment := os.Environ()
	if o.GCPercent > 0 {
		environment = append(environment, fmt.Sprintf("GOGC=%d", o.GCPercent))
	}
	return environment
}

// makesServiceAccounts reports whether a namespace gets its default ServiceAccount, without which no pod is admitted.
func (o Options) makesServiceAccounts() bool {
	if o.APIServerOnly {
		return false
	}
	const controller = "serviceaccount-controller"
	names := strings.Split(o.Controllers, ",")
	if slices.Contains(names, "-"+controller) {
		return false
	}
	return slices.Contains(names, "*") || slices.Contains(names, controller)
}
