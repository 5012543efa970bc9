// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

const (
	// packingLevel is zlib's default. A greater one takes longer and is hardly better.
	packingLevel = 6
	// maxDictionary is how far back deflate can refer, in bytes.
	maxDictionary = 32 << 10
	// newsSize is to how many bytes an object is deflated at least that says something new: what is different each time,
	// such as resourceVersions and times, takes less.
	newsSize = 64
	// maxLessons is how often the packer learns of one kind.
	maxLessons = 8
)

// packed is an object as a cache holds it: in its wire format, deflated. The caches hold every object for hours and
// look at it for moments. Decoded, the ten children of an MCPServer take 38 KiB in hundreds of pieces, each of which
// the garbage collector follows again and again; packed they take less than 3 KiB in a few.
type packed struct {
	// text has all parts, one after the other: strings of their own would take more than what is in them.
	text string
	// ends are where the parts before the content end.
	ends [partContent]uint16
	// dictionary is shared by many objects.
	dictionary *[]byte
}

// The parts of what is packed, in their order.
const (
	partName = iota
	partNamespace
	partUID
	partVersion
	partContent
)

// part returns one of the parts.
func (p *packed) part(i int) string {
	start, end := 0, len(p.text)
	if i > 0 {
		start = int(p.ends[i-1])
	}
	if i < len(p.ends) {
		end = int(p.ends[i])
	}
	return p.text[start:end]
}

// GetObjectMeta implements metav1.ObjectMetaAccessor. It tells as much as informers and event handlers ask for.
func (p *packed) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{
		Name: p.part(partName), Namespace: p.part(partNamespace),
		UID: types.UID(p.part(partUID)), ResourceVersion: p.part(partVersion),
	}
}

// message is an object that knows its wire format.
type message interface {
	metav1.Object
	Marshal() ([]byte, error)
	Unmarshal(content []byte) error
}

// serverMessage is an MCPServer, whose wire format is JSON, as a message.
type serverMessage struct{ *v1beta1.MCPServer }

// packedServer is an MCPServer with what was found out when it was read from the API server, and what its JSON does not
// tell any more.
type packedServer struct {
	*v1beta1.MCPServer
	UnknownFields []string `json:"unknownFields,omitempty"`
	Malformed     string   `json:"malformed,omitempty"`
}

// Marshal implements message.
func (m serverMessage) Marshal() ([]byte, error) {
	return json.Marshal(packedServer{m.MCPServer, m.Spec.UnknownFields, m.Spec.Malformed})
}

// Unmarshal implements message.
func (m serverMessage) Unmarshal(content []byte) error {
	read := packedServer{MCPServer: m.MCPServer}
	if err := json.Unmarshal(content, &read); err != nil {
		return err
	}
	m.Spec.UnknownFields, m.Spec.Malformed = read.UnknownFields, read.Malformed
	return nil
}

// newMessage makes an empty object of each kind that is packed.
var newMessage = map[schema.GroupKind]func() message{
	managers.MCPServer:      func() message { return serverMessage{&v1beta1.MCPServer{}} },
	managers.Deployment:     func() message { return &appsv1.Deployment{} },
	managers.StatefulSet:    func() message { return &appsv1.StatefulSet{} },
	managers.ServiceKind:    func() message { return &corev1.Service{} },
	managers.ConfigMap:      func() message { return &corev1.ConfigMap{} },
	managers.ServiceAccount: func() message { return &corev1.ServiceAccount{} },
	managers.Role:           func() message { return &rbacv1.Role{} },
	managers.RoleBinding:    func() message { return &rbacv1.RoleBinding{} },
	podKind:                 func() message { return &corev1.Pod{} },
}

// packer packs objects. All informers share one: it takes a megabyte.
type packer struct {
	mu       sync.Mutex
	deflater *flate.Writer
	deflated bytes.Buffer
	// dictionary is made of one object of each kind. Objects of a kind differ in a few values and hardly in their fields,
	// which are most of what there is to pack.
	dictionary *[]byte
	// lessons are those objects, by their types.
	lessons map[string]*lesson
}

// lesson is what a packer has learned of a kind: the first object that it has seen, as it was when it last said something
// new. In the beginning an object has neither a status nor those who write it.
type lesson struct {
	object  types.UID
	content []byte
	count   int
}

func newPacker() (*packer, error) {
	deflater, err := flate.NewWriter(io.Discard, packingLevel)
	return &packer{deflater: deflater, dictionary: new([]byte), lessons: map[string]*lesson{}}, err
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
			return p.pack(serverMessage{whole}, true)
		case message:
			// What was reduced to its identity would teach nothing.
			return p.pack(whole, len(whole.GetManagedFields()) > 0)
		default:
			return obj, nil
		}
	}
}

