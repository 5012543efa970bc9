// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jwkfetch stands in for github.com/jwx-go/jwkfetch/v4, as far as ToolHive uses it. It keeps no keys: each lookup
// fetches them.
package jwkfetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/lestrrat-go/httprc/v3"
	"github.com/lestrrat-go/jwx/v4/jwk"
)

// Option sets how keys are fetched.
type Option func(*Cache)

// WithHTTPClient sets the client that fetches keys.
func WithHTTPClient(client *http.Client) Option { return func(c *Cache) { c.client = client } }

// WithMaxBodySize limits an answer, in bytes.
func WithMaxBodySize(limit int64) Option { return func(c *Cache) { c.limit = limit } }

// WithConstantInterval returns an option that changes nothing.
func WithConstantInterval(time.Duration) Option { return func(*Cache) {} }

// Cache fetches keys.
type Cache struct {
	client *http.Client
	limit  int64
}

// NewCache returns a cache that keeps nothing.
func NewCache(_ context.Context, _ *httprc.Client, options ...Option) (*Cache, error) {
	c := &Cache{client: http.DefaultClient, limit: math.MaxInt64 - 1}
	for _, option := range options {
		option(c)
	}
	return c, nil
}

// IsRegistered reports false: Register may be called again.
func (*Cache) IsRegistered(context.Context, string) bool { return false }

// Register fails where the keys cannot be fetched.
func (c *Cache) Register(ctx context.Context, url string, _ ...Option) error {
	_, err := c.Lookup(ctx, url)
	return err
}

// Refresh does what Lookup does.
func (c *Cache) Refresh(ctx context.Context, url string) (jwk.Set, error) { return c.Lookup(ctx, url) }

// Lookup fetches the keys.
func (c *Cache) Lookup(ctx context.Context, url string) (jwk.Set, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, c.limit+1))
	switch err := errors.Join(err, response.Body.Close()); {
	case err != nil:
		return nil, err
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answers %s", url, response.Status)
	case int64(len(body)) > c.limit:
		return nil, fmt.Errorf("%s answers with more than %d bytes", url, c.limit)
	}
	return jwk.Parse(body)
}

// Shutdown has nothing to do.
func (*Cache) Shutdown(context.Context) error { return nil }
