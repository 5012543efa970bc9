// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/internal/yamlsafe"
)

// Transport returns a transport that lets applies carry every character. The API server reads the body of an apply as YAML,
// though clients send JSON: it refuses a body with a character such as U+007F, and stores U+0085 as a space, so that what a
// manager owns would differ from what it wants for ever. The transport escapes such characters, and leaves all other requests as
// they are. Wrap the configuration of every client that a Writer sends with: config.Wrap(apply.Transport).
func Transport(next http.RoundTripper) http.RoundTripper {
	return transport{next, func(request *http.Request) (*http.Response, error) {
		kind, _, err := mime.ParseMediaType(request.Header.Get("Content-Type"))
		if err != nil || kind != string(types.ApplyYAMLPatchType) || request.Body == nil {
			return next.RoundTrip(request)
		}
		body, err := io.ReadAll(request.Body)
		if closing := request.Body.Close(); err == nil {
			err = closing
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the body of an apply: %w", err)
		}
		body = yamlsafe.Escape(body)
		request = request.Clone(request.Context())
		request.ContentLength = int64(len(body))
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		request.Body, _ = request.GetBody()
		return next.RoundTrip(request)
	}}
}

// OwnWaits returns a transport that takes the header Retry-After out of answers. client-go sleeps in the calling goroutine for as long as
// the header of a 429 or a 5xx says, and a webhook may say an hour: the worker would serve no other object until then, a watch would see
// nothing. Without the header the caller gets the answer at once, and waits as it does after any other refusal.
func OwnWaits(next http.RoundTripper) http.RoundTripper {
	return transport{next, func(request *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(request)
		if answer != nil {
			answer.Header.Del("Retry-After")
		}
		return answer, err
	}}
}

const (
	// writeTimeout is a second more than the 34 seconds that an API server takes at most to answer a write.
	writeTimeout = 35 * time.Second
	// readTimeout is five seconds more than the default of the API server's flag --request-timeout.
	readTimeout = 65 * time.Second
)

// Deadline returns a transport that waits only so long for the answer to a request, unless it is a watch. Without it, a request that is never
// answered would keep its worker for as long as the connection lives. What the API server has made of the request is not known then, as
// after any other end of a connection.
func Deadline(next http.RoundTripper) http.RoundTripper {
	return transport{next, func(request *http.Request) (*http.Response, error) {
		timeout := writeTimeout
		if request.Method == http.MethodGet {
			timeout = readTimeout
		}
		if watch, err := strconv.ParseBool(request.URL.Query().Get("watch")); err == nil && watch {
			return next.RoundTrip(request)
		}
		ctx, cancel := context.WithTimeout(request.Context(), timeout)
		answer, err := next.RoundTrip(request.WithContext(ctx))
		if err != nil {
			defer cancel()
			if ctx.Err() != nil && request.Context().Err() == nil {
				err = fmt.Errorf("no answer within %v: %w", timeout, err)
			}
			return answer, err
		}
		answer.Body = &requestWait{answer.Body, cancel}
		return answer, nil
	}}
}

// requestWait is the body of an answer, whose end ends the wait for it.
type requestWait struct {
	io.ReadCloser
	end context.CancelFunc
}

// Close implements io.Closer.
func (b *requestWait) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// transport is a transport on top of another one.
type transport struct {
	next  http.RoundTripper
	carry func(*http.Request) (*http.Response, error)
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) { return t.carry(request) }

// WrappedRoundTripper lets client-go find the transport below.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }
