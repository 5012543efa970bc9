// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
)

// Answer is what a client gets.
type Answer struct {
	// Code is the HTTP status.
	Code int
	// Header has what the answer says beside its body, such as Retry-After.
	Header http.Header
	// Body of the answer.
	Body []byte
	// Watch is the body instead, if the request was to watch.
	Watch *Watch
	// Broken, if set, is why there is no answer: the connection broke.
	Broken error
	// Torn, if set, is what the client gets where the body ends: the connection broke while the answer was on its way.
	Torn error
}

// Interceptor is between a client and the server. It carries a request out by calling serve, may wait before and after,
// and may answer otherwise.
type Interceptor func(r *Request, serve func() Answer) Answer

// Refuse returns an answer that refuses a request. The error is one of package errors of k8s.io/apimachinery. Any other is one of the API
// server itself, such as that of an apply with a field that its schema does not know: a 500 without a reason.
func Refuse(err error) Answer {
	status := statusOf(err)
	answer := Answer{Code: int(status.Code), Body: encode(status), Header: http.Header{}}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		answer.Header.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	return answer
}

// Denied is the refusal of a webhook. An API server passes on its code, its reason and how many seconds a client is to wait.
func Denied(webhook string, result metav1.Status) error {
	denial := fmt.Sprintf("admission webhook %q denied the request", webhook)
	switch {
	case result.Message != "":
		result.Message = denial + ": " + result.Message
	case result.Reason != "":
		result.Message = denial + ": " + string(result.Reason)
	default:
		result.Message = denial + " without explanation"
	}
	result.Status, result.Code = metav1.StatusFailure, max(result.Code, http.StatusBadRequest)
	return &apierrors.StatusError{ErrStatus: result}
}

func statusOf(err error) *metav1.Status {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return &status
}

// Connect returns the configuration of a client, which is known by its name. Intercept may be nil. With held events the
// client sees nothing but what Watch.Deliver gives it.
func (s *Server) Connect(client string, intercept Interceptor, heldEvents bool) *rest.Config {
	return &rest.Config{
		Host: "http://apiserver.invalid", UserAgent: client, QPS: -1, // as the operator, which leaves it to the API server
		Transport: &transport{s, client, intercept, heldEvents},
		// A client that wants built-in kinds as protobuf, as the operator does, says so.
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON},
	}
}

type transport struct {
	server     *Server
	client     string
	intercept  Interceptor
	heldEvents bool
}

// RoundTrip answers a request.
func (t *transport) RoundTrip(from *http.Request) (*http.Response, error) {
	r, err := t.server.parse(t.client, from)
	if err != nil {
		return nil, err
	}
	serve := func() Answer {
		answer := t.server.serve(r, t.heldEvents)
		if wantsProtobuf(from, r.Kind) {
			return inProtobuf(answer)
		}
		return answer
	}
	var answer Answer
	if t.intercept != nil {
		answer = t.intercept(r, serve)
	} else {
		answer = serve()
	}
	if err := from.Context().Err(); err != nil {
		return nil, err
	}
	if answer.Broken != nil {
		return nil, answer.Broken
	}
	response := &http.Response{
		Status: strconv.Itoa(answer.Code) + " " + http.StatusText(answer.Code), StatusCode: answer.Code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Request: from, ContentLength: int64(len(answer.Body)), Body: io.NopCloser(bytes.NewReader(answer.Body)),
	}
	maps.Copy(response.Header, answer.Header)
	if answer.Torn != nil {
		response.Body, response.ContentLength = io.NopCloser(io.MultiReader(bytes.NewReader(answer.Body), torn{answer.Torn})), -1
	}
	if answer.Watch != nil {
		response.Body, response.ContentLength = answer.Watch, -1
	}
	return response, nil
}

// torn is the end of a body that breaks off.
type torn struct{ err error }

// Read returns why there is no more.
func (t torn) Read([]byte) (int, error) { return 0, t.err }

