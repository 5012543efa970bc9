// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
)

// targets are the flags that say which cluster is meant and who the user is there. Printed commands have those that the user has given.
// They have no secrets: neither a token nor the address of a proxy, which may hold a password.
var targets = []string{
	"as", "as-group", "as-uid", "as-user-extra", "certificate-authority", "client-certificate", "client-key", "cluster", "context",
	"insecure-skip-tls-verify", "kubeconfig", "server", "tls-server-name", "user",
}

// target returns the options of the user that name the cluster and the user.
func (p *plugin) target() (words []string) {
	if p.root == nil {
		return nil
	}
	p.root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && slices.Contains(targets, f.Name) {
			words = append(words, given(f)...)
		}
	})
	return words
}

// given returns a flag as the user could have given it.
func given(f *pflag.Flag) []string {
	if f == nil || !f.Changed {
		return nil
	}
	values := []string{f.Value.String()}
	if several, ok := f.Value.(pflag.SliceValue); ok {
		values = several.GetSlice()
	}
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = "--" + f.Name + "=" + value
	}
	return words
}

// caller makes the commands that are printed.
func (s *planner) caller() cluster.Caller {
	called := cluster.Caller{Target: s.target(), Operator: given(s.flag)}
	for _, argument := range s.args {
		called.Arguments = append(called.Arguments, "--operator-arg="+argument)
	}
	return called
}
