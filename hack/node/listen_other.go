// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package node

import (
	"context"
	"net"
)

// Listen is never called: Check refuses everything but Linux.
func (*Node) Listen(context.Context, string) (net.Listener, error) { return nil, ErrUnavailable }
