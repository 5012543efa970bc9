// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	plugintakeover "github.com/freehold-dev/freehold/pkg/plugin/takeover"
	"github.com/freehold-dev/freehold/pkg/takeover"
	"github.com/freehold-dev/freehold/pkg/writers"
)

type handbackOptions struct {
	planner
	all    bool
	dryRun bool
	yes    bool
	// stoppedAll is set when the user says that the operators are stopped, where they may not look for them.
	stoppedAll bool

	// unseen is set when the user may not look whether an operator runs.
	unseen bool
}

func (p *plugin) handback() *cobra.Command {
	o := &handbackOptions{planner: planner{plugin: p}}
	cmd := &cobra.Command{
		Use:   "handback mcpserver/NAME... | -A",
		Short: "Hand MCPServers back to ToolHive",
		Long: `Hand MCPServers back to ToolHive. Everything that Freehold's operator owns of them and of their
objects passes to ToolHive's field managers: ToolHive's runners may write the backend again, the
StatefulSet owns the backend's Services, the runner's Role has the rights that ToolHive gives it,
and what ToolHive does not know is removed.

What MCPServers refer to, such as MCPOIDCConfigs and MCPGroups, goes back with the last MCPServer of
Freehold's that refers to it; with -A all of it. Its finalizer and its status become those of
ToolHive's operator.

Both operators must be stopped meanwhile. The plugin looks for them first, and writes nothing if it
finds one, or if you may not see them and do not say --operators-stopped. It also writes nothing if
an MCPServer, MCPWebhookConfig or MCPExternalAuthConfig has a duration such as 2d: ToolHive's
operator cannot read that, and would reconcile no MCPServer any more. You see the change, checked,
before you are asked. The plugin changes one object after the other, each guarded against changes in
between; if you interrupt it, run it again.

You need every right that the runner's Role grants.`,
		Example: examples(`
kubectl freehold handback mcpserver/web --dry-run
kubectl freehold handback mcpserver/web
kubectl freehold handback -A --yes`),
		ValidArgsFunction: p.completeMoreServers,
		RunE:              func(_ *cobra.Command, args []string) error { return o.run(args) },
	}
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "Hand the MCPServers of all namespaces back.")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Show the change, let the API server check it, and write nothing.")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "Do not ask.")
	cmd.Flags().BoolVar(&o.stoppedAll, "operators-stopped", false,
		"Go on where you may not look whether an operator runs. An operator that does is an obstacle all the same.")
	return cmd
}

// handed is the handback of one MCPServer, or of one object that MCPServers refer to.
type handed struct {
	// object as kubectl takes it, and its namespace.
	object, namespace string
	// generation of an MCPServer; 0 for another object.
	generation int64
	returns    []takeover.Return
}

func (o *handbackOptions) run(args []string) (err error) {
	if len(args) == 0 && !o.all {
		return fmt.Errorf("name MCPServers, such as mcpserver/web, or give -A for all")
	}
	if err := checkNames(args, o.all); err != nil {
		return err
	}
	if o.client, err = o.plugin.client(); err != nil {
		return err
	}
	servers, err := o.named(args, o.all)
	if err != nil {
		return err
	}
	configs, err := o.configsOf(servers)
	if err != nil {
		return err
	}
	alone, err := o.stopped(cluster.Freehold, servers, configs)
	if err != nil {
		return err
	}
	plans, err := o.plan(servers)
	if err != nil {
		return err
	}
	for _, config := range configs {
		plans = append(plans, handed{
			object: takeover.RefOf(config).String(), namespace: config.GetNamespace(), returns: takeover.HandbackAlone(config),
		})
	}
	if alone && len(plans) == 0 {
		// After a handback ToolHive's operator is to run, and the user may come here again.
		fmt.Fprintln(o.Out, "Freehold owns nothing of them.")
		return nil
	}
	free, err := o.mayBegin(servers, configs)
	if err != nil {
		return err
	}
	hindered, err := o.show(plans)
	switch {
	case err != nil:
		return err
	case !alone || !free || hindered:
		return errFound
	case o.unseen && !o.stoppedAll:
		return &exit{ExitFailed, errors.New("whether both operators are stopped is not known, so nothing was written; if they are, give --operators-stopped")}
	case o.dryRun:
		fmt.Fprintln(o.Out, "Nothing was written (dry run).")
		return nil
	}
	asking := annotator{planner: o.planner, yes: o.yes}
	if err := asking.ask(); err != nil {
		return err
	}
	for _, p := range plans {
		for i := range p.returns {
			if err := o.giveBack(&p.returns[i]); err != nil {
				return fmt.Errorf("%s is handed back in part; run it again: %w", p.object, err)
			}
		}
		fmt.Fprintf(o.Out, "%s (namespace %s) is handed back.\n", p.object, p.namespace)
	}
	fmt.Fprintln(o.Out, "Now start ToolHive's operator. Until then the proxies serve as they are, and an edit has no effect.")
	return nil
}

