// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/controller/observed"
)

// watched are configMaps in a bubble, and whom they woke.
type watched struct {
	*observed.ReferencedConfigMaps
	*apiServer
	ctx    context.Context //nolint:containedctx // that of the watches, for the length of a test
	cancel context.CancelFunc

	mu    sync.Mutex
	woken []string
}

func watching(t *testing.T, objects []runtime.Object, test func(t *testing.T, w *watched)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &watched{apiServer: newAPIServer(t, objects...)}
		w.ctx, w.cancel = context.WithCancel(t.Context())
		w.ReferencedConfigMaps = observed.NewReferencedConfigMaps(w.core, func(string) *observed.Scope { return &observed.Scope{Clock: clock.RealClock{}} }, func(server cache.ObjectName) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.woken = append(w.woken, server.Name)
		})
		test(t, w)
		w.cancel()
		w.Shutdown()
	})
}

// rested returns whom the watches woke, once each, after everything has come to rest.
func (w *watched) rested() []string {
	<-time.After(time.Second)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	woken := slices.Compact(slices.Sorted(slices.Values(w.woken)))
	w.woken = nil
	return woken
}

func (w *watched) expectWoken(want []string, why string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.rested()); diff != "" {
		w.t.Errorf("%s: woken (-want +got):\n%s", why, diff)
	}
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}, Data: map[string]string{"key": value},
	}
}

func key(name string) cache.ObjectName { return cache.NewObjectName("shop", name) }

func TestAConfigMapIsKnownOnceItWasRead(t *testing.T) {
	watching(t, []runtime.Object{configMap("rules", "1")}, func(t *testing.T, w *watched) {
		if _, known := w.Get("shop", "rules"); known {
			t.Error("a ConfigMap that nobody uses is known")
		}
		w.onReads("configmaps", func() error {
			<-time.After(time.Minute) // an answer that takes its time
			return nil
		})
		w.Use(w.ctx, key("web"), "rules", "")
		synctest.Wait()
		if _, known := w.Get("shop", "rules"); known {
			t.Error("a ConfigMap is known before it was read")
		}
		w.expectWoken(nil, "nothing is known yet")
		<-time.After(time.Minute)
		w.expectWoken([]string{"web"}, "it was read")
		if found, known := w.Get("shop", "rules"); !known || found == nil || found.Data["key"] != "1" {
			t.Errorf("found %v, known %t", found, known)
		}
		change(w.apiServer, "rules", func(c *corev1.ConfigMap) { c.Data["key"] = "2" })
		w.expectWoken([]string{"web"}, "it changed")
		if found, _ := w.Get("shop", "rules"); found == nil || found.Data["key"] != "2" {
			t.Errorf("found %v after the change", found)
		}
		remove[*corev1.ConfigMap](w.apiServer, "rules")
		w.expectWoken([]string{"web"}, "it went")
		if found, known := w.Get("shop", "rules"); found != nil || !known {
			t.Errorf("found %v, known %t, after it went", found, known)
		}
	})
}

// The absence of a ConfigMap is news as well, and so is its arrival.
func TestTheAbsenceOfAConfigMapIsNews(t *testing.T) {
	watching(t, nil, func(t *testing.T, w *watched) {
		w.Use(w.ctx, key("web"), "rules")
		w.expectWoken([]string{"web"}, "its absence was established")
		if found, known := w.Get("shop", "rules"); found != nil || !known {
			t.Errorf("found %v, known %t", found, known)
		}
		w.add(configMap("rules", "1"))
		w.expectWoken([]string{"web"}, "it came")
	})
}

func TestAConfigMapWithoutANameIsKnownNotToBe(t *testing.T) {
	watching(t, nil, func(t *testing.T, w *watched) {
		w.Use(w.ctx, key("web"), "", "")
		w.expectWoken(nil, "no reference")
		if found, known := w.Get("shop", ""); found != nil || !known {
			t.Errorf("found %v, known %t; what is not referred to is known not to be", found, known)
		}
		if reads := w.reads(); len(reads) != 0 {
			t.Errorf("reads %v", reads)
		}
	})
}

func TestAConfigMapWithSeveralUsersHasOneWatch(t *testing.T) {
	watching(t, []runtime.Object{configMap("rules", "1")}, func(t *testing.T, w *watched) {
		w.onReads("configmaps", func() error {
			<-time.After(time.Minute) // so that the second comes before the answer
			return nil
		})
		w.Use(w.ctx, key("a"), "rules")
		w.Use(w.ctx, key("b"), "rules")
		<-time.After(time.Minute)
		w.expectWoken([]string{"a", "b"}, "it was read")
		if diff := cmp.Diff([]string{"watch configmaps"}, w.reads()); diff != "" {
			t.Errorf("one watch for both (-want +got):\n%s", diff)
		}
		w.Use(w.ctx, key("c"), "rules")
		if _, known := w.Get("shop", "rules"); !known {
			t.Error("what is known already is not for a third user")
		}
		w.Use(w.ctx, key("a")) // not any more
		w.expectWoken(nil, "users came and went")
		change(w.apiServer, "rules", func(c *corev1.ConfigMap) { c.Data["key"] = "2" })
		w.expectWoken([]string{"b", "c"}, "it changed")

		w.Use(w.ctx, key("b"), "others")
		w.Use(w.ctx, key("c"))
		<-time.After(time.Minute)
		w.rested()
		if _, known := w.Get("shop", "rules"); known {
			t.Error("it is still watched, without a user")
		}
		change(w.apiServer, "rules", func(c *corev1.ConfigMap) { c.Data["key"] = "3" })
		w.add(configMap("others", "1"))
		w.expectWoken([]string{"b"}, "the one changed and the other came")

		w.reads()
		w.Use(w.ctx, key("a"), "rules")
		<-time.After(time.Minute)
		w.expectWoken([]string{"a"}, "it is read anew")
		if found, _ := w.Get("shop", "rules"); found == nil || found.Data["key"] != "3" {
			t.Errorf("found %v, want what it became meanwhile", found)
		}
	})
}

