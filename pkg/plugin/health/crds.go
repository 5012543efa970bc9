// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/deploy/crd"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
)

// whoInstalls is the way out where a definition is another one than Freehold's.
const whoInstalls = "See docs/migration-details.md, Who installs the CRDs."

func (e *examination) crds(c *Check) error {
	definitions, err := e.Client.Definitions(crd.Kubectl)
	there := 0
	var installers []string
	for i := range definitions {
		d := &definitions[i]
		find := c.about("customresourcedefinition.apiextensions.k8s.io/"+d.Name, "")
		if d.Live == nil {
			if !e.Pre { // It comes with Freehold.
				e.missingKind(c, d, find)
			}
			continue
		}
		there++
		e.state(d, find)
		if missing := e.records(d, find); missing != nil {
			c.cannot(missing)
		}
		fields(d, find)
		by := installersOf(d)
		if installer := strings.Join(by, " and "); !slices.Contains(installers, installer) {
			installers = append(installers, installer)
		}
		if len(by) > 1 {
			find(Warning, FoundTwoInstallers, fmt.Sprintf("%s own its versions: whichever applies it next is refused, or undoes what the other has done",
				strings.Join(by, " and ")), whoInstalls)
		}
		if d.Release != "" && d.Live.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
			find(Warning, FoundHelmMayRemove, fmt.Sprintf("if the Helm release %s is uninstalled, Helm deletes it, and the API server every %s with it", d.Release, d.Kind),
				"See docs/migration-details.md, If Helm removes the CRDs.")
		}
	}
	c.Detail = fmt.Sprintf("%d of %d are there", there, len(definitions))
	if len(installers) > 0 {
		c.Detail += ", installed by " + strings.Join(installers, ", or by ")
	}
	return err
}

// missingKind reports a definition that the cluster lacks. Only MCPServers that refer to one have to have it.
func (e *examination) missingKind(c *Check, d *cluster.Definition, find func(severity State, reason, message, do string)) {
	severity, message := Error, "it is not installed: there can be no "+d.Kind
	if d.Kind != v1beta1.MCPServerKind {
		severity = Warning
		servers, err := e.servers()
		if err != nil {
			c.cannot(err)
		}
		var referring []string
		for _, server := range servers {
			if slices.ContainsFunc(configs.Of(&server.Spec), func(n configs.Named) bool { return n.Kind == d.Kind }) {
				referring = append(referring, server.Namespace+"/"+server.Name)
			}
		}
		if len(referring) > 0 {
			severity = Error
			message += ", and these MCPServers refer to one, so their proxies are not written: " + someOf(referring)
		}
	}
	find(severity, FoundNotInstalled, message, e.Client.Freehold("crd")+" | "+e.Client.Kubectl("apply", "--server-side", "-f", "-"))
}

// state checks whether a definition in the cluster is being deleted, and whether the API server serves it.
func (e *examination) state(d *cluster.Definition, find func(severity State, reason, message, do string)) {
	if d.Live.GetDeletionTimestamp() != nil {
		find(Error, FoundBeingDeleted, "it is being deleted, and every "+d.Kind+" with it", "See docs/uninstall.md, If MCPServers are stuck.")
	}
	if conditions := desired.ConditionsOf(d.Live); !meta.IsStatusConditionTrue(conditions, "Established") {
		told := "its status does not tell why"
		if refused := problem(conditions, "NamesAccepted", metav1.ConditionFalse); refused != nil {
			told = refused.Message
		}
		find(Error, FoundNotEstablished, "the API server does not serve it: "+told, e.Client.Kubectl("describe", "customresourcedefinition", d.Name))
	}
	if !d.LiveVersions[d.Resource.Version] {
		find(Error, FoundVersionNotServed, fmt.Sprintf("it does not serve the version %s, which Freehold reads and writes", d.Resource.Version), whoInstalls)
	}
	stored, _, _ := unstructured.NestedStringSlice(d.Live.Object, "status", "storedVersions")
	for _, version := range stored {
		if _, has := d.Versions[version]; !has {
			find(Warning, FoundStoredVersion, fmt.Sprintf("objects may be stored in the version %s, which Freehold's does not have: the API server would refuse Freehold's",
				version), whoInstalls)
		}
	}
}

// records finds objects with entries in managedFields of versions that their definition does not have, whether or not it serves these, and
// objects with manifests of which the API server has dropped a field.
func (e *examination) records(d *cluster.Definition, find func(severity State, reason, message, do string)) (missing error) {
	process, _ := e.process()
	var dropped []string
	objects := map[string][]string{} // by the versions of their entries
	for _, namespace := range scopes(process.Namespaces) {
		all, err := e.Client.All(d.Resource, namespace)
		if err != nil && !apierrors.IsNotFound(err) {
			missing = cmp.Or(missing, err)
		}
		for _, object := range all {
			name := object.GetNamespace() + "/" + object.GetName()
			if fields := cluster.Dropped(object, d.Kind); fields != "" {
				dropped = append(dropped, name+" ("+fields+")")
			}
			for _, entry := range object.GetManagedFields() {
				version, ofGroup := strings.CutPrefix(entry.APIVersion, d.Resource.Group+"/")
				if _, has := d.LiveVersions[version]; (!ofGroup || !has) && !slices.Contains(objects[entry.APIVersion], name) {
					objects[entry.APIVersion] = append(objects[entry.APIVersion], name)
				}
			}
		}
	}
	for _, version := range slices.Sorted(maps.Keys(objects)) {
		find(Error, FoundRecordedVersion, fmt.Sprintf("it does not have the version %s, which is in the managedFields of objects: until Freehold next writes "+
			"them, the API server refuses each server-side apply of them: %s", version, someOf(objects[version])), "See docs/upgrade.md, Storage versions.")
	}
	if len(dropped) > 0 {
		find(Error, FoundDroppedFields, "it does not have fields of manifests that were applied, so that the API server dropped them, and Freehold refuses these objects: "+
			someOf(dropped), "Write these manifests for this CRD. See docs/upgrade.md, Fields that a CRD does not have.")
	}
	return missing
}

// fields compares the fields that a definition has with those of Freehold's. Freehold writes none of spec.
func fields(d *cluster.Definition, find func(severity State, reason, message, do string)) {
	var needed, optional []string
	for _, field := range d.Missing {
		switch {
		case strings.HasPrefix(field, "version "): // Whether the one that counts is served has been looked at.
		case strings.HasPrefix(field, "spec."):
			optional = append(optional, field)
		default:
			needed = append(needed, field)
		}
	}
	if len(needed) > 0 {
		find(Error, FoundFieldsNeeded, "it lacks fields that Freehold writes: "+someOf(needed), whoInstalls)
	}
	if len(optional) > 0 {
		find(Warning, FoundFieldsMissing, fmt.Sprintf("it lacks what Freehold's has, so that no %s can have these fields: %s", d.Kind, someOf(optional)), whoInstalls)
	}
	if len(d.Narrowed) > 0 {
		find(Warning, FoundFieldsUnknown, fmt.Sprintf("it has what Freehold does not know, so that Freehold refuses each %s that uses it: %s", d.Kind, someOf(d.Narrowed)), whoInstalls)
	}
}

// installersOf returns the field managers that own the versions of a definition, with the Helm release that it belongs to.
func installersOf(d *cluster.Definition) (by []string) {
	for _, owner := range ownership.Owners(d.Live, ".spec.versions") {
		name := owner.Manager
		if name == "helm" && d.Release != "" {
			name += " (release " + d.Release + ")"
		}
		if !slices.Contains(by, name) {
			by = append(by, name)
		}
	}
	return by
}
