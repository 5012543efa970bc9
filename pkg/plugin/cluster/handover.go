// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/workload"
)

// TryReplace returns what the API server would make of an object if it was replaced by another state of itself: with
// defaults filled in, and validated. It is always a dry run. The user needs the right to update the object.
func (c *Client) TryReplace(ref apply.ObjectRef, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	helper, err := c.helper(ref.Kind, quietly(rest.NoWarnings{}))
	if err != nil {
		return nil, err
	}
	object = object.DeepCopy()
	object.SetManagedFields(nil)
	// Who changes the object meanwhile, its status perhaps, again and again, does not matter to a dry run. The UID still tells it from
	// another object of that name.
	var answer runtime.Object
	err = retry.OnError(retry.DefaultBackoff, lostRace, func() error {
		object.SetResourceVersion("") // Replace reads the present one.
		answer, err = helper.WithFieldManager(managers.Plugin).DryRun(true).Replace(ref.Namespace, ref.Name, true, object)
		return err
	})
	if err != nil {
		return nil, err
	}
	return asUnstructured(answer)
}

// quietly makes requests whose warnings go elsewhere.
func quietly(to rest.WarningHandler) func(*rest.Config) {
	return func(config *rest.Config) { config.WarningHandler, config.WarningHandlerWithContext = to, nil }
}

// expected passes on all warnings except those of a policy that warns of exactly this write.
type expected struct{ next rest.WarningHandler }

func (e expected) HandleWarningHeader(code int, agent, text string) {
	if !strings.Contains(text, OwnedFieldsPolicy) {
		e.next.HandleWarningHeader(code, agent, text)
	}
}

// Process returns the process of the backend to which the proxy of an MCPServer with transport stdio would be attached;
// it is empty when none is ready or the user may not see it.
func (c *Client) Process(namespace, server string) (string, error) {
	pod := &corev1.Pod{}
	err := c.read(pods, namespace, render.OnlyBackendPod(server), pod)
	if apply.IsAbsent(err) || apierrors.IsForbidden(err) {
		return "", nil
	}
	return render.ProcessOf(workload.PodOf(pod)), err
}
