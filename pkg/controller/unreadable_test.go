// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/apiserver"
)

// What MCPServers refer to is not seen to change while its kind cannot be read any more, and nothing else tells of that: they go on
// with what was read before.
func TestRightsToReferencesLostAtRunTimeAreNoticed(t *testing.T) {
	operate(t, []runtime.Object{authenticated("web"), issuer("https://idp.example.com")}, nil, func(t *testing.T, o *operating) {
		var allowed atomic.Bool
		o.onReads("mcpoidcconfigs", func() error {
			if allowed.Load() {
				return nil
			}
			return forbidden("mcpoidcconfigs")
		})
		o.expectFailing("the watches are open")
		o.api.CutWatches()
		<-time.After(10 * time.Minute)
		if lasts := o.expectFailing("reads are forbidden", FailingWatch{Kind: v1beta1.MCPOIDCConfigKind}); lasts < 7*time.Minute || lasts > 10*time.Minute {
			t.Errorf("after ten minutes it has failed for %v", lasts)
		}
		allowed.Store(true)
		<-time.After(2*time.Minute + 3*time.Minute)
		o.expectFailing("reads are allowed")
	})
}

// A kind that is removed has no objects, which is no failure.
func TestAKindThatIsRemovedIsNoFailure(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(_ *testing.T, o *operating) {
		o.unserved.Store("mcpoidcconfigs")
		o.onReads("mcpoidcconfigs", pageNotFound)
		o.api.CutWatches()
		<-time.After(10 * time.Minute)
		o.expectFailing("the kind is not served any more")
	})
}

// pageNotFound is what an API server answers to any request that is starting, or a proxy in front of it.
func pageNotFound() error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "404 page not found", 0, true)
}

// An API server that says "404 page not found" of a kind, and in its documents that it serves it, fails to list it.
func TestAKindThatIsServedAndNotFoundFailsToBeListed(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(_ *testing.T, o *operating) {
		o.onReads("mcpoidcconfigs", pageNotFound)
		o.api.CutWatches()
		<-time.After(10 * time.Minute)
		o.expectFailing("the kind is served and not found", FailingWatch{Kind: v1beta1.MCPOIDCConfigKind})
	})
}

// An MCPServer is not worked on before the ConfigMap that it names has been read, so its status does not say what it waits for.
func TestAnMCPServerWaitsForAConfigMapThatCannotBeRead(t *testing.T) {
	server := newServer("web")
	server.Spec.AuthzConfig = &v1beta1.AuthzConfigRef{
		Type: v1beta1.AuthzConfigTypeConfigMap, ConfigMap: &v1beta1.ConfigMapAuthzRef{Name: "rules", Key: "authz.json"},
	}
	operate(t, nil, nil, func(t *testing.T, o *operating) {
		var allowed atomic.Bool
		o.arriving.set(func(r *apiserver.Request) error {
			if !allowed.Load() && r.Kind.Resource == "configmaps" && r.Query.Get("fieldSelector") == metav1.ObjectNameField+"=rules" {
				return forbidden("configmaps")
			}
			return nil
		})
		o.add(server)
		<-time.After(10 * time.Minute)
		if lasts := o.expectFailing("reads are forbidden", FailingWatch{Kind: "ConfigMap"}); lasts < 9*time.Minute {
			t.Errorf("after ten minutes it has failed for %v", lasts)
		}
		allowed.Store(true)
		<-time.After(2*time.Minute + 3*time.Minute)
		o.expectFailing("reads are allowed")

		allowed.Store(false)
		o.api.CutWatches()
		<-time.After(5 * time.Minute)
		o.expectFailing("reads are forbidden again", FailingWatch{Kind: "ConfigMap"})
		markDeleted(o.apiServer, "web")
		o.rest()
		o.expectFailing("nothing needs it any more")
	})
}
