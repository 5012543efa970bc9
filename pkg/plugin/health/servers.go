// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// setRunner is how a user gives all proxies another proxyrunner.
const setRunner = "Set TOOLHIVE_RUNNER_IMAGE or --runner-image of the operator: " + render.DefaultRunnerImage

// tested are the releases of the proxyrunner that docs/compatibility.md names.
var tested = []string{"v0.44.0", "v0.47.0", "v0.62.0", "v0.63.0"}

func (e *examination) images(c *Check) error {
	process, err := e.process()
	if err != nil {
		return err
	}
	e.runner(c, process)
	servers, err := e.servers()
	for _, server := range servers {
		find := c.about("mcpserver/"+server.Name, server.Namespace)
		if namesNoVersion(server.Spec.Image) {
			find(Warning, FoundNoVersion, "its image "+server.Spec.Image+" names no version: a pod that restarts may run another program",
				"Name a version, or a digest, in spec.image.")
		}
		for _, condition := range server.Status.Conditions {
			if condition.Reason == v1beta1.ReasonRunnerEnforcesLess {
				find(Warning, condition.Reason, condition.Message, setRunner)
			}
		}
	}
	c.Detail += fmt.Sprintf("%d MCPServers", len(servers))
	return err
}

// runner is about the proxyrunner that the operator gives to all proxies, and about those that have another one.
func (e *examination) runner(c *Check, process cluster.Process) {
	find := c.about(e.deploymentName())
	image := process.RunnerImage
	if image == "" {
		c.unknown("the proxyrunner: the Deployment of " + e.Operator + " does not show its image")
		return
	}
	c.Detail = "the proxyrunner is " + image + "; "
	switch tag := tagOf(image); {
	case namesNoVersion(image):
		find(Warning, FoundNoVersion, "the image of the proxyrunner, "+image+", names no version: a proxy that restarts may run another one", setRunner)
	case isNewer(image):
		c.Detail += "it is newer than this Freehold was tested with; "
	case !slices.Contains(tested, tag):
		find(Warning, FoundNotTested, "the proxyrunner "+image+" is of no release that Freehold is tested with", setRunner)
	}
	ours, err := e.isMine(process)
	if err != nil {
		c.unknown("whether the proxies have the proxyrunner of " + e.Operator + ", which looks after " + process.Description() + " alone")
		return
	}
	for _, namespace := range scopes(process.Namespaces) {
		proxies, err := e.Client.Proxies(namespace)
		if err != nil {
			c.cannot(err)
		}
		for _, proxy := range proxies {
			if ours(proxy) {
				e.otherRunner(c, proxy, image)
			}
		}
	}
}

// isNewer reports whether a proxyrunner is of a later release than the default, so that the default would be a step back.
func isNewer(image string) bool {
	found := render.RunnerVersion(image)
	return found != nil && render.RunnerVersion(render.DefaultRunnerImage).LessThan(found)
}

// isMine returns a function that reports whether a proxy, which has the name of its MCPServer, is that of an MCPServer of our operator.
// An operator with a selector leaves the others to other operators.
func (e *examination) isMine(process cluster.Process) (func(proxy *appsv1.Deployment) bool, error) {
	if process.Selector == "" {
		return func(*appsv1.Deployment) bool { return true }, nil
	}
	servers, err := e.servers()
	names := sets.New[types.NamespacedName]()
	for _, server := range servers {
		if process.Covers(server) {
			names.Insert(types.NamespacedName{Namespace: server.Namespace, Name: server.Name})
		}
	}
	return func(proxy *appsv1.Deployment) bool {
		return names.Has(types.NamespacedName{Namespace: proxy.Namespace, Name: proxy.Name})
	}, err
}

// otherRunner reports a proxy with another proxyrunner than that of its operator.
func (e *examination) otherRunner(c *Check, proxy *appsv1.Deployment, image string) {
	for _, container := range proxy.Spec.Template.Spec.Containers {
		if container.Name == workload.ProxyContainer && container.Image != image {
			c.about("deployment.apps/"+proxy.Name, proxy.Namespace)(Warning, FoundOtherRunner,
				fmt.Sprintf("it has the proxyrunner %s, and not that of the operator %s", container.Image, e.Operator),
				e.Client.Freehold("owners", "-n", proxy.Namespace, "deployment/"+proxy.Name))
		}
	}
}

// names checks for children's names that other objects have taken. The operator reports only the first obstacle; where there are
// more, or there is no operator yet, the children are read.
func (e *examination) names(c *Check) error {
	servers, err := e.servers()
	c.Detail = fmt.Sprintf("%d MCPServers", len(servers))
	for _, server := range servers {
		taken := func(message string) {
			c.about("mcpserver/"+server.Name, server.Namespace)(Error, v1beta1.ReasonObjectNotOurs, message,
				e.Client.Freehold("conflicts", "-n", server.Namespace, "mcpserver/"+server.Name))
		}
		told := problem(server.Status.Conditions, v1beta1.ConditionFieldsOwned, metav1.ConditionFalse)
		switch {
		case e.Pre:
		case told == nil:
			continue
		case told.Reason == v1beta1.ReasonObjectNotOurs:
			taken(told.Message)
			continue
		case !strings.HasSuffix(told.Message, " more)"):
			continue
		}
		children, err := e.Client.Children(server)
		if err != nil {
			return err
		}
		for _, ref := range children.Foreign {
			taken(fmt.Sprintf("%s: %s", ref, children.Why[ref]))
		}
		for _, ref := range children.Unreadable {
			c.unknown(fmt.Sprintf("whether %s in namespace %s is a child of MCPServer %s: you may not read it", ref, ref.Namespace, server.Name))
		}
	}
	return err
}

// problem returns the condition of a type if it has that status, or nil.
func problem(conditions []metav1.Condition, kind string, bad metav1.ConditionStatus) *metav1.Condition {
	if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status == bad {
		return c
	}
	return nil
}
