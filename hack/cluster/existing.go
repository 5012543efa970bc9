// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
)

// FromKubeconfig returns a cluster that runs already. With an empty path it is the one that kubectl would use:
// KUBECONFIG, then ~/.kube/config. Its current context should have the rights of an administrator.
//
// Stop leaves such a cluster alone and only removes the kubeconfigs written for it. It has no audit log, and its
// processes can neither be stopped nor frozen.
func FromKubeconfig(ctx context.Context, path string) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the existing cluster: %w", err)
	}
	config.QPS = -1
	state, err := openStateDir(ctx, "")
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		state:   state,
		admin:   config,
		options: Options{}.withDefaults(),
		failure: newFailure(),
		// A copy: KUBECONFIG may be a list of files, and its current context may be changed by anybody.
		kubeconfig: state.file(adminUser.kubeconfig()),
	}
	if err := writeKubeconfig(c.kubeconfig, adminUser.name, config); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// StartOrUse returns the cluster that the environment variable KUBECONFIG names, if it is set, and else starts one. A
// user who sets the variable for a program that calls this lets it write to that cluster.
func StartOrUse(ctx context.Context, options Options) (*Cluster, error) {
	if os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "" {
		c, err := FromKubeconfig(ctx, "")
		if err == nil {
			c.options.Published = options.Published
		}
		return c, err
	}
	return Start(ctx, options)
}

// Owned reports whether this package started the cluster, so that it may be changed at will.
func (c *Cluster) Owned() bool { return c.authority != nil }
