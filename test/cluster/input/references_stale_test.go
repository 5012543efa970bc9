// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/freehold-dev/freehold/apis/toolhive"
	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/faultproxy"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/test/harness"
)

// never is a lag that no test outlives.
const never = time.Hour

// TestReplacedBehindAnOperator replaces an issuer by another one of the same name, by which generations begin anew, and shows
// that to one operator alone. The other one has an edit of the MCPServer to carry out, and does not while it knows only the
// issuer of before. The same goes for an edit of the issuer, and for certificate authorities of an authorization server.
func TestReplacedBehindAnOperator(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		watch  faultproxy.Match
		refer  harness.Change
		begin  func(*testing.T, scene)
		change func(*testing.T, scene)
		// shows tells of a proxy's template whether it is of the newer state.
		shows func(*testing.T, scene) bool
	}{
		"replaced": {
			watch: faultproxy.Watches(toolhive.GroupName, "mcpoidcconfigs"), refer: authenticated,
			begin: func(t *testing.T, s scene) {
				s.publish(t, issuer(address(1)))
				for range 3 { // The generation is to be above that of the next one.
					s.revise(t, func(c *v1beta1.MCPOIDCConfig) { c.Spec.Inline.ClientID += "x" })
				}
			},
			change: func(t *testing.T, s scene) {
				s.withdraw(t)
				s.publish(t, issuer(address(2)))
			},
			shows: showsSecondIssuer,
		},
		"edited": {
			watch: faultproxy.Watches(toolhive.GroupName, "mcpoidcconfigs"), refer: authenticated,
			begin: func(t *testing.T, s scene) { s.publish(t, issuer(address(1))) },
			change: func(t *testing.T, s scene) {
				s.revise(t, func(c *v1beta1.MCPOIDCConfig) { c.Spec.Inline.Issuer = address(2) })
			},
			shows: showsSecondIssuer,
		},
		"authorities": {
			watch: asksForBundle, refer: loggingIn,
			begin: func(t *testing.T, s scene) {
				s.bundle(t, certificate(t, "first"))
				s.publishAuthServer(t)
				s.publish(t, issuer(authServerURL))
			},
			change: func(t *testing.T, s scene) { s.bundle(t, certificate(t, "second")) },
			shows: func(t *testing.T, s scene) bool {
				return strings.Contains(s.deployment(t, web).Annotations[v1beta1.AnnotationReferences], "@"+s.configMapVersion(t))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			c.begin(t, s)
			var lag atomic.Int64
			behind := s.Proxy(t, faultproxy.Options{Lags: []faultproxy.Lag{{Match: c.watch, By: func() time.Duration { return time.Duration(lag.Load()) }}}})
			late := s.OperateThrough(t, behind, foreign)
			s.settled(t, harness.HTTPServer(web, c.refer))
			lag.Store(int64(never))
			prompt := s.Operate(t, foreign)
			s.AwaitLook(t, prompt)
			before := s.deployment(t, web)
			s.Expect(t, harness.Confirmations, s.Name) // The one that is behind makes sure that the annotation is not forged.
			c.change(t, s)
			harness.Eventually(t, "one operator carries the change out", func(context.Context) error {
				if !c.shows(t, s) {
					return fmt.Errorf("the template is %v", s.deployment(t, web).Spec.Template)
				}
				return nil
			})
			s.AwaitWorkloads(t, web)
			harness.Stop(t, prompt)
			s.AwaitOperatorRest(t)

			after, mark := s.deployment(t, web), s.Mark(t)
			if after.Generation != before.Generation+1 {
				t.Errorf("the change has cost %d writes of the template", after.Generation-before.Generation)
			}
			s.Edit(t, web, func(server *v1beta1.MCPServer) { server.Spec.Image = harness.OtherImage })
			s.AwaitServer(t, web, "is told to be of an older view", func(server *v1beta1.MCPServer) error {
				for _, condition := range server.Status.Conditions {
					if condition.Type == v1beta1.ConditionApplied && condition.Status == metav1.ConditionFalse &&
						condition.ObservedGeneration == server.Generation && strings.Contains(condition.Message, "newer than our") {
						return nil
					}
				}
				return fmt.Errorf("the conditions are %+v", server.Status.Conditions)
			})
			s.AwaitOperatorRest(t)
			if tried := s.written(t, web, mark); tried["proxy"]+tried["proxy (409)"] != 0 {
				t.Errorf("an operator that is behind has written %v", tried)
			}
			if now := s.deployment(t, web); now.Generation != after.Generation || !c.shows(t, s) {
				t.Errorf("the Deployment has gone from generation %d to %d; its references are %s", after.Generation, now.Generation,
					now.Annotations[v1beta1.AnnotationReferences])
			}

			harness.Stop(t, late)
			s.Operate(t, foreign)
			s.AwaitImage(t, web, harness.OtherImage)
			s.AwaitStatus(t, web, harness.Fine...)
			if !c.shows(t, s) {
				t.Errorf("in the end the proxy reads %s", s.document(t, web))
			}
		})
	}
}