// pack packs an object, which may be one to learn from.
func (p *packer) pack(whole message, teaches bool) (*packed, error) {
	content, err := whole.Marshal()
	if err != nil {
		return nil, fmt.Errorf("cannot encode %T %s: %w", whole, whole.GetName(), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	err = p.deflate(content)
	if err == nil && teaches && p.learn(whole, content) {
		if p.deflater, err = flate.NewWriterDict(io.Discard, packingLevel, *p.dictionary); err == nil {
			err = p.deflate(content)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot pack %T %s: %w", whole, whole.GetName(), err)
	}
	small := &packed{dictionary: p.dictionary}
	var text []byte
	for i, part := range [partContent]string{
		partName: whole.GetName(), partNamespace: whole.GetNamespace(),
		partUID: string(whole.GetUID()), partVersion: whole.GetResourceVersion(),
	} {
		text = append(text, part...)
		small.ends[i] = uint16(len(text)) // The API server allows no name of more than 253 bytes.
	}
	small.text = string(append(text, p.deflated.Bytes()...))
	return small, nil
}

func (p *packer) deflate(content []byte) error {
	p.deflated.Reset()
	p.deflater.Reset(&p.deflated)
	if _, err := p.deflater.Write(content); err != nil {
		return err
	}
	return p.deflater.Close()
}

// learn makes another dictionary if an object, which has just been deflated, has something to add. What is packed already
// refers to the dictionary as it was.
func (p *packer) learn(whole message, content []byte) bool {
	kind := fmt.Sprintf("%T", whole)
	known := p.lessons[kind]
	if known == nil {
		known = &lesson{object: whole.GetUID()}
	} else if known.object != whole.GetUID() || known.count == maxLessons || p.deflated.Len() < newsSize {
		return false
	}
	if len(*p.dictionary)-len(known.content)+len(content) > maxDictionary {
		return false
	}
	known.content, known.count = content, known.count+1
	p.lessons[kind] = known
	var dictionary []byte
	for _, kind := range slices.Sorted(maps.Keys(p.lessons)) {
		dictionary = append(dictionary, p.lessons[kind].content...)
	}
	p.dictionary = &dictionary
	return true
}

// packedPod is a pod as a cache holds it, and its controller, by which it is found.
type packedPod struct {
	*packed
	// controller and controllerName are empty when the pod has none.
	controller     types.UID
	controllerName string
}

// pods returns a cache.TransformFunc that packs what another one leaves of a pod. Of a ReplicaSet it keeps what leads
// from its pods to their Deployment.
func (p *packer) pods(transform cache.TransformFunc) cache.TransformFunc {
	return func(obj any) (any, error) {
		if set, ok := obj.(*appsv1.ReplicaSet); ok {
			return trimReplicaSet(set), nil
		}
		obj, err := transform(obj)
		pod, ok := obj.(*corev1.Pod)
		if err != nil || !ok {
			return obj, err
		}
		content, err := p.pack(pod, true)
		found := &packedPod{packed: content}
		if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
			found.controller, found.controllerName = controller.UID, controller.Name
		}
		return found, err
	}
}

// unpackPods returns pods that a cache holds. One that cannot be decoded is left out, and the error tells of it.
func unpackPods(items []*packedPod) (pods []*corev1.Pod, err error) {
	for _, item := range items {
		whole, broken := item.unpack(podKind)
		if pod, ok := whole.(*corev1.Pod); ok {
			pods = append(pods, pod)
		}
		err = errors.Join(err, broken)
	}
	return pods, err
}

// inflater inflates the content of one object at a time.
type inflater struct {
	// reader takes 40 KiB.
	reader  io.ReadCloser
	content bytes.Buffer
}

// inflaters are those that nobody uses at the moment.
var inflaters = sync.Pool{New: func() any { return &inflater{reader: flate.NewReader(strings.NewReader(""))} }}

// inflate returns what was deflated with the dictionary. It is valid until the next call.
func (i *inflater) inflate(deflated string, dictionary []byte) ([]byte, error) {
	if err := i.reader.(flate.Resetter).Reset(strings.NewReader(deflated), dictionary); err != nil {
		return nil, err
	}
	i.content.Reset()
	_, err := i.content.ReadFrom(i.reader)
	return i.content.Bytes(), err
}

// unpack returns the object, which is of the given kind.
func (p *packed) unpack(kind schema.GroupKind) (metav1.Object, error) {
	empty, ok := newMessage[kind]
	if !ok {
		return nil, fmt.Errorf("no cache holds any %s", kind)
	}
	inflater := inflaters.Get().(*inflater)
	defer inflaters.Put(inflater) // Who decodes the content copies it.
	content, err := inflater.inflate(p.part(partContent), *p.dictionary)
	if err != nil {
		return nil, fmt.Errorf("cannot unpack %s %s: %w", kind, p.part(partName), err)
	}
	whole := empty()
	if err := whole.Unmarshal(content); err != nil {
		return nil, fmt.Errorf("cannot decode %s %s: %w", kind, p.part(partName), err)
	}
	if server, ok := whole.(serverMessage); ok {
		return server.MCPServer, nil
	}
	return whole, nil
}
