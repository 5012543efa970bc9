// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/vocabulary"
)

const (
	// packingLevel is the fastest one at which Go's deflate uses a dictionary.
	packingLevel = 2
	// maxDictionary is how far back deflate can refer, in bytes.
	maxDictionary = 32 << 10
)

// packed is an object as a cache holds it: in its wire format, deflated. The caches hold every object for hours and
// look at it for moments. Decoded, the ten children of an MCPServer take 38 KiB in hundreds of pieces, each of which
// the garbage collector follows again and again; packed they take 3 KiB in a few.
type packed struct {
	name, namespace string
	uid             types.UID
	version         string
	content         []byte
	// dictionary is shared by many objects.
	dictionary []byte
}

// GetObjectMeta implements metav1.ObjectMetaAccessor. It tells as much as informers and event handlers ask for.
func (p *packed) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: p.name, Namespace: p.namespace, UID: p.uid, ResourceVersion: p.version}
}

// message is an object that knows its wire format.
type message interface {
	metav1.Object
	Marshal() ([]byte, error)
	Unmarshal(content []byte) error
}

// serverMessage is an MCPServer, whose wire format is JSON, as a message.
type serverMessage struct{ *v1beta1.MCPServer }

// Marshal implements message.
func (m serverMessage) Marshal() ([]byte, error) { return json.Marshal(m.MCPServer) }

// Unmarshal implements message.
func (m serverMessage) Unmarshal(content []byte) error { return json.Unmarshal(content, m.MCPServer) }

// newMessage makes an empty object of each kind that is packed.
var newMessage = map[schema.GroupKind]func() message{
	vocabulary.MCPServer:      func() message { return serverMessage{&v1beta1.MCPServer{}} },
	vocabulary.Deployment:     func() message { return &appsv1.Deployment{} },
	vocabulary.StatefulSet:    func() message { return &appsv1.StatefulSet{} },
	vocabulary.ServiceKind:    func() message { return &corev1.Service{} },
	vocabulary.ConfigMap:      func() message { return &corev1.ConfigMap{} },
	vocabulary.ServiceAccount: func() message { return &corev1.ServiceAccount{} },
	vocabulary.Role:           func() message { return &rbacv1.Role{} },
	vocabulary.RoleBinding:    func() message { return &rbacv1.RoleBinding{} },
	podKind:                   func() message { return &corev1.Pod{} },
}

// packer packs objects. All informers share one: it takes a megabyte.
type packer struct {
	mu       sync.Mutex
	deflater *flate.Writer
	deflated bytes.Buffer
	// dictionary is made of the first whole object of each kind, told by their types. Objects of a kind differ in a
	// few values and hardly in their fields, which are most of what there is to pack.
	dictionary []byte
	learned    map[string]bool
}

func newPacker() (*packer, error) {
	deflater, err := flate.NewWriter(io.Discard, packingLevel)
	return &packer{deflater: deflater, learned: map[string]bool{}}, err
}

// after returns a cache.TransformFunc that packs what another one leaves of an object. Anything but an object, such
// as the note that one is gone, stays as it is.
func (p *packer) after(transform func(any) (any, error)) func(any) (any, error) {
	return func(obj any) (any, error) {
		obj, err := transform(obj)
		if err != nil {
			return obj, err
		}
		switch whole := obj.(type) {
		case *v1beta1.MCPServer:
			return p.pack(serverMessage{whole})
		case message:
			return p.pack(whole)
		default:
			return obj, nil
		}
	}
}

func (p *packer) pack(whole message) (*packed, error) {
	content, err := whole.Marshal()
	if err != nil {
		return nil, fmt.Errorf("cannot encode %T %s: %w", whole, whole.GetName(), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.learn(whole, content); err != nil {
		return nil, err
	}
	p.deflated.Reset()
	p.deflater.Reset(&p.deflated)
	if _, err = p.deflater.Write(content); err == nil {
		err = p.deflater.Close()
	}
	return &packed{
		name: whole.GetName(), namespace: whole.GetNamespace(), uid: whole.GetUID(), version: whole.GetResourceVersion(),
		content: bytes.Clone(p.deflated.Bytes()), dictionary: p.dictionary,
	}, err
}

// learn adds the first object of a kind that is kept whole to the dictionary. What was reduced to its identity, and
// so has no managedFields, would teach nothing.
func (p *packer) learn(whole message, content []byte) (err error) {
	kind := fmt.Sprintf("%T", whole)
	if p.learned[kind] || len(whole.GetManagedFields()) == 0 || len(p.dictionary)+len(content) > maxDictionary {
		return nil
	}
	p.learned[kind] = true
	// What is packed already refers to the dictionary as it was.
	p.dictionary = slices.Concat(p.dictionary, content)
	p.deflater, err = flate.NewWriterDict(&p.deflated, packingLevel, p.dictionary)
	return err
}

// packedPod is a pod as a cache holds it, and the MCPServer that it was made for, by which it is found.
type packedPod struct {
	*packed
	server cache.ObjectName
}

// pods returns a cache.TransformFunc that packs what another one leaves of a pod.
func (p *packer) pods(transform cache.TransformFunc) cache.TransformFunc {
	return func(obj any) (any, error) {
		obj, err := transform(obj)
		pod, ok := obj.(*corev1.Pod)
		if err != nil || !ok {
			return obj, err
		}
		content, err := p.pack(pod)
		return &packedPod{content, podKey(pod)}, err
	}
}

// unpackPods returns pods that a cache holds. What is no pod is left out.
func unpackPods(items []any) []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(items))
	for _, item := range items {
		found, ok := item.(*packedPod)
		if !ok {
			continue
		}
		whole, err := found.unpack(podKind)
		if err != nil {
			utilruntime.HandleError(err)
			continue
		}
		if pod, ok := whole.(*corev1.Pod); ok {
			pods = append(pods, pod)
		}
	}
	return pods
}

// inflaters are readers of deflated content, of 40 KiB each, that nobody uses at the moment.
var inflaters = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)) }}

// unpack returns the object, which is of the given kind.
func (p *packed) unpack(kind schema.GroupKind) (metav1.Object, error) {
	empty, ok := newMessage[kind]
	if !ok {
		return nil, fmt.Errorf("no cache holds any %s", kind)
	}
	inflater := inflaters.Get().(io.ReadCloser)
	defer inflaters.Put(inflater)
	if err := inflater.(flate.Resetter).Reset(bytes.NewReader(p.content), p.dictionary); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(inflater)
	if err != nil {
		return nil, fmt.Errorf("cannot unpack %s %s: %w", kind, p.name, err)
	}
	whole := empty()
	if err := whole.Unmarshal(content); err != nil {
		return nil, fmt.Errorf("cannot decode %s %s: %w", kind, p.name, err)
	}
	if server, ok := whole.(serverMessage); ok {
		return server.MCPServer, nil
	}
	return whole, nil
}