// configsOf returns the objects that go back with the MCPServers that refer to them: all of them if all MCPServers go back,
// otherwise those to which no MCPServer refers that stays Freehold's.
func (o *handbackOptions) configsOf(servers []*v1beta1.MCPServer) ([]*unstructured.Unstructured, error) {
	found, err := o.configs(o.all)
	held := slices.DeleteFunc(found, func(config *unstructured.Unstructured) bool { return len(takeover.HandbackAlone(config)) == 0 })
	if err != nil || o.all {
		return held, err
	}
	staying, err := o.client.Servers(o.client.Namespace)
	if apierrors.IsForbidden(err) {
		o.warn("%v; what MCPServers refer to stays Freehold's", err)
		return nil, nil
	}
	staying = slices.DeleteFunc(staying, func(server *v1beta1.MCPServer) bool {
		named := slices.ContainsFunc(servers, func(s *v1beta1.MCPServer) bool { return s.UID == server.UID })
		return named || !managers.Owns(server, managers.Finalizer, "")
	})
	return slices.DeleteFunc(held, func(config *unstructured.Unstructured) bool {
		refers := func(server *v1beta1.MCPServer) bool { return cluster.RefersTo(server, config) }
		if !slices.ContainsFunc(servers, refers) {
			return true
		}
		i := slices.IndexFunc(staying, refers)
		if i >= 0 {
			o.warn("%s stays Freehold's, as MCPServer %s does, which refers to it", takeover.RefOf(config), staying[i].Name)
		}
		return i >= 0
	}), err
}

// plan reads the objects to hand back.
func (o *handbackOptions) plan(servers []*v1beta1.MCPServer) ([]handed, error) {
	var plans []handed
	for _, server := range servers {
		if server.DeletionTimestamp != nil {
			o.warn("MCPServer %s is being deleted, and left out", server.Name)
			continue
		}
		live, err := o.client.Get(cluster.ServerRef(server.Namespace, server.Name))
		if err != nil {
			return nil, err
		}
		children, err := o.client.Children(live)
		if err != nil {
			return nil, err
		}
		if len(children.Unreadable) > 0 {
			return nil, fmt.Errorf("you may not read %s, so MCPServer %s cannot be handed back", children.Unreadable[0], server.Name)
		}
		if returns := takeover.Handback(live, children.Owned); len(returns) > 0 {
			plans = append(plans, handed{"mcpserver/" + server.Name, server.Namespace, server.Generation, returns})
		}
		for _, annotation := range slices.Sorted(maps.Keys(server.Annotations)) {
			if strings.HasPrefix(annotation, v1beta1.AnnotationPrefix) && stays(server, annotation) {
				o.warn("MCPServer %s keeps the annotation %s, which another client set: %s",
					server.Name, annotation, o.client.Unannotate(server.Namespace, server.Name, annotation))
			}
		}
	}
	return plans, nil
}

// stays reports whether an annotation of an MCPServer is there after a handback: another field manager than Freehold's owns it, or none.
func stays(server *v1beta1.MCPServer, annotation string) bool {
	owners := ownership.Owners(server, ".metadata.annotations."+annotation)
	return len(owners) == 0 || slices.ContainsFunc(owners, func(o ownership.Owner) bool {
		return o.Manager != managers.Plugin && managers.ClassOf(o.Manager, "") != managers.ClassFreehold
	})
}

