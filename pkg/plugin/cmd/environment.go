// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"os"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/version"
	"k8s.io/utils/clock"

	"github.com/freehold-dev/freehold/pkg/plugin/printers"
)

// Environment is what a run of the plugin gets from its process.
type Environment struct {
	genericiooptions.IOStreams
	// Version of the program.
	Version string
	// Clock gives the time that ages are counted to.
	Clock clock.WithTicker
	// WrapConfig changes how the cluster is reached; nil leaves it as the flags and the kubeconfig say.
	WrapConfig func(config *rest.Config) *rest.Config
	// LookupEnv reads a variable of the environment.
	LookupEnv func(name string) (value string, ok bool)
	// Terminal is set when the output goes to a terminal.
	Terminal bool
	// Width of that terminal in characters; 0 where there is none, or it is not known.
	Width int
	// Interactive is set when there is a user who can answer a question.
	Interactive bool
}

// OfProcess returns the environment of this process.
func OfProcess() Environment {
	width, _, _ := term.GetSize(int(os.Stdout.Fd())) // 0 with an error.
	return Environment{
		IOStreams:   genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Version:     version.Get().GitVersion,
		Clock:       clock.RealClock{},
		LookupEnv:   os.LookupEnv,
		Terminal:    term.IsTerminal(int(os.Stdout.Fd())),
		Width:       width,
		Interactive: term.IsTerminal(int(os.Stdin.Fd())),
	}
}

// Values of --color.
const (
	colourAuto   = "auto"
	colourAlways = "always"
	colourNever  = "never"
)

// palette reports whether to colour the output. NO_COLOR, if it is there and not empty, turns colour off unless the user
// asks for it by the flag (https://no-color.org).
func (e Environment) palette(setting string) (printers.Palette, error) {
	switch setting {
	case colourAlways:
		return printers.Palette{On: true}, nil
	case colourNever:
		return printers.Palette{}, nil
	case colourAuto:
		no, _ := e.LookupEnv("NO_COLOR")
		kind, _ := e.LookupEnv("TERM")
		return printers.Palette{On: e.Terminal && no == "" && kind != "dumb"}, nil
	}
	return printers.Palette{}, fmt.Errorf("--color is %q; give auto, always or never", setting)
}
