// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/gzip"
	"net/http"
	"strings"
)

// compress compresses answers for clients that accept gzip, as many web frameworks do.
func compress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			next.ServeHTTP(w, r)
			return
		}
		c := &compressor{ResponseWriter: w}
		next.ServeHTTP(c, r)
		if c.body != nil {
			_ = c.body.Close() // It fails where the client has gone away.
		}
	})
}

// compressor compresses the body of an answer.
type compressor struct {
	http.ResponseWriter
	// body is nil before the header is written.
	body *gzip.Writer
}

// WriteHeader implements http.ResponseWriter. An answer without a type has no body.
func (c *compressor) WriteHeader(code int) {
	if c.Header().Get("Content-Type") != "" {
		c.Header().Del("Content-Length")
		c.Header().Set("Content-Encoding", "gzip")
		c.body = gzip.NewWriter(c.ResponseWriter)
	}
	c.ResponseWriter.WriteHeader(code)
}

// Write implements io.Writer.
func (c *compressor) Write(content []byte) (int, error) {
	if c.body == nil {
		c.WriteHeader(http.StatusOK)
	}
	return c.body.Write(content)
}

// FlushError is what http.ResponseController calls.
func (c *compressor) FlushError() error {
	if c.body != nil {
		if err := c.body.Flush(); err != nil {
			return err
		}
	}
	return http.NewResponseController(c.ResponseWriter).Flush()
}

// Flush implements http.Flusher.
func (c *compressor) Flush() { _ = c.FlushError() }
