// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/freehold-dev/freehold/hack/node/internal/plan"
	"github.com/freehold-dev/freehold/hack/node/internal/splice"
)

// dialTimeout is how long it may take to open a connection into the node's network.
const dialTimeout = 5 * time.Second

// forward connects clients of the address with the server that listens on the socket.
func forward(f plan.Forward) error {
	listener, err := net.Listen("tcp", f.Address) //nolint:noctx // it lasts as long as the node
	if err != nil {
		return fmt.Errorf("listening for the API server: %w", err)
	}
	go splice.Serve(listener, "unix", f.Socket)
	return nil
}

// proxy serves an HTTP proxy into the node's network at a Unix socket. It knows CONNECT alone.
func proxy(socket string) error {
	listener, err := net.Listen("unix", socket) //nolint:noctx // it lasts as long as the node
	if err != nil {
		return fmt.Errorf("listening for connections to the node: %w", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(connect), ReadHeaderTimeout: dialTimeout}
	go func() { _ = server.Serve(listener) }() // It ends with the node.
	return nil
}

func connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), dialTimeout)
	defer cancel()
	target, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = target.Close()
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// Nobody talks before the answer, but what has been read must not be lost.
	if n := buffered.Reader.Buffered(); n > 0 {
		_, err = io.CopyN(target, buffered, int64(n))
	}
	if err == nil {
		_, err = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	}
	if err != nil {
		_, _ = target.Close(), client.Close()
		return
	}
	splice.Join(client, target)
}