// show shows what changes, after the API server has checked it. hindered means that something cannot be done.
func (o *handbackOptions) show(plans []handed) (hindered bool, err error) {
	schema := writers.Schema()
	for _, p := range plans {
		answer := printers.Handback{Object: p.object, Namespace: p.namespace, Generation: p.generation}
		for i := range p.returns {
			r := &p.returns[i]
			after, contested, err := r.Result(schema)
			if err != nil {
				return false, fmt.Errorf("%s: %w", r.Ref, err)
			}
			for _, c := range contested {
				answer.Blockers = append(answer.Blockers, printers.Blocker{
					Object: r.Ref.String(), Reason: printers.BlockerContested, Message: fmt.Sprintf("%s is held by %s", c.Path, c.Owners[0]),
				})
			}
			if after == nil {
				continue
			}
			changes, err := plugintakeover.Changes(schema, r.Live, after)
			if err != nil {
				return false, err
			}
			if refusal := o.try(r, after, changes); refusal != nil {
				answer.Blockers = append(answer.Blockers, *refusal)
			}
			told := printers.ObjectTakeover{Object: r.Ref.String(), Action: printers.ActionNone}
			if told.Changes = changes; len(changes) > 0 {
				told.Action = printers.ActionChange
			}
			if r.Subresource == "" {
				answer.Objects = append(answer.Objects, told)
			}
			if plugintakeover.Restarts(changes) {
				answer.BackendChanges, answer.OnDelete = true, plugintakeover.IsOnDelete(after)
			}
		}
		if err := answer.Print(o.Out, o.palette); err != nil {
			return false, err
		}
		hindered = hindered || len(answer.Blockers) > 0
	}
	return hindered, nil
}

// try lets the API server check the changes that are more than marks, and whether it applies anything at all.
func (o *handbackOptions) try(r *takeover.Return, after *unstructured.Unstructured, changes []plugintakeover.Change) *printers.Blocker {
	if r.Ref.Kind.Group == managers.MCPServer.Group && r.Subresource == "" {
		nothing := map[string]any{"apiVersion": r.Live.GetAPIVersion(), "kind": r.Live.GetKind(), "metadata": map[string]any{"name": r.Ref.Name}}
		if _, err := o.client.Try(managers.Plugin, r.Ref, r.Live, nothing); apply.GoneVersion(err) != "" {
			return &printers.Blocker{Object: r.Ref.String(), Reason: printers.BlockerRefused, Message: oneLine(err)}
		}
	}
	if r.Subresource != "" || !slices.ContainsFunc(changes, func(c plugintakeover.Change) bool { return !strings.HasPrefix(c.Path, ".metadata.annotations.") }) {
		return nil
	}
	if _, err := o.client.TryReplace(r.Ref, after); err != nil {
		message := oneLine(err)
		if apierrors.IsForbidden(err) && r.Ref.Kind == managers.Role {
			message += " (you have to have the rights that ToolHive's Role gives its runner)"
		}
		return &printers.Blocker{Object: r.Ref.String(), Reason: printers.BlockerRefused, Message: message}
	}
	return nil
}

// giveBack hands one object back. Its status may change meanwhile, again and again while its pods are replaced.
func (o *handbackOptions) giveBack(r *takeover.Return) error {
	read := func() (*unstructured.Unstructured, error) {
		now, err := o.client.Get(r.Ref)
		if err == nil && now.GetUID() != r.Live.GetUID() {
			err = errors.New("it is another object now")
		}
		return now, err
	}
	err := cluster.Retry(r.Live, read, func(live *unstructured.Unstructured) error { return o.give(r, live) })
	if err != nil {
		return fmt.Errorf("%s: %w", r.Ref, err)
	}
	return nil
}

// give does the three steps of an object, as far as they are still to be done.
func (o *handbackOptions) give(r *takeover.Return, live *unstructured.Unstructured) error {
	now := o.Clock.Now()
	patch, err := r.Gather(live, now)
	if err != nil {
		return err
	}
	if patch != nil {
		if live, err = o.client.EditClaims(r.Ref, patch); err != nil {
			return err
		}
	}
	config, err := r.Config(writers.Schema(), live)
	if err != nil {
		return err
	}
	if live, err = o.client.Apply(r.Ref, r.Subresource, config); err != nil {
		return err
	}
	if patch, err = r.Pass(live, now); err != nil || patch == nil {
		return err
	}
	_, err = o.client.EditClaims(r.Ref, patch)
	return err
}
