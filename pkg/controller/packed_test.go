// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/inventory"
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
	all[managers.MCPServer.Kind] = newServer("web")
	all[podKind.Kind] = proxyPod("web", map[string]string{"a": "b"})
	items, got := map[schema.GroupKind]*packed{}, map[schema.GroupKind]metav1.Object{}
	for kind := range newMessage {
		item, err := pack(all[kind.Kind].DeepCopyObject())
		if err != nil {
			t.Fatal(err)
		}
		items[kind] = item.(*packed)
	}
	for range 2 {
		for kind, item := range items {
			var err error
			if got[kind], err = item.unpack(kind); err != nil {
				t.Fatal(err)
			}
		}
		// Not before all are unpacked: none may refer to what the next one is unpacked into.
		for kind, object := range got {
			if diff := cmp.Diff(all[kind.Kind], object.(runtime.Object)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", kind, diff)
			}
		}
	}
	if len(newMessage) != len(inventory.Kinds())+2 {
		t.Errorf("%d kinds can be packed; there are MCPServers, pods, and children of %d kinds", len(newMessage), len(inventory.Kinds()))
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

// The first object of a kind is new when it is seen first. What comes later of it is in all the others as well.
// TestPackingKeepsWhatAnMCPServerLost: fields that were dropped when it was read stay known as dropped.
func TestPackingKeepsWhatAnMCPServerLost(t *testing.T) {
	want := newServer("web")
	want.Spec.UnknownFields, want.Spec.Malformed = []string{"sessionStorage.tls", "later"}, "proxyPort is of type string"
	item, err := packing(t)(want.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	got, err := item.(*packed).unpack(managers.MCPServer)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.(*v1beta1.MCPServer)); diff != "" {
		t.Errorf("MCPServer (-want +got):\n%s", diff)
	}
}

func TestPackingLearnsHowObjectsGrow(t *testing.T) {
	p, err := newPacker()
	if err != nil {
		t.Fatal(err)
	}
	size := func(number, conditions int) int {
		d := &appsv1.Deployment{ObjectMeta: heavy()}
		d.Name, d.UID = fmt.Sprint("web-", number), types.UID(fmt.Sprint(number))
		for i := range conditions {
			d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{
				Type: appsv1.DeploymentConditionType(fmt.Sprint("Condition", i)), Message: fmt.Sprintf("is about %x", sha256.Sum256([]byte{byte(i)})),
			})
		}
		item, err := p.pack(d, true)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := item.unpack(managers.Deployment); err != nil || !cmp.Equal(metav1.Object(d), got) {
			t.Errorf("it is unpacked as %v, %v", got, err)
		}
		return len(item.part(partContent))
	}
	size(1, 0)
	strange := size(2, 5)
	grown := size(1, 5)
	known := size(3, 5)
	t.Logf("%d bytes when nothing of it is known, %d bytes of the object to learn from, %d bytes of the next", strange, grown, known)
	if known > strange/4 || grown > strange/4 {
		t.Errorf("%d and %d bytes, want at most a quarter of %d", grown, known, strange)
	}
	before := p.dictionary
	for i := range 3 * maxLessons {
		size(1, 5+i)
	}
	if count := p.lessons["*v1.Deployment"].count; count != maxLessons || p.dictionary == before {
		t.Errorf("%d lessons, want %d", count, maxLessons)
	}
	if len(*p.dictionary) > maxDictionary {
		t.Errorf("the dictionary has %d bytes, want at most %d", len(*p.dictionary), maxDictionary)
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
	item := &packed{text: "webnever deflated", ends: [partContent]uint16{3, 3, 3, 3}, dictionary: new([]byte)}
	if got, err := item.unpack(managers.Role); err == nil {
		t.Errorf("got %v", got)
	}
	if got, err := item.unpack(managers.MCPServer); err == nil {
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
				got, err := item.(*packed).unpack(managers.ServiceKind)
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
		if _, err := p.pack(whole, true); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnpack(b *testing.B) {
	p, err := newPacker()
	if err != nil {
		b.Fatal(err)
	}
	item, err := p.pack(kinds(heavy(), true)["Service"].(message), true)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := item.unpack(managers.ServiceKind); err != nil {
			b.Fatal(err)
		}
	}
}
