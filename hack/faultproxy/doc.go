// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faultproxy stands between an operator and an API server and makes the network as bad as a test wants it to
// be: it lets the events of a watch lag behind, it holds requests until the test lets them go, and it answers requests itself.
//
//	proxy, err := faultproxy.Start(ctx, faultproxy.Options{
//		Config: config,
//		Lags:   []faultproxy.Lag{{Match: faultproxy.Watches("apps", "deployments"), By: func() time.Duration { return time.Second }}},
//	})
//	if err != nil { ... }
//	defer proxy.Close()
//	err = proxy.WriteKubeconfig(path) // for the operator
//	hold := proxy.Hold(faultproxy.Patches("apps", "statefulsets"))
//	<-hold.Caught()
//	hold.Release()
//	proxy.Fail(faultproxy.Patches("apps", "statefulsets"), 1, http.StatusInternalServerError, faultproxy.EtcdError("leader changed"))
//
// The proxy listens on 127.0.0.1 alone, without TLS, and adds the credentials itself: every client that can reach it
// has the rights of its configuration. It is for tests.
package faultproxy
