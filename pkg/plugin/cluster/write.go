// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
)

// patience is how long a write is tried again whose object has changed since it was read: within 10 s, as its status changes often
// while pods are replaced.
var patience = wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 10}

// Retry calls write with what was seen, and with what read returns each time the API server says that the object has changed since: ten
// times in all. A disagreement about a field is no such race. It returns the first other error of either.
func Retry[T any](seen T, read func() (T, error), write func(T) error) error {
	raced := false
	err := retry.OnError(patience, lostRace, func() (err error) {
		if raced {
			if seen, err = read(); err != nil {
				return err
			}
		}
		raced = true
		return write(seen)
	})
	if lostRace(err) {
		return fmt.Errorf("it changes all the time: %w", err)
	}
	return err
}

func lostRace(err error) bool {
	return apierrors.IsConflict(err) && !apply.ByAdmission(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// Annotate sets one of the plugin's annotations on an MCPServer, by server-side apply without force; an empty value
// removes it. The other annotation, if the plugin owns it, stays. It fails if the annotations have changed since server
// was read. A dry run changes nothing; its answer is the object as it would be.
func (c *Client) Annotate(server *v1beta1.MCPServer, annotation, value string, dryRun bool) (*v1beta1.MCPServer, error) {
	helper, err := c.helper(managers.MCPServer)
	if err != nil {
		return nil, err
	}
	helper = helper.WithFieldManager(managers.Plugin).DryRun(dryRun)
	if !dryRun {
		c.configMaps = nil
	}
	ref := ServerRef(server.Namespace, server.Name)
	read := func() (*v1beta1.MCPServer, error) {
		now, err := as[v1beta1.MCPServer](c.Get(ref))
		if err == nil && (now.UID != server.UID || !maps.Equal(requests(now), requests(server))) {
			err = fmt.Errorf("MCPServer %s was changed by another client meanwhile; try again", server.Name)
		}
		return now, err
	}
	var after *v1beta1.MCPServer
	err = Retry(server, read, func(now *v1beta1.MCPServer) error {
		body, err := json.Marshal(annotated(now, annotation, value))
		if err != nil {
			return err
		}
		after, err = as[v1beta1.MCPServer](c.patch(helper, ref, types.ApplyPatchType, body))
		return err
	})
	if apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		return nil, c.Held(server, annotation)
	}
	return after, err
}

// Unannotate returns the command that removes an annotation from an MCPServer, whichever field manager owns it.
func (c Caller) Unannotate(namespace, server, annotation string) string {
	return c.Kubectl("annotate", "-n", namespace, ServerRef(namespace, server).String(), annotation+"-")
}

// requests returns the annotations that the plugin writes.
func requests(server *v1beta1.MCPServer) map[string]string {
	found := map[string]string{}
	for _, annotation := range []string{v1beta1.AnnotationTake, v1beta1.AnnotationYield} {
		if value, ok := server.Annotations[annotation]; ok {
			found[annotation] = value
		}
	}
	return found
}

// annotated returns the apply configuration: the annotation, the other one if the plugin owns it, and the preconditions
// that make it fail if the MCPServer is not the one that was seen.
func annotated(server *v1beta1.MCPServer, annotation, value string) map[string]any {
	annotations := map[string]any{}
	for key, before := range requests(server) {
		if Ours(server, key) {
			annotations[key] = before
		}
	}
	annotations[annotation] = value
	if value == "" {
		delete(annotations, annotation)
	}
	metadata := map[string]any{
		"name": server.Name, "namespace": server.Namespace,
		"uid": string(server.UID), "resourceVersion": server.ResourceVersion,
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	return map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": v1beta1.MCPServerKind, "metadata": metadata,
	}
}

// Ours reports whether the plugin owns an annotation of an MCPServer.
func Ours(server *v1beta1.MCPServer, annotation string) bool {
	return slices.ContainsFunc(ownership.Owners(server, annotationPath(annotation)), func(o ownership.Owner) bool {
		return o.Manager == managers.Plugin
	})
}

func annotationPath(annotation string) string { return ".metadata.annotations." + annotation }

// Held returns the error that another field manager owns an annotation that the plugin was to write.
func (c Caller) Held(server *v1beta1.MCPServer, annotation string) error {
	var by []string
	for _, o := range ownership.Owners(server, annotationPath(annotation)) {
		if o.Manager != managers.Plugin {
			by = append(by, o.String())
		}
	}
	return fmt.Errorf("the annotation %s is %q and held by field manager %s: to let the plugin write it, remove it first: %s",
		annotation, server.Annotations[annotation], strings.Join(by, ", "), c.Unannotate(server.Namespace, server.Name, annotation))
}

// Try returns what the API server would make of an object if one of the operator's writers applied something to it. It
// is always a dry run, and not forced.
func (c *Client) Try(writer string, ref apply.ObjectRef, live *unstructured.Unstructured, want map[string]any) (*unstructured.Unstructured, error) {
	helper, err := c.helper(ref.Kind, func(config *rest.Config) {
		// A warning would be about the writer, which is the operator's, and about the user, who is not the operator.
		config.WarningHandler = rest.NoWarnings{}
		if c.TryAs != "" {
			config.Impersonate = rest.ImpersonationConfig{UserName: c.TryAs}
		}
	})
	if err != nil {
		return nil, err
	}
	want = (&unstructured.Unstructured{Object: want}).DeepCopy().Object
	precondition := map[string]string{"resourceVersion": "1"} // which no object has any more: it can but create one
	if live != nil {
		precondition = map[string]string{"uid": string(live.GetUID()), "resourceVersion": live.GetResourceVersion()}
	}
	for key, value := range precondition {
		if err := unstructured.SetNestedField(want, value, "metadata", key); err != nil {
			return nil, err
		}
	}
	body, err := json.Marshal(want)
	if err != nil {
		return nil, err
	}
	return c.patch(helper.WithFieldManager(writer).DryRun(true), ref, types.ApplyPatchType, body)
}

// TryReplace returns what the API server would make of an object if it was replaced by another state of itself: with
// defaults filled in, and validated. It is always a dry run. The user needs the right to update the object.
func (c *Client) TryReplace(ref apply.ObjectRef, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	helper, err := c.helper(ref.Kind, func(config *rest.Config) { config.WarningHandler = rest.NoWarnings{} })
	if err != nil {
		return nil, err
	}
	object = object.DeepCopy()
	object.SetManagedFields(nil)
	// Who changes the object meanwhile, its status perhaps, again and again, does not matter to a dry run. The UID still tells it from
	// another object of that name.
	var answer *unstructured.Unstructured
	err = retry.OnError(retry.DefaultBackoff, lostRace, func() error {
		object.SetResourceVersion("") // Replace reads the present one.
		answer, err = asUnstructured(helper.WithFieldManager(managers.Plugin).DryRun(true).Replace(ref.Namespace, ref.Name, true, object))
		return err
	})
	return answer, err
}

// EditClaims sends an edit of an object's managedFields.
func (c *Client) EditClaims(ref apply.ObjectRef, patch []byte) (*unstructured.Unstructured, error) {
	return c.handOver(ref, "", types.JSONPatchType, patch)
}

// Apply applies a user's own field manager's fields to an object, or its status, without force. The configuration has
// the object's UID and resourceVersion in it.
func (c *Client) Apply(ref apply.ObjectRef, subresource string, config map[string]any) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	return c.handOver(ref, subresource, types.ApplyPatchType, body)
}

