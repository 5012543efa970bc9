// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/internal/shelltest"
)

// A request that is made again before its withdrawal could be written down is another request.
func TestARequestThatIsMadeAgainAtOnceIsAnotherOne(t *testing.T) {
	operate(t, []runtime.Object{newServer("web")}, nil, func(t *testing.T, o *operating) {
		o.becomeReady("web")
		seize(t, o, "evil")
		o.rest()
		o.annotate("web", v1beta1.AnnotationTake, takeImage)
		o.imageTaken()
		seize(t, o, "evil")
		o.rest()
		var once atomic.Bool
		o.before.set(func(w write) error {
			if w.String() == applyRequests && once.CompareAndSwap(false, true) {
				change(o.apiServer, "web", func(server *v1beta1.MCPServer) {
					server.Annotations = maps.Clone(server.Annotations)
					server.Annotations[v1beta1.AnnotationTake] = takeImage
				})
			}
			return nil
		})
		o.annotate("web", v1beta1.AnnotationTake, "")
		if !once.Load() {
			t.Fatal("the withdrawal was not written down")
		}
		o.rest()
		o.imageTaken()
	})
}

// The command that takes a field once more takes it, although no operator saw the annotation without the request.
func TestPrintedCommandAsksAgainWhileNoOperatorRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t, newServer("web"))
		o := start(t, s, nil)
		o.rest()
		o.becomeReady("web")
		for _, round := range []string{"first", "second", "third"} {
			seize(t, o, "evil")
			o.rest()
			_, _, message := o.condition("web", v1beta1.ConditionFieldsOwned)
			command := between(t, message, "Take ownership: ", ". Leave it: ")
			o.end()
			o.run(command)
			o = start(t, s, nil)
			o.rest()
			if image := o.backendImage(); image != "example.com/web" {
				t.Errorf("%s time: the image is %s after %s", round, image, command)
			}
		}
		o.end()
	})
}

// run carries out a printed command that calls kubectl annotate for one MCPServer.
func (o *operating) run(command string) {
	o.t.Helper()
	for _, call := range shelltest.Calls(o.t, command) {
		change(o.apiServer, "web", func(server *v1beta1.MCPServer) {
			server.Annotations = maps.Clone(server.Annotations)
			for _, argument := range call {
				if name, value, sets := strings.Cut(argument, "="); sets {
					metav1.SetMetaDataAnnotation(&server.ObjectMeta, name, value)
				} else if name, removes := strings.CutSuffix(argument, "-"); removes {
					delete(server.Annotations, name)
				}
			}
		})
	}
}
