// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// lockMessage is what an API server says when a resourceVersion is not the live one.
const lockMessage = "the object has been modified; please apply your changes to the latest version and try again"

// Server is an API server in memory. Its exported functions may be called at any time, but those that are set are set before
// the first request.
type Server struct {
	// Admit, if set, is asked before an object is stored or deleted, as admission plugins and webhooks are: it may modify the
	// object, which is nil for a deletion, or refuse it. Old is nil for a creation. No other request is carried out meanwhile.
	Admit func(r *Request, obj, old runtime.Object) error
	// Webhook, if set, is asked as well, and may be another one for each request.
	Webhook *SlowWebhook
	// Committed, if set, is called with every change, in the order of their resourceVersions. Obj is the last state for one that
	// has ended. It must not modify them.
	Committed func(r *Request, change watch.EventType, obj, old runtime.Object)
	// TimeOut is set where a watch that begins ends when the time is over that its client asks for. client-go draws it by chance.
	TimeOut bool
	// Evict, if set, is asked before a pod is evicted, as disruption budgets are.
	Evict func(pod runtime.Object) error

	kinds map[schema.GroupVersionResource]*Kind

	mu sync.Mutex
	// told is sent to when there is a new version.
	told    *sync.Cond
	version uint64
	uids    int
	// floor is the version below which watches cannot begin.
	floor   uint64
	objects map[*Kind]map[types.NamespacedName]*object
	// ordered are the objects in the order of their keys.
	ordered map[*Kind][]*object
	// lists are what List returns of kinds of which nothing has changed since.
	lists map[*Kind][]runtime.Object
	// changes are all that have been since floor.
	changes []change
	watches []*Watch
}

// object is what is stored. It is not modified.
type object struct {
	live    runtime.Object
	version uint64
	// encoded is the JSON of live; nil until a client asks for it.
	encoded []byte
}

// change is what became of an object.
type change struct {
	kind *Kind
	// before and after are nil for a creation and an end.
	before, after *object
	version       uint64
	// ended is the last state of an object that has ended, with the version of its end.
	ended *object
}

// New returns a server of some kinds without objects.
func New(kinds ...*Kind) (*Server, error) {
	s := &Server{
		kinds: map[schema.GroupVersionResource]*Kind{}, objects: map[*Kind]map[types.NamespacedName]*object{},
		ordered: map[*Kind][]*object{}, lists: map[*Kind][]runtime.Object{},
		version: 1000, floor: 1000, // as on a server that has been there for a while
	}
	s.told = sync.NewCond(&s.mu)
	for _, kind := range kinds {
		if kind.managers == nil {
			if err := kind.Prepare(); err != nil {
				return nil, err
			}
		}
		for _, version := range kind.served() {
			s.kinds[schema.GroupVersionResource{Group: kind.Group, Version: version, Resource: kind.Resource}] = kind
		}
		s.objects[kind] = map[types.NamespacedName]*object{}
	}
	return s, nil
}

func (s *Server) kind(group, version, resource string) *Kind {
	return s.kinds[schema.GroupVersionResource{Group: group, Version: version, Resource: resource}]
}

// KindOf returns the kind of an object; nil for one that is not served.
func (s *Server) KindOf(group, kind string) *Kind {
	for _, k := range s.kinds {
		if k.Group == group && k.Kind == kind {
			return k
		}
	}
	return nil
}

// Get returns an object, which must not be modified.
func (s *Server) Get(k *Kind, namespace, name string) (runtime.Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.objects[k][types.NamespacedName{Namespace: namespace, Name: name}]
	if found == nil {
		return nil, false
	}
	return found.live, true
}

// List returns the objects of a kind, in the order of their names. Neither they nor the list may be modified. As long as nothing
// of the kind changes, it is the same list.
func (s *Server) List(k *Kind) []runtime.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, kept := s.lists[k]
	if !kept {
		list = make([]runtime.Object, len(s.ordered[k]))
		for i, o := range s.ordered[k] {
			list[i] = o.live
		}
		s.lists[k] = list
	}
	return list
}

// place returns where the object of a key is among the ordered, or belongs.
func (s *Server) place(k *Kind, key types.NamespacedName) (int, bool) {
	return slices.BinarySearchFunc(s.ordered[k], key, func(o *object, key types.NamespacedName) int {
		return strings.Compare(keyOf(o.live).String(), key.String()) // as etcd orders keys
	})
}

// Version returns the newest resourceVersion.
func (s *Server) Version() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Put stores an object as it is, with managedFields and status, as a restored backup or a recording: it gets a
// resourceVersion, and a UID if it has none. Nobody is asked, and the object must not be modified afterwards.
func (s *Server) Put(k *Kind, obj runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := access(obj)
	obj.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	if m.GetUID() == "" {
		m.SetUID(s.newUID())
	}
	s.commit(&Request{Client: "recording", Verb: "create", Kind: k}, keyOf(obj), obj)
}

// Compact forgets the changes so far: a watch that has to begin earlier is answered that its version has expired.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.floor, s.changes = s.version, nil
}

// CutWatches ends all watches, as a server that restarts does. What clients have not been given they do not get this way.
func (s *Server) CutWatches() {
	for _, w := range s.Watches() {
		w.Cut()
	}
}

// Watches returns those that are open, in the order in which they began.
func (s *Server) Watches() []*Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches = slices.DeleteFunc(s.watches, (*Watch).isClosed)
	return slices.Clone(s.watches)
}

