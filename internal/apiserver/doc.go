// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver is an API server in memory. It answers the requests of real clients, and runs in a synctest bubble, where
// a test decides in which order requests are carried out and events are delivered.
//
// What all kinds have in common is done as an API server does it: managedFields and their conflicts (by the code of
// k8s.io/apimachinery), preconditions, generations, subresources, finalizers, graceful deletion, evictions, lists and watches with
// resourceVersions, expired versions and those to come. What a kind does beyond that, its defaults and its validation, is for its
// Strategy to do. There is no authorization, no admission but Server.Admit, and there are no controllers. A kind is served in one
// version. TestTheSimulatedAPIServerAnswersAsARealOne of test/cluster/faults compares the answers with those of a real API server.
package apiserver