// serve answers a request.
func (s *Server) serve(r *Request, heldEvents bool) Answer {
	if r.Kind == nil {
		return s.discover(r)
	}
	if instead, ended := s.await(s.Webhook, r); ended {
		return instead
	}
	return s.carryOut(r, heldEvents)
}

// carryOut does so once nothing is to be waited for.
func (s *Server) carryOut(r *Request, heldEvents bool) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found *object
	var err error
	code := http.StatusOK
	switch r.Verb {
	case "list":
		return s.list(r)
	case "watch":
		w, err := s.watch(r, heldEvents)
		if err != nil {
			return Refuse(err)
		}
		return Answer{Code: code, Watch: w}
	case "delete":
		if found, err = s.remove(r); err == nil && found == nil {
			return Answer{Code: code, Body: encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
				Details: &metav1.StatusDetails{Name: r.Name, Group: r.Kind.Group, Kind: r.Kind.Resource},
			})}
		}
	case "get":
		if err = s.awaitVersion(r); err != nil {
			break
		}
		if found, err = s.find(r); err == nil && r.Subresource == "scale" && r.Kind.scale != nil {
			found = &object{live: r.Kind.scaleOf(found.live)}
		}
	case "create":
		code = http.StatusCreated
		found, err = s.post(r)
	case "apply":
		var created bool
		if found, created, err = s.apply(r); created {
			code = http.StatusCreated
		}
	default:
		found, err = s.change(r)
	}
	if err != nil {
		return Refuse(err)
	}
	return Answer{Code: code, Body: r.Kind.in(r.Version, found.json())}
}

// discover answers what is about no object. A resource that is missing from a version that is served is not found with a Status, which names
// nothing.
func (s *Server) discover(r *Request) Answer {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	for gvr, kind := range s.kinds {
		path := "/apis/" + gvr.GroupVersion().String()
		if gvr.Group == "" {
			path = "/api/" + gvr.Version
		}
		if strings.HasPrefix(r.Path, path+"/") {
			return Refuse(&apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{},
				Message: "the server could not find the requested resource",
			}})
		}
		if r.Verb == "get" && r.Path == path {
			list.GroupVersion = gvr.GroupVersion().String()
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: kind.Resource, Kind: kind.Kind, Namespaced: !kind.ClusterScoped,
				Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"},
			})
		}
	}
	if list.GroupVersion != "" {
		return Answer{Code: http.StatusOK, Body: encode(list)}
	}
	return Answer{Code: http.StatusNotFound, Body: []byte("404 page not found\n"), Header: http.Header{"Content-Type": {"text/plain"}}}
}

func (s *Server) find(r *Request) (*object, error) {
	found := s.objects[r.Kind][types.NamespacedName{Namespace: r.Namespace, Name: r.Name}]
	if found == nil {
		return nil, apierrors.NewNotFound(r.Kind.GroupResource(), r.Name)
	}
	return found, nil
}

// decode reads an object from the body of a request.
func (r *Request) decode() (runtime.Object, error) {
	obj := r.Kind.New()
	if err := into(obj, r.Body); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	obj.GetObjectKind().SetGroupVersionKind(r.gvk())
	access(obj).SetNamespace(r.Namespace)
	r.Kind.Strategy.Default(obj)
	return obj, nil
}

// into decodes JSON into an object.
func into(obj runtime.Object, body []byte) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.UnmarshalJSON(body)
	}
	return json.Unmarshal(body, obj)
}

func (s *Server) post(r *Request) (*object, error) {
	if r.Subresource == "eviction" {
		return s.evict(r)
	}
	obj, err := r.decode()
	if err != nil {
		return nil, err
	}
	m := access(obj)
	if m.GetName() == "" && m.GetGenerateName() != "" {
		m.SetName(m.GetGenerateName() + strconv.Itoa(s.uids+1))
	}
	r.Name = m.GetName()
	managed, err := r.manage().Update(r.written(r.Kind.New()), obj, r.Manager)
	if err != nil {
		return nil, err
	}
	return s.create(r, managed)
}

