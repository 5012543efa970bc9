// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jwkfetch stands in for github.com/jwx-go/jwkfetch/v4, as far as ToolHive uses it. Each fetch of keys fails, so no
// OIDC token is found valid.
package jwkfetch

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/lestrrat-go/httprc/v3"
	"github.com/lestrrat-go/jwx/v4/jwk"
)

var errNoFetch = errors.New("jwkfetch is not in this build of ToolHive: keys cannot be fetched")

// Option changes nothing.
type Option struct{}

// WithHTTPClient returns an option that changes nothing.
func WithHTTPClient(*http.Client) Option { return Option{} }

// WithMaxBodySize returns an option that changes nothing.
func WithMaxBodySize(int64) Option { return Option{} }

// WithConstantInterval returns an option that changes nothing.
func WithConstantInterval(time.Duration) Option { return Option{} }

// Cache holds no keys.
type Cache struct{}

// NewCache returns a cache that never holds keys.
func NewCache(context.Context, *httprc.Client, ...Option) (*Cache, error) { return &Cache{}, nil }

// IsRegistered reports false.
func (*Cache) IsRegistered(context.Context, string) bool { return false }

// Register fails.
func (*Cache) Register(context.Context, string, ...Option) error { return errNoFetch }

// Refresh fails.
func (*Cache) Refresh(context.Context, string) (jwk.Set, error) { return jwk.Set{}, errNoFetch }

// Lookup fails.
func (*Cache) Lookup(context.Context, string) (jwk.Set, error) { return jwk.Set{}, errNoFetch }

// Shutdown has nothing to do.
func (*Cache) Shutdown(context.Context) error { return nil }