func keyOf(obj runtime.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: access(obj).GetNamespace(), Name: access(obj).GetName()}
}

func (s *Server) newUID() types.UID {
	s.uids++
	return types.UID(fmt.Sprintf("uid-%06d", s.uids))
}

// create stores an object that is new. The caller has the lock.
func (s *Server) create(r *Request, obj runtime.Object) (*object, error) {
	m := access(obj)
	if m.GetNamespace() == "" {
		m.SetNamespace(r.Namespace)
	}
	if m.GetNamespace() != r.Namespace || m.GetName() != r.Name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object is %s, and the URL is of %s/%s", keyOf(obj), r.Namespace, r.Name))
	}
	if err := s.checkNamespace(r); err != nil {
		return nil, err
	}
	if s.objects[r.Kind][keyOf(obj)] != nil {
		return nil, apierrors.NewAlreadyExists(r.Kind.GroupResource(), m.GetName())
	}
	obj.GetObjectKind().SetGroupVersionKind(r.Kind.GroupVersionKind)
	m.SetUID(s.newUID())
	m.SetCreationTimestamp(now())
	m.SetDeletionTimestamp(nil)
	m.SetDeletionGracePeriodSeconds(nil)
	m.SetResourceVersion("")
	m.SetGeneration(0)
	begin(obj)
	if s.Admit != nil {
		if err := s.Admit(r, obj, nil); err != nil {
			return nil, err
		}
	}
	if err := r.Kind.Strategy.Create(obj); err != nil {
		return nil, err
	}
	if r.DryRun() {
		return &object{live: obj}, nil
	}
	return s.commit(r, keyOf(obj), obj), nil
}

// update stores a changed object, or removes it when it is being deleted and no finalizer holds it. The caller has the lock.
func (s *Server) update(r *Request, before *object, obj runtime.Object) (*object, error) {
	next, live := access(obj), access(before.live)
	if version := next.GetResourceVersion(); version != "" && version != "0" && version != live.GetResourceVersion() {
		return nil, apierrors.NewConflict(r.Kind.GroupResource(), r.Name, errors.New(lockMessage))
	}
	if uid := next.GetUID(); uid != "" && uid != live.GetUID() {
		return nil, immutable(r, "metadata.uid", string(uid))
	}
	obj.GetObjectKind().SetGroupVersionKind(r.Kind.GroupVersionKind)
	next.SetUID(live.GetUID())
	next.SetResourceVersion(live.GetResourceVersion())
	next.SetGeneration(live.GetGeneration())
	next.SetCreationTimestamp(live.GetCreationTimestamp())
	next.SetDeletionTimestamp(live.GetDeletionTimestamp())
	next.SetDeletionGracePeriodSeconds(live.GetDeletionGracePeriodSeconds())
	if s.Admit != nil {
		if err := s.Admit(r, obj, before.live); err != nil {
			return nil, err
		}
	}
	if err := r.Kind.Strategy.Update(r.Subresource, obj, before.live); err != nil {
		return nil, err
	}
	switch {
	case equality.Semantic.DeepEqual(obj, before.live):
		return before, nil
	case r.DryRun():
		return &object{live: obj}, nil
	case s.ends(obj):
		s.end(r, before)
		// An API server answers with the version before the end.
		return &object{live: obj, version: before.version}, nil
	}
	return s.commit(r, keyOf(obj), obj), nil
}

// commit stores an object as the next version.
func (s *Server) commit(r *Request, key types.NamespacedName, obj runtime.Object) *object {
	s.version++
	access(obj).SetResourceVersion(strconv.FormatUint(s.version, 10))
	before, after := s.objects[r.Kind][key], &object{live: obj, version: s.version}
	s.objects[r.Kind][key] = after
	if i, found := s.place(r.Kind, key); found {
		s.ordered[r.Kind][i] = after
	} else {
		s.ordered[r.Kind] = slices.Insert(s.ordered[r.Kind], i, after)
	}
	s.tell(r, change{kind: r.Kind, before: before, after: after, version: s.version})
	return after
}

// end removes an object.
func (s *Server) end(r *Request, before *object) {
	key := keyOf(before.live)
	delete(s.objects[r.Kind], key)
	if i, found := s.place(r.Kind, key); found {
		s.ordered[r.Kind] = slices.Delete(s.ordered[r.Kind], i, i+1)
	}
	s.version++
	last := before.live.DeepCopyObject()
	access(last).SetResourceVersion(strconv.FormatUint(s.version, 10))
	s.tell(r, change{kind: r.Kind, before: before, version: s.version, ended: &object{live: last, version: s.version}})
}

// tell records a change and tells the watches.
func (s *Server) tell(r *Request, c change) {
	s.changes = append(s.changes, c)
	delete(s.lists, c.kind)
	s.told.Broadcast()
	for _, w := range s.watches {
		w.see(c)
	}
	if s.Committed == nil {
		return
	}
	switch {
	case c.before == nil:
		s.Committed(r, watch.Added, c.after.live, nil)
	case c.after == nil:
		s.Committed(r, watch.Deleted, c.ended.live, c.before.live)
	default:
		s.Committed(r, watch.Modified, c.after.live, c.before.live)
	}
}

// now is the time to the second, as it is stored.
func now() metav1.Time { return metav1.NewTime(time.Now().Truncate(time.Second)) }
