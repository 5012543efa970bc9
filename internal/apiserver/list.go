// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// freshWait is how long a read waits for a version that is yet to come, as in k8s.io/apiserver.
const freshWait = 3 * time.Second

// version reads the resourceVersion of a read; 0 for none.
func (r *Request) version() (uint64, error) {
	text := r.Query.Get("resourceVersion")
	if text == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: resourceVersion: Invalid value: %q: %v", text, err))
	}
	return version, nil
}

// awaitVersion waits until the server has the version that a read must not be older than. The caller has the lock, which is free meanwhile.
func (s *Server) awaitVersion(r *Request) error {
	version, err := r.version()
	if err != nil || version <= s.version {
		return err
	}
	over := false
	wake := func(set *bool) func() {
		return func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			*set = true
			s.told.Broadcast()
		}
	}
	defer time.AfterFunc(freshWait, wake(&over)).Stop()
	defer context.AfterFunc(r.ctx, wake(&over))()
	for version > s.version {
		if over {
			err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", version, s.version), 1)
			err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
			return err
		}
		s.told.Wait()
	}
	return nil
}

// continuation is where a list goes on: after an object, in the state in which it began.
type continuation struct {
	Version uint64 `json:"rv"`
	After   string `json:"start"`
}

func (c continuation) String() string { return base64.RawURLEncoding.EncodeToString(encode(c)) }

// list answers with the objects of a kind; with no more than the limit, and how to continue.
func (s *Server) list(r *Request) Answer {
	selection, err := r.selection()
	if err != nil {
		return Refuse(err)
	}
	limit, from, err := s.pageOf(r)
	if err != nil {
		return Refuse(err)
	}
	items, metadata, left := []json.RawMessage{}, map[string]any{"resourceVersion": strconv.FormatUint(from.Version, 10)}, 0
	for _, o := range s.at(r.Kind, from.Version) {
		name := keyOf(o.live).String()
		switch {
		case name <= from.After && from.After != "" || !selection.has(access(o.live)):
		case limit > 0 && len(items) == limit:
			left++
		default:
			items = append(items, r.Kind.in(r.Version, r.Kind.item(o)))
			if len(items) == limit {
				from.After = name
			}
		}
	}
	if left > 0 {
		metadata["continue"] = from.String()
		if r.Selects() == "" {
			metadata["remainingItemCount"] = left
		}
	}
	return Answer{Code: http.StatusOK, Body: encode(map[string]any{
		"apiVersion": r.gvk().GroupVersion().String(), "kind": r.Kind.Kind + "List", "metadata": metadata, "items": items,
	})}
}

// item encodes an object of a list. Built-in kinds leave out there what they are.
func (k *Kind) item(o *object) []byte {
	if left, ok := bytes.CutPrefix(o.json(), fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, k.Kind, k.GroupVersion())); ok {
		return append([]byte("{"), left...)
	}
	return o.json()
}

// pageOf returns how many objects a list has at most, 0 for all, and where it begins.
func (s *Server) pageOf(r *Request) (limit int, from continuation, err error) {
	if limit, _ = strconv.Atoi(r.Query.Get("limit")); r.Query.Get("resourceVersion") == "0" {
		limit = 0 // It comes from a cache, as a whole.
	}
	if text := r.Query.Get("continue"); text != "" {
		decoded, err := base64.RawURLEncoding.DecodeString(text)
		if err == nil {
			err = json.Unmarshal(decoded, &from)
		}
		if err != nil {
			return 0, from, apierrors.NewBadRequest("invalid continue token: continue key is not valid: " + err.Error())
		}
	} else if from.Version, err = s.stateOf(r, limit); err != nil {
		return 0, from, err
	}
	if from.Version < s.floor {
		return 0, from, apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result.")
	}
	return limit, from, nil
}

// stateOf returns the version of the state that a list shows, which it may have to wait for: an exact one, or the newest one.
func (s *Server) stateOf(r *Request, limit int) (uint64, error) {
	if err := s.awaitVersion(r); err != nil {
		return 0, err
	}
	version, err := r.version()
	match := metav1.ResourceVersionMatch(r.Query.Get("resourceVersionMatch"))
	if match == metav1.ResourceVersionMatchExact || match == "" && limit > 0 && version > 0 {
		return version, err
	}
	return s.version, err
}

// at returns the objects of a kind as they were at a version, in their order.
func (s *Server) at(k *Kind, version uint64) []*object {
	if version == s.version {
		return s.ordered[k]
	}
	state := map[types.NamespacedName]*object{}
	for _, o := range s.ordered[k] {
		state[keyOf(o.live)] = o
	}
	for _, c := range slices.Backward(s.changes) {
		switch {
		case c.version <= version || c.kind != k:
		case c.before == nil:
			delete(state, keyOf(c.after.live))
		default:
			state[keyOf(c.before.live)] = c.before
		}
	}
	var objects []*object
	for _, o := range state {
		objects = append(objects, o)
	}
	slices.SortFunc(objects, func(a, b *object) int { return strings.Compare(keyOf(a.live).String(), keyOf(b.live).String()) })
	return objects
}
