// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	builtinac "k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/internal/apiserver"
	"github.com/freehold-dev/freehold/test/harness"
)

// model returns the configuration of a client of the model of an API server, with a namespace in it.
func model(t *testing.T, namespace string) *rest.Config {
	t.Helper()
	fields := builtinac.NewTypeConverter(scheme.Scheme)
	of := func(empty runtime.Object, resource string, strategy apiserver.Basic) *apiserver.Kind {
		gvks, _, err := scheme.Scheme.ObjectKinds(empty)
		if err != nil {
			t.Fatal(err)
		}
		return &apiserver.Kind{
			GroupVersionKind: gvks[0], Resource: resource, Status: strategy.Status, Graceful: resource == "pods", ClusterScoped: resource == "namespaces",
			New:    func() runtime.Object { return reflect.New(reflect.TypeOf(empty).Elem()).Interface().(runtime.Object) },
			Fields: fields, Scheme: scheme.Scheme, Strategy: strategy,
		}
	}
	namespaces := of(&corev1.Namespace{}, "namespaces", apiserver.Basic{Status: true})
	server, err := apiserver.New(
		of(&appsv1.Deployment{}, "deployments", apiserver.Basic{Status: true, Counts: true}), of(&corev1.ConfigMap{}, "configmaps", apiserver.Basic{}),
		of(&corev1.Secret{}, "secrets", apiserver.Basic{}), of(&corev1.Pod{}, "pods", apiserver.Basic{Status: true, Counts: true}), namespaces,
	)
	if err != nil {
		t.Fatal(err)
	}
	server.TimeOut = true
	server.Admit = func(r *apiserver.Request, _, _ runtime.Object) error {
		if denial, denied := denials[r.Name]; denied {
			return apiserver.Denied(webhook, denial)
		}
		return nil
	}
	server.Webhook = &apiserver.SlowWebhook{
		Name: webhook, URL: "https://webhook.invalid/", Within: 10 * time.Second, Takes: func(r *apiserver.Request) time.Duration { return slowness[r.Name] },
	}
	server.Put(namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	return server.Connect("client", nil, false)
}

// partner returns a real API server to hold a conversation with, in a namespace of its own: that of all tests, or one that is alone, without
// the controllers of Kubernetes.
func partner(t *testing.T, alone, webhook bool) (config *rest.Config, namespace string) {
	t.Helper()
	if alone {
		own, err := cluster.Start(t.Context(), cluster.Options{APIServerOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := own.Stop(); err != nil {
				t.Error(err)
			}
		})
		config = own.RESTConfig()
		namespace = metav1.NamespaceDefault
	} else {
		ns := env.Namespace(t)
		harness.Eventually(t, "there is the ServiceAccount that pods need", func(ctx context.Context) error {
			_, err := ns.Core.CoreV1().ServiceAccounts(ns.Name).Get(ctx, "default", metav1.GetOptions{})
			return err
		})
		if webhook {
			deny(t, ns)
		}
		config, namespace = rest.CopyConfig(env.Config), ns.Name
	}
	config.QPS = -1
	return config, namespace
}

// deny makes the API server deny what denials has, and wait for what slowness has, which the model does in every conversation.
func deny(t *testing.T, ns *harness.Namespace) {
	t.Helper()
	ns.Webhook(t, webhook, admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}, func(request *admissionv1.AdmissionRequest) *metav1.Status {
		if denial, denied := denials[request.Name]; denied {
			return &denial
		}
		<-time.After(slowness[request.Name])
		return nil
	})
	harness.Eventually(t, "the webhook is asked", func(ctx context.Context) error {
		_, err := ns.Core.CoreV1().ConfigMaps(ns.Name).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "denied"}},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return errors.New("not yet")
		}
		return nil
	})
}
