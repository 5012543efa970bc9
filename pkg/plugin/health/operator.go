// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/shell"
)

func (e *examination) operator(c *Check) error {
	object, namespace := e.deploymentName()
	find := c.about(object, namespace)
	deployment, err := e.deployment()
	if apierrors.IsNotFound(err) {
		find(Error, FoundNoOperator, "there is no operator: edits and deletions of MCPServers wait", e.installOperator()+"; or name the operator by "+e.otherNames())
		return nil
	}
	if err != nil {
		return err
	}
	wanted, status := ptr.Deref(deployment.Spec.Replicas, 1), deployment.Status
	c.Detail = fmt.Sprintf("%s in namespace %s has %d of %d replicas available", object, namespace, status.AvailableReplicas, wanted)
	describe := shell.Sequence(
		e.Client.Kubectl("describe", "-n", namespace, "deployment/"+deployment.Name),
		e.Client.Kubectl("describe", "pods", "-n", namespace, "-l", metav1.FormatLabelSelector(deployment.Spec.Selector)))
	switch {
	case wanted == 0:
		find(Error, v1beta1.ReasonScaledToZero, "it is scaled to 0: edits and deletions of MCPServers wait",
			e.Client.Kubectl("scale", "-n", namespace, "deployment/"+deployment.Name, "--replicas=2"))
	case status.AvailableReplicas == 0:
		find(Error, FoundNotAvailable, "no replica is available: "+why(deployment), describe)
	case status.AvailableReplicas < wanted:
		find(Warning, FoundPartlyAvailable, fmt.Sprintf("%d of %d replicas are available: %s", status.AvailableReplicas, wanted, why(deployment)), describe)
	case status.ObservedGeneration < deployment.Generation || status.UpdatedReplicas < wanted:
		find(Warning, v1beta1.ReasonRollingOut, fmt.Sprintf("%d of %d replicas are updated", status.UpdatedReplicas, wanted), describe)
	}
	return nil
}

// why returns the message of the Deployment's controller about missing pods.
func why(deployment *appsv1.Deployment) string {
	text := "its status does not tell why"
	for _, condition := range deployment.Status.Conditions {
		bad := condition.Status != corev1.ConditionTrue
		if condition.Type == appsv1.DeploymentReplicaFailure {
			bad = condition.Status == corev1.ConditionTrue
		}
		if bad {
			text = condition.Message
		}
	}
	return text
}

func (e *examination) leader(c *Check) error {
	process, err := e.process()
	if err != nil {
		return err
	}
	deployment, err := e.deployment()
	if err != nil {
		return err
	}
	if !process.Elects {
		if c.Detail = "the operator runs with --leader-elect=false"; ptr.Deref(deployment.Spec.Replicas, 1) > 1 {
			c.about(e.deploymentName())(Error, FoundSeveralLeaders, "its replicas all work at the same time, since they do not elect a leader",
				"Remove --leader-elect=false, or scale it to 1.")
		}
		return nil
	}
	find := c.about("lease.coordination.k8s.io/"+process.Lease.Name, process.Lease.Namespace)
	logs := e.Client.Kubectl("logs", "-n", deployment.Namespace, "-l", metav1.FormatLabelSelector(deployment.Spec.Selector), "--tail=50", "--prefix")
	lease, err := e.lease()
	if apierrors.IsNotFound(err) {
		find(Error, FoundNoLeader, "the Lease does not exist: no replica has ever led", logs)
		return nil
	}
	if err != nil {
		return err
	}
	holder, inTime := cluster.Holder(lease, e.Now)
	switch {
	case holder == "":
		find(Error, FoundNoLeader, "no replica holds it, so none works", logs)
		return nil
	case !inTime:
		find(Error, FoundStaleLease, fmt.Sprintf("%s has not renewed it for %s, by the clock of this machine: no replica works", holder, e.ago(lease.Spec.RenewTime.Time)), logs)
		return nil
	}
	c.Detail = fmt.Sprintf("%s holds %s, and renewed it %s ago", holder, process.Lease, e.ago(lease.Spec.RenewTime.Time))
	pods, err := e.pods()
	if err == nil && !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return leads(holder, pod.Name) }) {
		find(Error, FoundOtherLeader, holder+" holds it, and is not a pod of the Deployment: the Deployment's replicas wait",
			"Stop that process, or give it a Lease of its own, and MCPServers of its own: see docs/shards.md.")
	}
	return err
}

