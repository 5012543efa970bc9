// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

// Unchanged reports whether an object already matches the intent of a request, as far as the request and the request
// cache show: Sync would send nothing for its content. It does not modify the request, and sends nothing.
func (a *Applier) Unchanged(w Writer, req Request) bool { return w.same(a.requests, req) }

func (w *writer[L, A]) same(requests *requestCache, req Request) bool {
	a, begun := w.rehearse(requests, req)
	if !begun || a.out.Live == nil || a.State == nil || w.succeeding(a) {
		return false
	}
	if w.stands(a) {
		return true
	}
	claim := a.State.claim(w.manager.Name)
	if claim == nil || a.State.damaged || w.canonicalise(a) != nil {
		return false
	}
	owned, err := w.ownsWanted(a, claim)
	return err == nil && owned
}

// LastRefusal returns the refusal with which the last attempt to write the intent of a request ended, nil for none, and whether it
// stands: Sync would answer with it, and send nothing. It does not modify the request, and sends nothing.
func (a *Applier) LastRefusal(w Writer, req Request) (stands bool, refusal error) {
	return w.lastRefusal(a.requests, req)
}

func (w *writer[L, A]) lastRefusal(requests *requestCache, req Request) (stands bool, refusal error) {
	a, begun := w.rehearse(requests, req)
	if !begun || a.last.refused == nil {
		return false, nil
	}
	return w.held(a), a.last.refused.err
}

// rehearse begins an attempt of which nothing is sent; begun is false where Sync would refuse the request at once.
func (w *writer[L, A]) rehearse(requests *requestCache, req Request) (a *attempt[L, A], begun bool) {
	req, err := w.withOwnIntent(req)
	if err != nil {
		return nil, false
	}
	a, err = w.begin(requests, req)
	return a, err == nil
}