// expected passes on all warnings except those of a policy that warns of exactly this write.
type expected struct{ next rest.WarningHandler }

func (e expected) HandleWarningHeader(code int, agent, text string) {
	if !strings.Contains(text, OwnedFieldsPolicy) {
		e.next.HandleWarningHeader(code, agent, text)
	}
}

func (c *Client) handOver(ref apply.ObjectRef, subresource string, kind types.PatchType, body []byte) (*unstructured.Unstructured, error) {
	helper, err := c.helper(ref.Kind, func(config *rest.Config) {
		if config.WarningHandler != nil {
			config.WarningHandler = expected{config.WarningHandler}
		}
	})
	if err != nil {
		return nil, err
	}
	c.configMaps = nil
	return c.patch(helper.WithFieldManager(managers.Plugin).WithSubresource(subresource), ref, kind, body)
}

// patch sends a patch. An answer that its user cannot understand is explained.
func (c *Client) patch(helper *resource.Helper, ref apply.ObjectRef, kind types.PatchType, body []byte) (*unstructured.Unstructured, error) {
	answer, err := asUnstructured(helper.Patch(ref.Namespace, ref.Name, kind, body, &metav1.PatchOptions{}))
	if version := apply.GoneVersion(err); version != "" {
		return nil, fmt.Errorf("%s has managedFields in the version %s, which its CustomResourceDefinition no longer has, so that nothing can be applied "+
			"to it: see %s: %w", ref, version, c.Freehold("doctor"), err)
	}
	return answer, err
}
