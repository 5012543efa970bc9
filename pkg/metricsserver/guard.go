// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package metricsserver

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// allowedFor is how long a permission holds without asking again: a user who has lost it may go on reading for that long.
	allowedFor = time.Minute
	// refusedFor is how long a refusal holds; shorter, so that a permission just given is soon of use.
	refusedFor = 10 * time.Second
	// maxRemembered bounds the memory that tokens which mean nothing can take.
	maxRemembered = 1024
	// maxReviews is how many requests may ask the API server at a time; others wait.
	maxReviews = 4
	// reviewTimeout bounds the wait for the API server.
	reviewTimeout = 10 * time.Second
)

// Reviewer are the two questions that the API server is asked; a kubernetes.Interface has both.
type Reviewer interface {
	AuthenticationV1() authenticationclient.AuthenticationV1Interface
	AuthorizationV1() authorizationclient.AuthorizationV1Interface
}

// verdict is the result of a review of a token, as the HTTP status of an answer.
type verdict struct {
	code   int
	reason string
}

// question is what a verdict is about. The token itself is not kept.
type question struct {
	token      [sha256.Size]byte
	path, verb string
}

// guard is the http.Handler that Protect returns.
type guard struct {
	next     http.Handler
	reviewer Reviewer
	verdicts *cache.LRUExpireCache
	reviews  chan struct{}
}

// Protect returns a handler that passes a request to the next one if the user of its bearer token may use the request's
// method, in lower case, on its path. Other users get 401 or 403, and all get 503 when the API server does not answer.
// Verdicts hold for a minute, refusals for ten seconds.
func Protect(next http.Handler, reviewer Reviewer, clock clock.PassiveClock) http.Handler {
	return &guard{
		next: next, reviewer: reviewer,
		verdicts: cache.NewLRUExpireCacheWithClock(maxRemembered, clock), reviews: make(chan struct{}, maxReviews),
	}
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		refuse(w, verdict{http.StatusUnauthorized, "a bearer token is needed"})
		return
	}
	about := question{sha256.Sum256([]byte(token)), r.URL.Path, strings.ToLower(r.Method)}
	found, err := g.judge(r.Context(), about, token)
	switch {
	case err != nil:
		klog.FromContext(r.Context()).Error(err, "Cannot tell who may read", "path", r.URL.Path)
		refuse(w, verdict{http.StatusServiceUnavailable, "the API server cannot be asked who you are"})
	case found.code != http.StatusOK:
		refuse(w, found)
	default:
		g.next.ServeHTTP(w, r)
	}
}

func refuse(w http.ResponseWriter, v verdict) {
	if v.code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	http.Error(w, v.reason, v.code)
}

// judge returns the verdict on a token. An error is not remembered.
func (g *guard) judge(ctx context.Context, about question, token string) (verdict, error) {
	if found, ok := g.remembered(about); ok {
		return found, nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	select {
	case g.reviews <- struct{}{}:
		defer func() { <-g.reviews }()
	case <-ctx.Done():
		return verdict{}, fmt.Errorf("too many ask at a time: %w", context.Cause(ctx))
	}
	if found, ok := g.remembered(about); ok {
		return found, nil // another request has asked meanwhile
	}
	found, err := g.review(ctx, about, token)
	if err != nil {
		return verdict{}, err
	}
	holds := refusedFor
	if found.code == http.StatusOK {
		holds = allowedFor
	}
	g.verdicts.Add(about, found, holds)
	return found, nil
}

func (g *guard) remembered(about question) (verdict, bool) {
	item, _ := g.verdicts.Get(about)
	found, ok := item.(verdict)
	return found, ok
}

// review asks the API server which user a token belongs to and what that user may do.
func (g *guard) review(ctx context.Context, about question, token string) (verdict, error) {
	who, err := g.reviewer.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return verdict{}, fmt.Errorf("no TokenReview: %w", err)
	}
	if !who.Status.Authenticated {
		return verdict{http.StatusUnauthorized, "the token is not valid"}, nil
	}
	user := who.Status.User
	if user.Username == "" {
		return verdict{}, errors.New("the TokenReview names no user")
	}
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	may, err := g.reviewer.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: about.path, Verb: about.verb},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return verdict{}, fmt.Errorf("no SubjectAccessReview: %w", err)
	}
	if !may.Status.Allowed || may.Status.Denied {
		return verdict{http.StatusForbidden, fmt.Sprintf("%s may not %s %s", user.Username, about.verb, about.path)}, nil
	}
	return verdict{code: http.StatusOK}, nil
}