// apply carries out a server-side apply, which creates an object that does not exist.
func (s *Server) apply(r *Request) (found *object, created bool, err error) {
	before := s.objects[r.Kind][types.NamespacedName{Namespace: r.Namespace, Name: r.Name}]
	if before != nil || r.Subresource != "" {
		found, err = s.change(r)
		return found, false, err
	}
	body, err := r.applied()
	if err != nil {
		return nil, false, err
	}
	if body.GetUID() != "" {
		return nil, false, apierrors.NewConflict(r.Kind.GroupResource(), r.Name,
			fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", body.GetUID()))
	}
	empty := r.Kind.New()
	empty.GetObjectKind().SetGroupVersionKind(r.gvk())
	obj, err := r.manage().Apply(empty, body, r.Manager, r.Force)
	if err != nil {
		return nil, false, err
	}
	found, err = s.create(r, obj)
	return found, true, err
}

// applied reads the body of an apply.
func (r *Request) applied() (*unstructured.Unstructured, error) {
	body := &unstructured.Unstructured{}
	if err := body.UnmarshalJSON(r.Body); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return body, nil
}

// change carries out an update, a patch, or an apply of an object that exists.
func (s *Server) change(r *Request) (*object, error) {
	before, err := s.find(r)
	if err != nil {
		return nil, err
	}
	if r.Subresource != "scale" || r.Kind.scale == nil {
		obj, err := r.changed(before.live)
		if err != nil {
			return nil, err
		}
		return s.update(r, before, obj)
	}
	ofScale := *r
	ofScale.Kind, ofScale.Version = r.Kind.scale, ""
	obj, err := r.Kind.scaled(before.live, ofScale.changed)
	if err != nil {
		return nil, err
	}
	after, err := s.update(r, before, obj)
	if err != nil {
		return nil, err
	}
	return &object{live: r.Kind.scaleOf(after.live)}, nil
}

// changed returns what a request makes of an object, which gives its manager what is changed.
func (r *Request) changed(live runtime.Object) (obj runtime.Object, err error) {
	switch r.Verb {
	case "apply":
		body, err := r.applied()
		if err != nil {
			return nil, err
		}
		obj, err := r.manage().Apply(r.written(live), body, r.Manager, r.Force)
		if err != nil {
			return nil, err
		}
		// The manager keeps what identifies the live object; the client's own preconditions are in the body.
		access(obj).SetUID(body.GetUID())
		access(obj).SetResourceVersion(body.GetResourceVersion())
		return obj, nil
	case "update":
		obj, err = r.decode()
	default:
		obj, err = r.patched(r.written(live))
	}
	if err != nil {
		return nil, err
	}
	return r.manage().UpdateNoErrors(r.written(live), obj, r.Manager), nil
}

// patched returns what a JSON patch or a merge patch makes of an object.
func (r *Request) patched(live runtime.Object) (runtime.Object, error) {
	var patched []byte
	switch r.PatchType {
	case types.JSONPatchType:
		patch, err := jsonpatch.DecodePatch(r.Body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if patched, err = patch.Apply(encode(live)); err != nil {
			return nil, apierrors.NewGenericServerResponse(
				http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
		}
	case types.MergePatchType:
		var err error
		if patched, err = jsonpatch.MergePatch(encode(live), r.Body); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	default:
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
			Message: fmt.Sprintf("the body of the request was in an unknown format: %s", r.PatchType),
		}}
	}
	obj := r.Kind.New()
	if err := into(obj, patched); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	r.Kind.Strategy.Default(obj)
	return obj, nil
}

// immutable is the refusal of a change of a field that cannot be changed.
func immutable(r *Request, path, value string) error {
	return apierrors.NewInvalid(r.Kind.GroupKind(), r.Name, field.ErrorList{
		field.Invalid(field.NewPath(path), value, "field is immutable"),
	})
}
