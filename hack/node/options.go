// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"io"
	"os"
)

// ErrUnavailable is returned when no real node can run on this machine. The error says why, and what would help.
var ErrUnavailable = errors.New("no real node can run here")

// Name of the node, and of its Node object.
const Name = "node-1"

// Options configure a node.
type Options struct {
	// Images are names of package images, which are made and imported before Start returns. Default: none.
	Images []string
	// Progress receives lines about what has to be built first. Default: os.Stderr.
	Progress io.Writer
}

func (o Options) withDefaults() Options {
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	return o
}
