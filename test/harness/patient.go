// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// overloaded is in what an API server answers, with status 500, when etcd has not answered it in time ("etcdserver: request timed
	// out", "etcdserver: leader changed"). Clients are not told whether the request was carried out.
	overloaded = "etcdserver: "
	// attempts is how often the tests' own client sends a request that is answered so, and pause is how long it waits in between.
	attempts, pause = 10, time.Second
)

// patient sends the requests of the tests' own client again while the API server answers that it is overloaded: that says nothing of
// what a test looks at. Operators are not given it. What the earlier attempt may have carried out is not an error of the next one.
type patient struct {
	next  http.RoundTripper
	pause time.Duration
}

// newPatient wraps a transport, see rest.Config.Wrap.
func newPatient(next http.RoundTripper) http.RoundTripper { return patient{next: next, pause: pause} }

func (p patient) RoundTrip(request *http.Request) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		if attempt > 1 && request.GetBody != nil {
			body, err := request.GetBody()
			if err != nil {
				return nil, err
			}
			request = request.Clone(request.Context())
			request.Body = body
		}
		response, err := p.next.RoundTrip(request)
		if err != nil {
			return response, err
		}
		var status metav1.Status
		if response.StatusCode >= http.StatusBadRequest {
			if status, err = statusOf(response); err != nil {
				return nil, err
			}
		}
		switch {
		case response.StatusCode == http.StatusInternalServerError && strings.Contains(status.Message, overloaded):
		case attempt > 1 && request.Method == http.MethodPost && status.Reason == metav1.StatusReasonAlreadyExists && status.Details != nil:
			return p.next.RoundTrip(getOf(request, status.Details.Name))
		case attempt > 1 && request.Method == http.MethodDelete && status.Reason == metav1.StatusReasonNotFound:
			return deletedBefore(response)
		default:
			return response, nil
		}
		if attempt == attempts || request.Body != nil && request.GetBody == nil {
			return response, nil
		}
		select {
		case <-request.Context().Done():
			return nil, request.Context().Err()
		case <-time.After(p.pause):
		}
	}
}

// statusOf reads the body of a response, which can be read again. A body that is no Status has no reason and no message.
func statusOf(response *http.Response) (status metav1.Status, err error) {
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	if json.Unmarshal(body, &status) != nil {
		return metav1.Status{}, err
	}
	return status, err
}

// getOf is the request that reads what a request to create has created.
func getOf(create *http.Request, name string) *http.Request {
	get := create.Clone(create.Context())
	get.Method, get.Body, get.GetBody, get.ContentLength = http.MethodGet, nil, nil, 0
	get.URL.Path += "/" + name
	get.URL.RawQuery = ""
	return get
}

// deletedBefore answers a deletion whose object an earlier attempt has deleted.
func deletedBefore(response *http.Response) (*http.Response, error) {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess, Code: http.StatusOK,
	})
	if err != nil {
		return nil, err
	}
	response.StatusCode, response.Status = http.StatusOK, "200 OK"
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Set("Content-Length", "")
	response.Header.Set("Content-Type", "application/json")
	return response, nil
}
