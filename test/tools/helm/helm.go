// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package helm is what the suites share that use Helm's library.
package helm

import (
	"log/slog"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// Configuration is that of Helm's actions with a kubeconfig, for releases in a namespace.
func Configuration(t *testing.T, kubeconfig, namespace string) *action.Configuration {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	config := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := config.Init(flags, namespace, "secrets"); err != nil {
		t.Fatal(err)
	}
	return config
}
