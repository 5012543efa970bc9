// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/pkg/fieldmanager/vocabulary"
)

func unchanged(obj any) (any, error) { return obj, nil }

func packing(t *testing.T) func(any) (any, error) {
	t.Helper()
	p, err := newPacker()
	if err != nil {
		t.Fatal(err)
	}
	return p.after(unchanged)
}

func TestPackingLosesNothing(t *testing.T) {
	pack := packing(t)
	all := kinds(heavy(), true)
	all[vocabulary.MCPServer.Kind] = newServer("web")
	all[podKind.Kind] = proxyPod("web", map[string]string{"a": "b"})
	for kind := range newMessage {
		whole := all[kind.Kind]
		item, err := pack(whole.DeepCopyObject())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, err := item.(*packed).unpack(kind)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(whole, got.(runtime.Object)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", kind, diff)
			}
		}
	}
	if len(newMessage) != len(affixes)+2 {
		t.Errorf("%d kinds can be packed; there are MCPServers, pods, and children of %d kinds", len(newMessage), len(affixes))
	}
}

func TestInformersCanReadWhatIsPacked(t *testing.T) {
	item, err := packing(t)(&appsv1.Deployment{ObjectMeta: heavy()})
	if err != nil {
		t.Fatal(err)
	}
	key, err := cache.MetaNamespaceKeyFunc(item)
	if key != "shop/web" || err != nil {
		t.Errorf("the key is %q, %v", key, err)
	}
	accessor, err := meta.Accessor(item)
	if err != nil {
		t.Fatal(err)
	}
	if accessor.GetUID() != "1" || accessor.GetResourceVersion() != "7" {
		t.Errorf("got UID %s and version %s", accessor.GetUID(), accessor.GetResourceVersion())
	}
}

func TestPackingLeavesOtherThingsAlone(t *testing.T) {
	pack := packing(t)
	item, err := pack(&corev1.ConfigMap{ObjectMeta: heavy()})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range []any{cache.DeletedFinalStateUnknown{Key: "shop/web", Obj: item}, "text", nil, item} {
		if got, err := pack(obj); err != nil || !cmp.Equal(obj, got, cmp.AllowUnexported(packed{})) {
			t.Errorf("pack(%v) = %v, %v", obj, got, err)
		}
	}
	failing := &packer{}
	if _, err := failing.after(func(any) (any, error) { return nil, fmt.Errorf("no") })(item); err == nil {
		t.Error("the error of the transformation before is lost")
	}
}

func TestWhatCannotBeUnpackedIsAnError(t *testing.T) {
	item := &packed{name: "web", content: []byte("never deflated")}
	if got, err := item.unpack(vocabulary.Role); err == nil {
		t.Errorf("got %v", got)
	}
	if got, err := item.unpack(vocabulary.MCPServer); err == nil {
		t.Errorf("got %v", got)
	}
}

func TestManyPackAndUnpackAtATime(t *testing.T) {
	pack := packing(t)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 50 {
				name := fmt.Sprintf("web-%d-%d", i, j)
				item, err := pack(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}})
				if err != nil {
					t.Error(err)
					return
				}
				got, err := item.(*packed).unpack(vocabulary.ServiceKind)
				if err != nil || got.GetName() != name {
					t.Errorf("%s became %v, %v", name, got, err)
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkPack(b *testing.B) {
	p, err := newPacker()
	if err != nil {
		b.Fatal(err)
	}
	whole := kinds(heavy(), true)["Service"].(message)
	for b.Loop() {
		if _, err := p.pack(whole); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnpack(b *testing.B) {
	p, err := newPacker()
	if err != nil {
		b.Fatal(err)
	}
	item, err := p.pack(kinds(heavy(), true)["Service"].(message))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := item.unpack(vocabulary.ServiceKind); err != nil {
			b.Fatal(err)
		}
	}
}