// asksForBundle matches the watch of the ConfigMap with certificate authorities.
func asksForBundle(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "configmaps") && strings.Contains(r.URL.Query().Get("fieldSelector"), bundleName)
}

func showsSecondIssuer(t *testing.T, s scene) bool {
	return strings.Contains(s.document(t, web), address(2))
}

func (s scene) configMapVersion(t *testing.T) string {
	t.Helper()
	found, err := s.Core.CoreV1().ConfigMaps(s.Name).Get(t.Context(), bundleName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found.ResourceVersion
}

const (
	racers = 6
	// raceEdits is how many edits they race for, unless the environment variable says otherwise.
	raceEdits = 80
	// longestLag is how far behind one of the operators is at most, and longestBurst how many edits come at most without a wait.
	longestLag   = 800 * time.Millisecond
	longestBurst = 20
)

// race is what two operators are up against that work in one namespace without a lease.
type race struct {
	scene
	lag    atomic.Int64
	random *rand.Rand
	// image and issuer are the numbers of the last ones.
	image, issuer int
	names         []string

	mu   sync.Mutex
	late map[string]bool
}

// TestTwoOperatorsTurnNoProxyBack edits MCPServers and the issuer that they share, replaces it, and takes it away for a while, under two
// operators, one of which learns of both late, and of each at another time. No proxy's template goes back, neither to an older spec of its
// MCPServer nor to an older issuer, and in the end all have the last of both.
func TestTwoOperatorsTurnNoProxyBack(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	edits, seed := harness.Count(t, harness.RaceEdits, raceEdits), uint64(time.Now().UnixNano())
	r := &race{scene: newScene(t), late: map[string]bool{}, issuer: 1}
	r.random = rand.New(rand.NewPCG(seed, 0))
	r.Expect(t, harness.Confirmations, r.Name)
	history, mark := r.record(t), r.Mark(t)
	behind := r.Proxy(t, faultproxy.Options{
		Lags: []faultproxy.Lag{
			{Match: faultproxy.Watches(toolhive.GroupName, "mcpservers"), By: func() time.Duration { return time.Duration(r.lag.Load()) / 2 }},
			{Match: faultproxy.Watches(toolhive.GroupName, "mcpoidcconfigs"), By: func() time.Duration { return time.Duration(r.lag.Load()) }},
		},
		Observe: func(response *http.Response) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.late[response.Header.Get("Audit-Id")] = true
		},
	})
	prompt, late := r.Operate(t, foreign), r.OperateThrough(t, behind, foreign)
	r.publish(t, issuer(address(1)))
	for i := range racers {
		server := harness.HTTPServer(fmt.Sprintf("race-%d", i), authenticated)
		server.Spec.Image = raceImage(0)
		r.names = append(r.names, server.Name)
		r.Create(t, server)
	}
	r.AwaitAllSettled(t, racers, harness.Timeout)
	for edited := 0; edited < edits; {
		r.lag.Store(r.random.Int64N(int64(longestLag)))
		for range 1 + r.random.IntN(longestBurst) {
			r.edit(t)
			edited++
		}
		if r.random.IntN(2) == 0 {
			r.AwaitServer(t, r.names[r.random.IntN(racers)], "is looked at", func(server *v1beta1.MCPServer) error {
				if server.Status.ObservedGeneration != server.Generation {
					return fmt.Errorf("generation %d has been looked at, not %d", server.Status.ObservedGeneration, server.Generation)
				}
				return nil
			})
		}
	}
	r.lag.Store(0)
	last := map[string]string{}
	for _, name := range r.names {
		r.image++
		last[name] = raceImage(r.image)
		r.Edit(t, name, func(server *v1beta1.MCPServer) { server.Spec.Image = last[name] })
	}
	r.AwaitAllSettled(t, racers, harness.Timeout)
	r.AwaitOperatorRest(t)
	r.Quiet(t, r.Mark(t), harness.Calm)

	versions, templates := r.check(t, history)
	for _, name := range r.names {
		if text := r.document(t, name); !strings.Contains(text, address(r.issuer)) || !strings.Contains(text, last[name]) {
			t.Errorf("in the end, %s reads %s, not issuer %d and image %s", name, text, r.issuer, last[name])
		}
	}
	landed, byLate := r.tally(t, mark)
	held := 0.0
	for _, p := range []*operator.Process{prompt, late} {
		count, err := harness.Metric(t.Context(), p, "freehold_writes_total", `outcome="held"`)
		if err != nil {
			t.Fatal(err)
		}
		held += count
	}
	if held == 0 {
		t.Error("no operator ever had a stale view")
	}
	env.Numbers.Add("race of two operators for MCPServers and a shared configuration: edits", edits)
	env.Numbers.Add("race of two operators for MCPServers and a shared configuration: templates, none older than the one before", templates)
	t.Logf("edits=%d issuers=%d versions=%d templates=%d landed=%d late=%d held=%v seed=%d",
		edits, r.issuer, versions, templates, landed, byLate, held, seed)
}

