// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// An edit of a client counts as one, and a controller's report in a status does not.
func TestOnlyAnEditOfAClientCountsAsOne(t *testing.T) {
	child := func(generation int64, version string) metav1.Object {
		return &metav1.ObjectMeta{Generation: generation, ResourceVersion: version}
	}
	annotated := &metav1.ObjectMeta{Generation: 1, ResourceVersion: "2", Annotations: map[string]string{v1beta1.AnnotationTake: "all"}}
	for _, test := range []struct {
		name        string
		kind        schema.GroupKind
		before, now metav1.Object
		want        bool
	}{
		{"listed again", managers.Deployment, child(1, "1"), child(1, "1"), false},
		{"a status", managers.Deployment, child(1, "1"), child(1, "2"), false},
		{"another spec", managers.Deployment, child(1, "1"), child(2, "2"), true},
		{"an annotation of a Deployment", managers.Deployment, child(1, "1"), annotated, false},
		{"an annotation of an MCPServer", managers.MCPServer, child(1, "1"), annotated, true},
		{"a status of an MCPServer", managers.MCPServer, child(1, "1"), child(1, "2"), false},
		{"a ConfigMap", managers.ConfigMap, child(0, "1"), child(0, "2"), true},
		{"a ConfigMap listed again", managers.ConfigMap, child(0, "1"), child(0, "1"), false},
	} {
		if got := isEdited(test.kind, test.now, test.before); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// An edit is not behind what happens to all the other MCPServers.
func TestEditOvertakesACrowd(t *testing.T) {
	const crowd = 40
	for name, test := range map[string]struct {
		// exists reports whether the others are there before.
		exists bool
		happen func(o *operating, other string)
	}{
		"first passes":         {false, func(o *operating, other string) { o.add(newServer(other)) }},
		"progress of rollouts": {true, func(o *operating, other string) { backendReady(o.apiServer, other) }},
		"deletions": {true, func(o *operating, other string) {
			change(o.apiServer, other, func(server *v1beta1.MCPServer) {
				server.DeletionTimestamp, server.Generation = new(metav1.Now()), server.Generation+1
			})
		}},
		"made anew while children of the earlier ones go": {true, func(o *operating, other string) {
			remove[*v1beta1.MCPServer](o.apiServer, other)
			again := newServer(other)
			again.UID = types.UID("again-" + other)
			o.add(again)
			synctest.Wait() // The garbage collector comes later.
			remove[*corev1.Service](o.apiServer, "mcp-"+other+"-proxy")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			servers := []runtime.Object{newServer("web")}
			for i := range crowd {
				if test.exists {
					servers = append(servers, newServer(fmt.Sprintf("new%02d", i)))
				}
			}
			operate(t, servers, func(c *Config) { c.Workers = 1 }, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				busy := make(chan struct{})
				var begun []string
				o.before.set(func(w write) error {
					<-busy
					if !slices.Contains(begun, serverOf(w)) {
						begun = append(begun, serverOf(w))
					}
					return nil
				})
				for i := range crowd {
					test.happen(o, fmt.Sprintf("new%02d", i))
				}
				synctest.Wait() // The only worker is with one of them.
				change(o.apiServer, "web", func(server *v1beta1.MCPServer) { server.Spec.Image = "example.com/mcp:2" })
				synctest.Wait()
				close(busy)
				o.rest()
				if at := slices.Index(begun, "web"); at != 1 || len(begun) != crowd+1 {
					t.Errorf("the edit comes after %d others of %d, want 1 of %d: %v", at, len(begun)-1, crowd, begun)
				}
			})
		})
	}
}

// Neither is an edit behind all the others that came while no operator was there, such as during an upgrade.
func TestEditBeforeAStartOvertakesACrowd(t *testing.T) {
	const crowd = 40
	synctest.Test(t, func(t *testing.T) {
		one := func(c *Config) { c.Workers = 1 }
		servers := []runtime.Object{newServer("web")}
		for i := range crowd {
			servers = append(servers, newServer(fmt.Sprintf("other%02d", i)))
		}
		s := newAPIServer(t, servers...)
		o := start(t, s, one)
		o.rest()
		o.becomeReady("web")
		o.end()
		for i := range crowd {
			remove[*corev1.Service](s, fmt.Sprintf("mcp-other%02d-headless", i))
		}
		change(s, "web", func(server *v1beta1.MCPServer) { server.Generation++; server.Spec.Image = "example.com/mcp:2" })

		var begun []string
		s.before.set(func(w write) error {
			if !slices.Contains(begun, serverOf(w)) {
				begun = append(begun, serverOf(w))
			}
			return nil
		})
		o = start(t, s, one)
		defer o.end()
		o.rest()
		if at := slices.Index(begun, "web"); at < 0 || at > 1 || len(begun) != crowd+1 {
			t.Errorf("the edit comes after %d others of %d, want 1 of %d at most: %v", at, len(begun)-1, crowd, begun)
		}
	})
}

// An edit whose write has to be sent again in a moment is not behind all the others then, and one that is refused for good is.
func TestARepeatedEditKeepsItsLane(t *testing.T) {
	const crowd = 40
	services := schema.GroupResource{Resource: "services"}
	for name, test := range map[string]struct {
		refusal error
		// least and most is how many first passes begin between the two attempts. Each takes longer than a second.
		least, most int
	}{
		"a change meantime": {apierrors.NewConflict(services, "mcp-web-proxy", errors.New("the object has been modified")), 0, 3},
		"overload":          {apierrors.NewServiceUnavailable("later"), 0, 3},
		"a missing right":   {apierrors.NewForbidden(services, "mcp-web-proxy", errors.New("no")), crowd / 2, crowd},
	} {
		t.Run(name, func(t *testing.T) {
			operate(t, []runtime.Object{newServer("web")}, func(c *Config) { c.Workers = 1 }, func(t *testing.T, o *operating) {
				o.becomeReady("web")
				begun := map[string]bool{}
				var attempts []int // How many others had begun by then.
				o.before.set(func(w write) error {
					<-time.After(100 * time.Millisecond)
					if serverOf(w) != "web" {
						begun[serverOf(w)] = true
					} else if w.kind == "Service" {
						if attempts = append(attempts, len(begun)); len(attempts) == 1 {
							return test.refusal
						}
					}
					return nil
				})
				for i := range crowd {
					o.add(newServer(fmt.Sprintf("new%02d", i)))
				}
				// Only a Service changes: the event of another child that the same pass writes would hasten the next one.
				change(o.apiServer, "web", func(server *v1beta1.MCPServer) {
					server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{
						ProxyService: &v1beta1.ResourceMetadataOverrides{Annotations: map[string]string{"example.com/edited": "yes"}},
					}
				})
				<-time.After(5 * time.Minute)
				o.rest()
				if len(attempts) != 2 || len(begun) != crowd {
					t.Fatalf("%d attempts for the edit, and %d of %d others", len(attempts), len(begun), crowd)
				}
				if between := attempts[1] - attempts[0]; between < test.least || between > test.most {
					t.Errorf("%d first passes begin between the attempts, want %d to %d", between, test.least, test.most)
				}
			})
		})
	}
}

// serverOf returns the name of the MCPServer that a write is about. Names of these tests' MCPServers have no dash.
func serverOf(w write) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(w.name, "mcp-"), "-")
	return name
}
