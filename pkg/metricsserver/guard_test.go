// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package metricsserver

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
)

// apiServer knows the tokens "reader" and "stranger", of whom one may get /metrics. It counts what it is asked.
type apiServer struct {
	mu         sync.Mutex
	tokens     []string
	accesses   []authorizationv1.SubjectAccessReviewSpec
	down       error
	mayRead    map[string]bool
	nameNobody bool
	alsoDenied bool
}

func (s *apiServer) reviewer() Reviewer {
	client := fake.NewClientset()
	client.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		s.tokens = append(s.tokens, review.Spec.Token)
		if s.down != nil {
			return true, nil, s.down
		}
		if _, ok := s.mayRead[review.Spec.Token]; ok {
			review.Status.Authenticated = true
			review.Status.User = authenticationv1.UserInfo{
				Username: "user-" + review.Spec.Token, UID: "7", Groups: []string{"g"},
				Extra: map[string]authenticationv1.ExtraValue{"node": {"n1"}},
			}
			if s.nameNobody {
				review.Status.User.Username = ""
			}
		}
		return true, review, nil
	})
	client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		s.accesses = append(s.accesses, review.Spec)
		review.Status.Allowed = s.mayRead[review.Spec.User[len("user-"):]]
		review.Status.Denied = s.alsoDenied
		return true, review, nil
	})
	return client
}

// asked returns how often the API server was asked who somebody is, and what he may do.
func (s *apiServer) asked() (who, may int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tokens), len(s.accesses)
}

func get(handler http.Handler, authorization string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody) //nolint:noctx // not sent
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

var served = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("figures")) })

func TestOnlyWhoMayReads(t *testing.T) {
	for name, test := range map[string]struct {
		server        *apiServer
		authorization string
		code          int
	}{
		"nobody":                      {&apiServer{}, "", http.StatusUnauthorized},
		"another scheme":              {&apiServer{}, "Basic reader", http.StatusUnauthorized},
		"an empty token":              {&apiServer{}, "Bearer  ", http.StatusUnauthorized},
		"an unknown token":            {&apiServer{}, "Bearer forged", http.StatusUnauthorized},
		"somebody who may":            {&apiServer{}, "Bearer reader", http.StatusOK},
		"the scheme in lower case":    {&apiServer{}, "bearer reader", http.StatusOK},
		"somebody who may not":        {&apiServer{}, "Bearer stranger", http.StatusForbidden},
		"allowed and denied":          {&apiServer{alsoDenied: true}, "Bearer reader", http.StatusForbidden},
		"a token of a nameless user":  {&apiServer{nameNobody: true}, "Bearer reader", http.StatusServiceUnavailable},
		"an API server that is down":  {&apiServer{down: errors.New("down")}, "Bearer reader", http.StatusServiceUnavailable},
		"a nameless one, and no user": {&apiServer{nameNobody: true}, "Bearer forged", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			server := test.server
			server.mayRead = map[string]bool{"reader": true, "stranger": false}
			got := get(Protect(served, server.reviewer(), clock.RealClock{}), test.authorization)
			if got.Code != test.code || (got.Body.String() == "figures") != (test.code == http.StatusOK) {
				t.Errorf("answer %d %q, want %d", got.Code, got.Body, test.code)
			}
			if challenge := got.Header().Get("WWW-Authenticate"); (challenge == "Bearer") != (test.code == http.StatusUnauthorized) {
				t.Errorf("WWW-Authenticate is %q with %d", challenge, got.Code)
			}
		})
	}
}

// The API server is asked about the user as it has told him, and about this path and method.
func TestTheQuestionIsWhole(t *testing.T) {
	server := &apiServer{mayRead: map[string]bool{"reader": true}}
	get(Protect(served, server.reviewer(), clock.RealClock{}), "Bearer reader")
	want := []authorizationv1.SubjectAccessReviewSpec{{
		User: "user-reader", UID: "7", Groups: []string{"g"}, Extra: map[string]authorizationv1.ExtraValue{"node": {"n1"}},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
	}}
	if !reflect.DeepEqual(server.accesses, want) {
		t.Errorf("asked about %+v, want %+v", server.accesses, want)
	}
}