func raceImage(number int) string { return "example.com/race:" + strconv.Itoa(number) }

// edit changes one thing. Numbers of images and issuers rise.
func (r *race) edit(t *testing.T) {
	t.Helper()
	switch choice := r.random.IntN(12); {
	case choice < 6:
		r.image++
		body := fmt.Sprintf(`{"spec":{"image":%q}}`, raceImage(r.image))
		_, err := r.Servers.Patch(t.Context(), r.names[r.random.IntN(racers)], types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: harness.Author})
		if err != nil {
			t.Fatal(err)
		}
	case choice < 11:
		r.issuer++
		body := fmt.Sprintf(`{"spec":{"inline":{"issuer":%q}}}`, address(r.issuer))
		if _, err := r.scene.issuers().Patch(t.Context(), shared, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: harness.Author}); err != nil {
			t.Fatal(err)
		}
	default:
		r.withdraw(t)
		r.issuer++
		r.publish(t, issuer(address(r.issuer)))
	}
}

var (
	issuerNumber = regexp.MustCompile(`"Issuer": "https://idp-(\d+)\.example\.com"`)
	imageNumber  = regexp.MustCompile(`"image": "example\.com/race:(\d+)"`)
)

func numberIn(t *testing.T, pattern *regexp.Regexp, text string) int {
	t.Helper()
	found := pattern.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("%v is not in %s", pattern, text)
	}
	number, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// check fails the test where a template follows a newer one, and where the annotations do. It returns how many versions there
// were, and how many of them made other pods.
func (r *race) check(t *testing.T, history documents) (versions, templates int) {
	t.Helper()
	type state struct {
		image, issuer int
		generation    int64
		reference     apply.Reference
	}
	last := map[string]state{}
	for _, v := range history.templates(t) {
		versions++
		text := v.GetAnnotations()[v1beta1.AnnotationReferences]
		references, ok := apply.ParseReferences(text)
		source, sourced := apply.ParseSource(v.GetAnnotations()[v1beta1.AnnotationSource])
		if !ok || !sourced || len(references) != 1 {
			t.Fatalf("resourceVersion %s of %s tells of %q and %q", v.GetResourceVersion(), v.server, text, source)
		}
		now := state{numberIn(t, imageNumber, v.document), numberIn(t, issuerNumber, v.document), source.Generation, references[0]}
		args, _, _ := unstructured.NestedFieldNoCopy(v.Object, "spec", "template", "spec", "containers")
		encoded, err := json.Marshal(args)
		if err != nil || !strings.Contains(string(encoded), `"`+raceImage(now.image)+`"`) {
			t.Errorf("resourceVersion %s of %s has other arguments than image %d: %s", v.GetResourceVersion(), v.server, now.image, encoded)
		}
		before, known := last[v.server]
		if known && (now.image < before.image || now.issuer < before.issuer || now.generation < before.generation) || older(now.reference, before.reference) {
			t.Errorf("%s goes from %+v to %+v at resourceVersion %s", v.server, before, now, v.GetResourceVersion())
		}
		if !known || now.image != before.image || now.issuer != before.issuer {
			templates++
		}
		last[v.server] = now
	}
	return versions, templates
}

// older reports whether a state of a reference is older than one before.
func older(now, before apply.Reference) bool {
	if now.UID == before.UID {
		return now.Generation < before.Generation
	}
	order, err := resourceversion.CompareResourceVersion(now.ResourceVersion, before.ResourceVersion)
	return err == nil && order < 0
}

// tally counts the operators' writes that came through, and fails the test where a write was refused for another cause than
// that it was late, and where one of the operators wrote nothing.
func (r *race) tally(t *testing.T, since audit.Mark) (landed, byLate int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	writes := r.Writes(t, since)
	for _, e := range writes {
		switch {
		case e.Succeeded():
			landed++
		case e.Code == http.StatusConflict, e.Verb == "delete" && e.Code == http.StatusNotFound: // The other operator was first.
		default:
			t.Errorf("a write that was neither accepted nor refused as outdated: %v", e)
		}
		if r.late[e.ID] {
			byLate++
		}
	}
	if byLate == 0 || byLate == len(writes) {
		t.Errorf("of %d writes, %d were of the operator that is behind: there was no race", len(writes), byLate)
	}
	return landed, byLate
}
