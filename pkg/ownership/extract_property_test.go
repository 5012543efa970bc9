// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/applyconfigurations"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/freehold-dev/freehold/internal/filler"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// TestExtractorAgreesWithClientGo: whatever an object has, and whatever of it and of what it does not have a manager owns, the
// generated functions of client-go return the same.
func TestExtractorAgreesWithClientGo(t *testing.T) {
	apps := appsv1.SchemeGroupVersion
	t.Run("Deployment", agrees(apps.WithKind("Deployment"), "", appsv1ac.ExtractDeployment))
	t.Run("status of a Deployment", agrees(apps.WithKind("Deployment"), "status", appsv1ac.ExtractDeploymentStatus))
	t.Run("StatefulSet", agrees(apps.WithKind("StatefulSet"), "", appsv1ac.ExtractStatefulSet))
	t.Run("Service", agrees(corev1.SchemeGroupVersion.WithKind("Service"), "", corev1ac.ExtractService))
	t.Run("ConfigMap", agrees(corev1.SchemeGroupVersion.WithKind("ConfigMap"), "", corev1ac.ExtractConfigMap))
	t.Run("ServiceAccount", agrees(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), "", corev1ac.ExtractServiceAccount))
	t.Run("Role", agrees(rbacv1.SchemeGroupVersion.WithKind("Role"), "", rbacv1ac.ExtractRole))
	t.Run("RoleBinding", agrees(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), "", rbacv1ac.ExtractRoleBinding))
}

func agrees[S any, L interface {
	*S
	metav1.Object
	runtime.Object
}, A any](
	kind schema.GroupVersionKind, subresource string, generated func(L, string) (A, error),
) func(t *testing.T) {
	return func(t *testing.T) {
		types := applyconfigurations.NewTypeConverter(scheme.Scheme)
		extract, err := ownership.Extractor[L, A](types, kind, subresource)
		if err != nil {
			t.Fatal(err)
		}
		compared, failed := 0, 0
		rapid.Check(t, func(t *rapid.T) {
			random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			object := func() (L, *fieldpath.Set) {
				for {
					made := reflect.New(reflect.TypeFor[A]().Elem()).Interface()
					filler.Fill(random, made)
					live := L(new(S))
					if err := json.Unmarshal([]byte(encode(t, made)), live); err != nil {
						t.Fatal(err)
					}
					live.GetObjectKind().SetGroupVersionKind(kind)
					live.SetManagedFields(nil)
					typed, err := types.ObjectToTyped(live)
					if err != nil {
						continue // Two items of a list have one key, which the API server stores and the generated function refuses.
					}
					set, err := typed.ToFieldSet()
					if err != nil {
						t.Fatal(err)
					}
					return live, set
				}
			}
			live, there := object()
			_, elsewhere := object()
			owned := fieldpath.NewSet()
			share := 1 + random.IntN(4)
			there.Union(elsewhere).Iterate(func(path fieldpath.Path) {
				if random.IntN(share) == 0 {
					owned.Insert(path.Copy())
				}
			})
			raw, err := owned.ToJSON()
			if err != nil {
				t.Fatal(err)
			}
			live.SetManagedFields([]metav1.ManagedFieldsEntry{{
				Manager: "us", Operation: metav1.ManagedFieldsOperationApply, Subresource: subresource, APIVersion: kind.GroupVersion().String(),
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw)),
			}})
			compared++
			want, wantErr := generated(live, "us")
			got, gotErr := extract(live, "us")
			if (wantErr == nil) != (gotErr == nil) {
				t.Fatalf("error %v, client-go's is %v, of\n%s", gotErr, wantErr, raw)
			}
			if wantErr != nil {
				failed++
				return
			}
			if diff := cmp.Diff(encode(t, want), encode(t, got)); diff != "" {
				t.Fatalf("another configuration (-client-go +ours), of\n%s\n%s", raw, diff)
			}
		})
		if failed == compared {
			t.Errorf("%d objects were compared, of %d of them nothing can be extracted", compared, failed)
		}
	}
}

func encode(t *rapid.T, value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
