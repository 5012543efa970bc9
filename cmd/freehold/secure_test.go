// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	kubefake "k8s.io/client-go/kubernetes/fake"
)

// With --metrics-secure nothing is told without TLS or without a token, and health stays as it is.
func TestSecureMetricsNeedTLSAndAToken(t *testing.T) {
	health, figures := "127.0.0.1:"+freePort(t), "127.0.0.1:"+freePort(t)
	ctx, cancel := context.WithCancel(t.Context())
	group, ctx := errgroup.WithContext(ctx)
	o := &options{healthAddress: health, metricsAddress: figures, metricsSecure: true}
	if err := serveEndpoints(ctx, group, o, func(*http.Request) error { return nil }, kubefake.NewClientset()); err != nil {
		t.Fatal(err)
	}
	if code, _ := ask(t, http.MethodGet, "http://"+health+"/livez"); code != http.StatusOK {
		t.Errorf("/livez answers %d", code)
	}
	if code, body := ask(t, http.MethodGet, "http://"+figures+"/metrics"); code != http.StatusBadRequest || !strings.Contains(body, "HTTPS") {
		t.Errorf("without TLS the answer is %d %.100q", code, body)
	}
	// Nobody can know the certificate of a process that has just made it.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+figures+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	var response *http.Response
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		response, err = client.Do(request)
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusUnauthorized || strings.Contains(string(body), "freehold_") {
		t.Errorf("without a token the answer is %d %.100q", response.StatusCode, body)
	}
	cancel()
	if err := group.Wait(); err != nil {
		t.Error(err)
	}

	o.metricsCertificates = t.TempDir()
	if err := serveEndpoints(t.Context(), group, o, nil, nil); err == nil || !strings.Contains(err.Error(), "tls.crt") {
		t.Errorf("a directory without a certificate: %v", err)
	}
}