// leads reports whether a Lease's holder is a process in a pod. It is known by the pod's name and something random.
func leads(holder, pod string) bool { return holder == pod || strings.HasPrefix(holder, pod+"_") }

func (e *examination) ago(at time.Time) time.Duration {
	return cluster.Ago(at, e.Now).Round(time.Second)
}

// recent is how long ago a restart may have been to be reported.
const recent = 24 * time.Hour

func (e *examination) restarts(c *Check) error {
	pods, err := e.pods()
	if err != nil {
		return err
	}
	total := 0
	for _, pod := range pods {
		for _, container := range pod.Status.ContainerStatuses {
			total += int(container.RestartCount)
			ended := container.LastTerminationState.Terminated
			find := func(severity State, reason, message string) {
				// A container that has never run, as its image cannot be pulled, has no log.
				do := e.Client.Kubectl("describe", "pod", "-n", pod.Namespace, pod.Name)
				if ended != nil || container.RestartCount > 0 {
					do = e.Client.Kubectl("logs", "-n", pod.Namespace, pod.Name, "-c", container.Name, "--previous")
				}
				c.about("pod/"+pod.Name, pod.Namespace)(severity, reason, message, do)
			}
			waiting := container.State.Waiting
			switch {
			case waiting != nil && waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing":
				find(Error, waiting.Reason, fmt.Sprintf("its container %s does not run: %s", container.Name, waiting.Message))
			case ended != nil && e.Now.Sub(ended.FinishedAt.Time) < recent:
				find(Warning, FoundRestarted, fmt.Sprintf("its container %s has restarted %d times, %s ago the last time: %s, exit code %d",
					container.Name, container.RestartCount, e.ago(ended.FinishedAt.Time), ended.Reason, ended.ExitCode))
			}
		}
	}
	c.Detail = fmt.Sprintf("%d pods, %d restarts", len(pods), total)
	return nil
}

func (e *examination) version(c *Check) error {
	process, err := e.process()
	if err != nil {
		return err
	}
	find := c.about(e.deploymentName())
	tag := tagOf(process.Image)
	c.Detail = fmt.Sprintf("the operator is %s, the plugin %s", process.Image, e.Plugin)
	switch {
	case namesNoVersion(process.Image):
		find(Warning, FoundNoVersion, "its image "+process.Image+" names no version: a replica that restarts may be another program", "Name a version, or a digest.")
	case !strings.HasPrefix(tag, "v") || !isRelease(e.Plugin):
		c.Detail += "; whether they are of the same version is not known"
	case tag != e.Plugin:
		do := "Install the plugin " + tag + "."
		if found, err := version.ParseSemantic(tag); err == nil && found.LessThan(version.MustParseSemantic(e.Plugin)) {
			do = "Install the operator " + e.Plugin + "."
		}
		find(Warning, FoundOtherVersion, fmt.Sprintf("it is %s and the plugin %s: what the plugin works out may not be what the operator does", tag, e.Plugin), do)
	}
	return nil
}

// isRelease reports whether a version of the plugin is that of a release, and not of a build in between: those have a commit behind
// a plus, see hack/version.sh, or v0.0.0 if they were built without it.
func isRelease(version string) bool {
	return !strings.HasPrefix(version, "v0.0.0-") && !strings.Contains(version, "+")
}

// tagOf returns the tag of an image; empty for none.
func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, tag, _ := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	return tag
}

// namesNoVersion reports whether an image is whatever was pushed last: it has neither a tag that says otherwise nor a digest.
func namesNoVersion(image string) bool {
	tag := tagOf(image)
	return (tag == "" || tag == "latest") && !strings.Contains(image, "@")
}
