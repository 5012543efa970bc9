// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/freehold-dev/freehold/hack/cluster"
)

// findKubectl returns the directories to put in front of the PATH, so that a user finds kubectl and the plugin: that of the
// plugin, and that of a kubectl where the user has none that fits.
func findKubectl(ctx context.Context, c *cluster.Cluster, plugin string) ([]string, error) {
	directories := []string{filepath.Dir(plugin)}
	path, err := c.KubectlPath(ctx)
	if err != nil {
		return nil, err
	}
	if own, err := exec.LookPath("kubectl"); err == nil && own == path {
		return directories, nil
	}
	return append(directories, filepath.Dir(path)), nil
}

// invite prints what to type in another terminal.
func invite(out io.Writer, kubeconfig string, directories []string) {
	fmt.Fprintln(out, "\nLook for yourself, in another terminal:")
	for _, line := range []string{
		"export KUBECONFIG=" + kubeconfig,
		fmt.Sprintf("export PATH=%s%c$PATH", strings.Join(directories, string(os.PathListSeparator)), os.PathListSeparator),
		"kubectl -n " + samplesNamespace + " get mcpservers,deployments,statefulsets,services,configmaps",
		"kubectl freehold owners -n " + samplesNamespace + " mcpserver/echo-http",
	} {
		fmt.Fprintln(out, "  "+line)
	}
	fmt.Fprintln(out)
}
