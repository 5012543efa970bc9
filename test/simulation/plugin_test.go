// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/freehold-dev/freehold/pkg/plugin/cmd"
)

// pluginRun is what came of one run of kubectl freehold.
type pluginRun struct {
	process *Operator
	// code is its exit code, or -1 for one that was killed or is still at work.
	code int
	out  *bytes.Buffer
}

// Plugin starts kubectl freehold with arguments. Its requests wait for the scheduler as those of operators do, and a crash that is
// due kills it; then calls again, unless it is nil, which starts an operator.
func (s *Simulation) Plugin(again func(), args ...string) *pluginRun {
	s.t.Helper()
	run := &pluginRun{code: -1, out: &bytes.Buffer{}}
	o := s.newProcess("plugin")
	o.again = again
	run.process = o
	ctx, stop := context.WithCancel(s.t.Context())
	o.stop = stop
	connected := s.Server.Connect(o.name, nil, false)
	connection := &severable{s.Server.Connect(o.name, s.between(o), false).Transport}
	env := cmd.Environment{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: run.out, ErrOut: run.out},
		Clock:     clock.RealClock{}, // that of the bubble
		LookupEnv: func(string) (string, bool) { return "", false },
		WrapConfig: func(config *rest.Config) *rest.Config {
			config.Transport = connection
			return config
		},
	}
	s.mu.Lock()
	s.operators = append(s.operators, o)
	s.mu.Unlock()
	go func() {
		// No file of the machine that runs the test has a part in it.
		code := cmd.Run(ctx, env, append(args, "--kubeconfig=/dev/null", "--server="+connected.Host, "--namespace="+s.Namespace))
		connection.RoundTripper = nil
		s.mu.Lock()
		if !o.dead {
			run.code = code
		}
		s.mu.Unlock()
		o.ended <- errors.New("it has ended")
	}()
	return run
}

// severable is a connection that can be cut from the simulation. The library of the command line keeps what completes the values of
// flags, and with it the clients, for as long as the test binary runs.
type severable struct{ http.RoundTripper }
