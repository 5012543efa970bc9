// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/takeover"
)

// stopped reports whether no operator of a product writes the MCPServers and the objects that go back with them. It shows those that do,
// and records what could not be looked at.
func (o *handbackOptions) stopped(product cluster.Product, servers []*v1beta1.MCPServer, configs []*unstructured.Unstructured) (bool, error) {
	running, unknown, err := o.inTheWay(product, servers, configs)
	if err != nil {
		return false, err
	}
	o.unseen = o.unseen || len(unknown) > 0
	for _, text := range unknown {
		o.warn("%s", text)
	}
	printers.Operators(o.Out, o.palette, running)
	return len(running) == 0, nil
}

// mayBegin reports whether ToolHive's operator does not write the MCPServers and the objects that go back with them now, and may
// afterwards. It shows what is in the way.
func (o *handbackOptions) mayBegin(servers []*v1beta1.MCPServer, configs []*unstructured.Unstructured) (bool, error) {
	free, err := o.stopped(cluster.ToolHive, servers, configs)
	if err != nil {
		return false, err
	}
	for _, fence := range []cluster.Fence{cluster.RunnersFence, cluster.OperatorFence} {
		fenced, err := o.fenced(fence, cluster.NamespacesOf(servers))
		if err != nil {
			return false, err
		}
		for _, namespace := range fenced {
			free = false
			fmt.Fprintln(o.Out, o.palette.Removed(fmt.Sprintf("An admission policy, %s, keeps %s from writing in namespace %s.", fence.Name, fence.Part, namespace)))
			fmt.Fprintln(o.Out, "To remove it:", o.client.Kubectl("delete", "validatingadmissionpolicybinding", fence.Name))
			fmt.Fprintln(o.Out, "Or let the namespaceSelector of its binding leave this namespace out.")
		}
	}
	readable, err := o.readable(servers)
	return free && readable, err
}

// fenced returns those of some namespaces in which a fence is in force, whichever user it is about. If the user may not see that, there
// is a warning, and the namespace is left out.
func (o *handbackOptions) fenced(fence cluster.Fence, namespaces []string) (fenced []string, err error) {
	policy, err := o.client.Fence(fence)
	if apierrors.IsForbidden(err) {
		o.warn("%v", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if idle, _ := policy.Idle(); idle {
		return nil, nil
	}
	for _, namespace := range namespaces {
		holds, err := o.client.HoldsIn(policy, namespace)
		switch {
		case apierrors.IsForbidden(err):
			o.warn("%v", err)
		case err != nil:
			return nil, err
		case holds:
			fenced = append(fenced, namespace)
		}
	}
	return fenced, nil
}

// readable reports whether ToolHive's operator can read all MCPServers, those that are not handed back too, and what they refer to.
func (o *handbackOptions) readable(servers []*v1beta1.MCPServer) (bool, error) {
	all, err := o.client.Servers("")
	switch {
	case apierrors.IsForbidden(err):
		o.warn("%v; whether ToolHive's operator can read the others is not known", err)
		all = servers
	case err != nil:
		return false, err
	}
	configs, unseen, err := o.client.Configs("")
	if err != nil {
		return false, err
	}
	if len(unseen) > 0 {
		o.warn("you may not list %s in all namespaces; whether ToolHive's operator can read them is not known", strings.Join(unseen, ", "))
	}
	readable := true
	report := func(ref apply.ObjectRef, field, value string) {
		if field == "" {
			return
		}
		readable = false
		fmt.Fprintln(o.Out, o.palette.Removed(fmt.Sprintf("ToolHive's operator cannot read %s %q of %s %s in namespace %s, and would reconcile no MCPServer any more.",
			field, value, ref.Kind.Kind, ref.Name, ref.Namespace)))
		fmt.Fprintln(o.Out, "Write it with hours, minutes and seconds, such as 48h0m0s:",
			o.client.Kubectl("edit", "-n", ref.Namespace, ref.String()))
	}
	for _, server := range all {
		field, value := takeover.Unreadable(server)
		report(cluster.ServerRef(server.Namespace, server.Name), field, value)
	}
	for _, config := range configs {
		field, value := takeover.UnreadableConfig(config)
		report(takeover.RefOf(config), field, value)
	}
	return readable, nil
}
