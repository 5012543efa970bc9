// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// pollInterval is short because tests wait for the end of it.
	pollInterval = 50 * time.Millisecond
	// owner is the field manager of the objects that the node needs in the API server.
	owner = "freehold-local-node"
)

// poll calls check until it returns nil, ctx ends or the node does.
func (n *Node) poll(ctx context.Context, what string, check func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-n.process.done:
			return n.process.err
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; last: %w; logs are in %s", what, context.Cause(ctx), err, n.LogDir())
		case <-ticker.C:
		}
	}
}

// waitReady waits until pods can run and names are resolved.
func (n *Node) waitReady(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(n.cluster.RESTConfig())
	if err != nil {
		return err
	}
	// What the node says of itself is exact to the second.
	began := n.began.Truncate(time.Second)
	err = n.poll(ctx, "the node to be Ready", func(ctx context.Context) error {
		object, err := client.CoreV1().Nodes().Get(ctx, Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range object.Status.Conditions {
			// The object may be that of an earlier node.
			if condition.Type == corev1.NodeReady && !condition.LastHeartbeatTime.Time.Before(began) {
				if condition.Status == corev1.ConditionTrue {
					return nil
				}
				return errors.New(condition.Message)
			}
		}
		return errors.New("it does not say whether it is")
	})
	if err != nil {
		return err
	}
	return n.poll(ctx, "CoreDNS to know the Services", func(ctx context.Context) error {
		return n.get(ctx, "http://"+net.JoinHostPort(IP, dnsHealth)+"/ready")
	})
}

// grantDNS lets CoreDNS read the objects that it makes names of. All other programs have rights by Kubernetes' own rules.
func (n *Node) grantDNS(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(n.cluster.RESTConfig())
	if err != nil {
		return err
	}
	apply := metav1.ApplyOptions{FieldManager: owner}
	role := rbacv1ac.ClusterRole(corednsUser).WithRules(
		rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("services", "namespaces", "pods").WithVerbs("list", "watch"),
		rbacv1ac.PolicyRule().WithAPIGroups("discovery.k8s.io").WithResources("endpointslices").WithVerbs("list", "watch"))
	if _, err := client.RbacV1().ClusterRoles().Apply(ctx, role, apply); err != nil {
		return fmt.Errorf("giving CoreDNS its rights: %w", err)
	}
	binding := rbacv1ac.ClusterRoleBinding(corednsUser).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup("rbac.authorization.k8s.io").WithKind("ClusterRole").WithName(corednsUser)).
		WithSubjects(rbacv1ac.Subject().WithAPIGroup("rbac.authorization.k8s.io").WithKind("User").WithName(corednsUser))
	if _, err := client.RbacV1().ClusterRoleBindings().Apply(ctx, binding, apply); err != nil {
		return fmt.Errorf("giving CoreDNS its rights: %w", err)
	}
	return nil
}

// get returns nil if the URL, which is one of the node's network, answers 200 OK.
func (n *Node) get(ctx context.Context, url string) error {
	client := &http.Client{Transport: &http.Transport{DialContext: n.DialContext, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", url, response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

// DialContext connects to an address in the network of the node, such as that of a Service or a pod, as
// net.Dialer.DialContext does. The network must be tcp, and the protocol one in which the client speaks first. Names of
// Services are not known here.
func (n *Node) DialContext(ctx context.Context, network, address string) (_ net.Conn, err error) {
	if network != "tcp" {
		return nil, fmt.Errorf("cannot connect to the node by %s", network)
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, "unix", n.cluster.NodeSocket())
	if err != nil {
		return nil, err
	}
	// What waits for the answer ends with ctx.
	unlink := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer func() {
		if !unlink() {
			err = errors.Join(err, context.Cause(ctx))
		}
		if err != nil {
			_ = connection.Close()
		}
	}()
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Host: address}, Host: address, Header: http.Header{}}
	if err := request.Write(connection); err != nil {
		return nil, err
	}
	// Nothing follows the answer before the client has said something, so nothing is lost in the buffer.
	response, err := http.ReadResponse(bufio.NewReader(connection), request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("connecting to %s on the node: %s", address, response.Status)
	}
	return connection, nil
}