// What the API server has said holds for a while: longer when it is yes. What it could not say does not.
func TestVerdictsHold(t *testing.T) {
	server := &apiServer{mayRead: map[string]bool{"reader": true, "stranger": false}}
	clock := testclock.NewFakePassiveClock(time.Unix(1e9, 0))
	handler := Protect(served, server.reviewer(), clock)
	expect := func(why, token string, code, who, may int) {
		t.Helper()
		if got := get(handler, "Bearer "+token); got.Code != code {
			t.Errorf("%s: answer %d, want %d", why, got.Code, code)
		}
		if gotWho, gotMay := server.asked(); gotWho != who || gotMay != may {
			t.Errorf("%s: asked %d and %d times, want %d and %d", why, gotWho, gotMay, who, may)
		}
	}
	expect("the first time", "reader", http.StatusOK, 1, 1)
	server.mayRead["reader"] = false
	clock.SetTime(clock.Now().Add(allowedFor - time.Second))
	expect("within the minute", "reader", http.StatusOK, 1, 1)
	clock.SetTime(clock.Now().Add(2 * time.Second))
	expect("after it", "reader", http.StatusForbidden, 2, 2)
	server.mayRead["reader"] = true
	clock.SetTime(clock.Now().Add(refusedFor - time.Second))
	expect("a refusal", "reader", http.StatusForbidden, 2, 2)
	clock.SetTime(clock.Now().Add(2 * time.Second))
	expect("not for longer than ten seconds", "reader", http.StatusOK, 3, 3)
	expect("another token", "stranger", http.StatusForbidden, 4, 4)
	expect("a forged one", "forged", http.StatusUnauthorized, 5, 4)
	expect("a forged one again", "forged", http.StatusUnauthorized, 5, 4)
	server.down = errors.New("down")
	expect("an API server that is down does not matter meanwhile", "reader", http.StatusOK, 5, 4)
	expect("but for somebody new", "other", http.StatusServiceUnavailable, 6, 4)
	expect("and is asked again", "other", http.StatusServiceUnavailable, 7, 4)
}

// slow is a Reviewer that waits before it asks who somebody is.
type slow struct {
	Reviewer
	wait func()
}

func (s slow) AuthenticationV1() authenticationclient.AuthenticationV1Interface {
	return slowAuthentication{s.Reviewer.AuthenticationV1(), s.wait}
}

type slowAuthentication struct {
	authenticationclient.AuthenticationV1Interface
	wait func()
}

func (s slowAuthentication) TokenReviews() authenticationclient.TokenReviewInterface {
	return slowReviews{s.AuthenticationV1Interface.TokenReviews(), s.wait}
}

type slowReviews struct {
	authenticationclient.TokenReviewInterface
	wait func()
}

func (s slowReviews) Create(
	ctx context.Context, review *authenticationv1.TokenReview, options metav1.CreateOptions,
) (*authenticationv1.TokenReview, error) {
	s.wait()
	return s.TokenReviewInterface.Create(ctx, review, options)
}

// Many at once ask the API server for one of them, and few of many strangers wait inside at a time.
func TestManyAtOnceAskForOne(t *testing.T) {
	entered, leave := make(chan struct{}, 100), make(chan struct{})
	server := &apiServer{mayRead: map[string]bool{"reader": true}}
	handler := Protect(served, slow{server.reviewer(), func() { entered <- struct{}{}; <-leave }}, clock.RealClock{})
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			if got := get(handler, "Bearer forged"+strconv.Itoa(i)); got.Code != http.StatusUnauthorized {
				t.Errorf("a forged token is answered with %d", got.Code)
			}
		})
	}
	for range maxReviews {
		<-entered
	}
	select {
	case <-entered:
		t.Errorf("more than %d ask at a time", maxReviews)
	default:
	}
	close(leave)
	group.Wait()
	if who, _ := server.asked(); who != 20 {
		t.Errorf("asked about %d of 20 tokens", who)
	}

	for range 20 {
		group.Go(func() { get(handler, "Bearer reader") })
	}
	group.Wait()
	if who, _ := server.asked(); who > 20+maxReviews {
		t.Errorf("asked %d times about one token", who-20)
	}
}