// A watch is of one ConfigMap by its name, not of all.
func TestConfigMapsAreSelectedByName(t *testing.T) {
	watching(t, nil, func(t *testing.T, w *watched) {
		w.Use(w.ctx, key("web"), "rules")
		w.rested()
		requests := w.requested()
		if len(requests) == 0 {
			t.Error("nothing is watched")
		}
		for _, r := range requests {
			if fields := r.Query.Get("fieldSelector"); fields != "metadata.name=rules" || r.Namespace != "shop" {
				t.Errorf("%s in namespace %q with field selector %q", r.Verb, r.Namespace, fields)
			}
		}
	})
}

func TestTheConfigMapOfAnAuthorizationIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		spec v1beta1.MCPServerSpec
		want string
	}{
		"none": {},
		"authorization in a ConfigMap": {
			spec: v1beta1.MCPServerSpec{AuthzConfig: &v1beta1.AuthzConfigRef{ConfigMap: &v1beta1.ConfigMapAuthzRef{Name: "rules"}}},
			want: "rules",
		},
		"inline authorization": {
			spec: v1beta1.MCPServerSpec{AuthzConfig: &v1beta1.AuthzConfigRef{Inline: &v1beta1.InlineAuthzConfig{}}},
		},
	} {
		if got := authzReference(&v1beta1.MCPServer{Spec: test.spec}); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// An MCPServer waits for the ConfigMap that it refers to, tells when there is none, and goes on when it comes.
func TestAnMCPServerWaitsForItsConfigMap(t *testing.T) {
	server := newServer("web")
	server.Spec.AuthzConfig = &v1beta1.AuthzConfigRef{
		Type: v1beta1.AuthzConfigTypeConfigMap, ConfigMap: &v1beta1.ConfigMapAuthzRef{Name: "rules", Key: "authz.json"},
	}
	rules := func(policy string) map[string]string {
		return map[string]string{"authz.json": `{"version":"1.0","type":"cedarv1","cedar":{"policies":["` + policy + `"],"entities_json":"[]"}}`}
	}
	operate(t, []runtime.Object{server}, nil, func(t *testing.T, o *operating) {
		if got := o.took(); !slices.Contains(got, "apply StatefulSet/web freehold-backend") || slices.Contains(got, "apply ConfigMap/web-runconfig freehold-runconfig") {
			t.Errorf("writes %v while the ConfigMap is missing", got)
		}
		backendReady(o.apiServer, "web")
		o.rest()
		if _, made := get[*appsv1.Deployment](o.apiServer, "web"); made {
			t.Error("there is a proxy without its policy")
		}
		if status, reason, _ := o.condition("web", v1beta1.ConditionAuthzConfigValidated); status != metav1.ConditionFalse {
			t.Errorf("AuthzConfigValidated is %q because of %q", status, reason)
		}
		there := configMap("rules", "")
		there.Data = rules("permit(principal, action, resource);")
		o.add(there)
		o.rest()
		if got := o.took(); !slices.Contains(got, "apply Deployment/web freehold-proxy") {
			t.Errorf("writes %v after the ConfigMap came", got)
		}
		if status, reason, message := o.condition("web", v1beta1.ConditionAuthzConfigValidated); status != metav1.ConditionTrue {
			t.Errorf("AuthzConfigValidated is %q because of %q: %s", status, reason, message)
		}
		change(o.apiServer, "rules", func(c *corev1.ConfigMap) { c.Data = rules("forbid(principal, action, resource);") })
		o.rest()
		if got := o.took(); !slices.Contains(got, "apply ConfigMap/web-runconfig freehold-runconfig") {
			t.Errorf("writes %v after the ConfigMap changed", got)
		}
		markDeleted(o.apiServer, "web")
		o.rest()
		o.took()
		if _, known := o.configMaps.Get("shop", "rules"); known {
			t.Error("the ConfigMap of an MCPServer that is gone is still watched")
		}
		for _, w := range o.took() {
			if strings.Contains(w, "rules") {
				t.Errorf("%s: the user's ConfigMap is not ours", w)
			}
		}
	})
}

// configNamed returns the name of the one ConfigMap that has this name and, after it, a digest of its content.
func (s *apiServer) configNamed(base string) string {
	s.t.Helper()
	var found []string
	for _, config := range s.configs() {
		if strings.HasPrefix(config.Name, base+"-") {
			found = append(found, config.Name)
		}
	}
	if len(found) != 1 {
		s.t.Fatalf("ConfigMaps %s-*: %v", base, found)
	}
	return found[0]
}

// configs returns all ConfigMaps.
func (s *apiServer) configs() (configs []*corev1.ConfigMap) {
	s.t.Helper()
	for _, obj := range s.api.List(s.kindOf(&corev1.ConfigMap{})) {
		configs = append(configs, obj.(*corev1.ConfigMap))
	}
	return configs
}
