// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	builtinac "k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// fixture is a server of three kinds, and a client of it.
type fixture struct {
	*Server
	t           *testing.T
	client      kubernetes.Interface
	deployments appsv1client.DeploymentInterface
	configMaps  corev1client.ConfigMapInterface
	pods        corev1client.PodInterface
}

func newFixture(t *testing.T, more ...*Kind) *fixture {
	t.Helper()
	s, err := New(append(more,
		newKind(t, &appsv1.Deployment{}, "deployments", Basic{Status: true, Counts: true}), newKind(t, &corev1.ConfigMap{}, "configmaps", Basic{}),
		newKind(t, &corev1.Pod{}, "pods", Basic{Status: true}),
	)...)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{Server: s, t: t}
	f.client = f.connect(nil, false)
	f.deployments, f.configMaps, f.pods = f.client.AppsV1().Deployments("shop"), f.client.CoreV1().ConfigMaps("shop"), f.client.CoreV1().Pods("shop")
	return f
}

func newKind(t *testing.T, empty runtime.Object, resource string, strategy Basic) *Kind {
	t.Helper()
	gvks, _, err := scheme.Scheme.ObjectKinds(empty)
	if err != nil {
		t.Fatal(err)
	}
	return &Kind{
		GroupVersionKind: gvks[0], Resource: resource, Status: strategy.Status, Graceful: resource == "pods", ClusterScoped: resource == "namespaces",
		New:    func() runtime.Object { return reflect.New(reflect.TypeOf(empty).Elem()).Interface().(runtime.Object) },
		Fields: builtinac.NewTypeConverter(scheme.Scheme), Scheme: scheme.Scheme, Strategy: strategy,
	}
}

// inProtobuf is a client that wants built-in kinds as protobuf.
func (f *fixture) inProtobuf() kubernetes.Interface {
	f.t.Helper()
	config := f.Connect("client", nil, false)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		f.t.Fatal(err)
	}
	return client
}

func (f *fixture) connect(intercept Interceptor, heldEvents bool) kubernetes.Interface {
	f.t.Helper()
	client, err := kubernetes.NewForConfig(f.Connect("client", intercept, heldEvents))
	if err != nil {
		f.t.Fatal(err)
	}
	return client
}

// kindNamed returns a kind of the server.
func (f *fixture) kindNamed(kind string) *Kind {
	f.t.Helper()
	for _, group := range []string{"", "apps"} {
		if k := f.KindOf(group, kind); k != nil {
			return k
		}
	}
	f.t.Fatalf("there is no kind %s", kind)
	return nil
}

// apply sends YAML of a Deployment, with no more in it than what is written there.
func (f *fixture) apply(manager, body string, subresources ...string) (*appsv1.Deployment, error) {
	f.t.Helper()
	return f.deployments.Patch(f.t.Context(), "web", types.ApplyPatchType,
		[]byte(`{"apiVersion":"apps/v1","kind":"Deployment",`+body+`}`), metav1.PatchOptions{FieldManager: manager}, subresources...)
}

// put stores an object, and returns how it was stored.
func put[L runtime.Object](f *fixture, obj L) L {
	f.t.Helper()
	access(obj).SetNamespace("shop")
	gvks, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		f.t.Fatal(err)
	}
	f.Put(f.kindNamed(gvks[0].Kind), obj)
	return obj
}

func (f *fixture) exists(kind, name string) bool {
	f.t.Helper()
	_, ok := f.Get(f.kindNamed(kind), "shop", name)
	return ok
}

// must returns what a request that has to succeed is answered.
func must[L any](answer L, err error) func(t *testing.T) L {
	return func(t *testing.T) L {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
}

// expectCode fails the test unless an error is an API server's, with a code.
func expectCode(t *testing.T, err error, code int32, why string) {
	t.Helper()
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Code != code {
		t.Errorf("%s: the answer is %v, want one with code %d", why, err, code)
	}
}

// contested returns the fields of a conflict between managers; none for another error.
func contested(err error) (fields []string) {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			fields = append(fields, cause.Field)
		}
	}
	return fields
}

// managers are those of an object, with their subresources.
func managers(obj runtime.Object) (names []string) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil
	}
	for _, entry := range m.GetManagedFields() {
		names = append(names, strings.TrimSuffix(entry.Manager+"/"+entry.Subresource, "/"))
	}
	slices.Sort(names)
	return names
}
