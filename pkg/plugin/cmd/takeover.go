// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/inventory"
	"github.com/freehold-dev/freehold/pkg/plugin/cluster"
	"github.com/freehold-dev/freehold/pkg/plugin/desired"
	"github.com/freehold-dev/freehold/pkg/plugin/printers"
	"github.com/freehold-dev/freehold/pkg/plugin/takeover"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/request"
	"github.com/freehold-dev/freehold/pkg/writers"
)

type takeoverOptions struct {
	viewer
	preview bool
}

func (p *plugin) takeover() *cobra.Command {
	o := &takeoverOptions{viewer: viewer{planner: planner{plugin: p}}}
	cmd := &cobra.Command{
		Use:   "takeover --preview [mcpserver/NAME... | -A]",
		Short: "Show what would change if Freehold took MCPServers over from ToolHive",
		Long: `Show what would change if Freehold's operator took MCPServers over from ToolHive: for each object
the fields that get another value, which pods are replaced and why, the order of the steps, and the
obstacles. It also names the settings of ToolHive's operator that Freehold's lacks. Without a name
it looks at all MCPServers of the namespace, with -A at all. Freehold need not be installed: without
the operator's Deployment the preview assumes the arguments of deploy/install.yaml, or those that
--operator-arg gives.

Nothing is written. The plugin merges what the operator wants with the code of the operator and of
the API server, and sends the result to the API server as a dry run, which fills in defaults and
validates it. For that you need the right to update the objects. The exit code is 1 when there is an
obstacle or a conflict, and otherwise 2 when you may not see whether ToolHive's operator runs, or
whether a policy keeps it from writing.

The takeover itself is the operator's to do.`,
		Example: examples(`
kubectl freehold takeover --preview -A
kubectl freehold takeover --preview mcpserver/web -o wide

# Which backends restart?
kubectl freehold takeover --preview -A -o json |
  jq -r '.servers[] | select(.pods[] | .of == "backend" and .replaced) | .name'`),
		ValidArgsFunction: p.completeMoreServers,
		RunE:              func(_ *cobra.Command, args []string) error { return o.run(args) },
	}
	cmd.Flags().BoolVar(&o.preview, "preview", false, "Show what would change. It is required: the operator does the takeover.")
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "Look at the MCPServers of all namespaces.")
	o.outputFlag(cmd, "Default: tables. wide shows whole values, and why they change.")
	o.addFlags(cmd)
	return cmd
}

func (o *takeoverOptions) run(args []string) error {
	if !o.preview {
		return fmt.Errorf("the operator takes MCPServers over (see its flag --takeover); give --preview to see what will change")
	}
	if err := o.prepare(args); err != nil {
		return err
	}
	servers, err := o.named(args, o.all)
	if err != nil {
		return err
	}
	if _, err := o.settingsOf(o.operator); err != nil && !errors.Is(err, cluster.ErrNoOperator) {
		return err
	}
	o.noteDefinitions(servers)
	answer := printers.Takeovers{Operators: []cluster.Running{}, Servers: []printers.ServerTakeover{}}
	if answer.Operators, answer.NotChecked, err = o.writing(servers); err != nil {
		return err
	}
	var theirs []*v1beta1.MCPServer
	for _, server := range servers {
		found, err := o.look(server)
		if err != nil {
			return fmt.Errorf("MCPServer %s: %w", server.Name, err)
		}
		answer.Servers = append(answer.Servers, *found)
		if found.Standing == string(takeover.OfToolHive) {
			theirs = append(theirs, server)
		}
	}
	if answer.Settings, err = o.lostSettings(theirs); err != nil {
		return err
	}
	return o.answer(answer, answer.Hindered(), len(answer.NotChecked) > 0)
}

// writing are ToolHive's operators that look after one of the MCPServers and that no admission policy keeps from writing there. unknown
// says where that is not known, and of which operators.
func (s *planner) writing(servers []*v1beta1.MCPServer) (operators []cluster.Running, unknown []string, err error) {
	found, unknown, err := s.inTheWay(cluster.ToolHive, servers, nil)
	if err != nil {
		return nil, nil, err
	}
	operators = []cluster.Running{}
	for _, operator := range found {
		open, err := s.client.OpenTo(operator, cluster.NamespacesOf(servers))
		if err != nil {
			if answer := apierrors.APIStatus(nil); errors.As(err, &answer) && !apierrors.IsForbidden(err) {
				return nil, nil, err
			}
			unknown = append(unknown, fmt.Sprintf("whether ToolHive's operator writes these MCPServers (%s in namespace %s): %s", operator.Object, operator.Namespace, oneLine(err)))
		}
		if len(open.Namespaces) == 0 {
			continue
		}
		if open.Why != "" {
			operator.How += fmt.Sprintf("; the policy %s does not keep it from MCPServers: %s", cluster.OperatorFence.Name, open.Why)
		}
		operators = append(operators, operator)
	}
	return operators, unknown, nil
}

// look works out what a takeover of one MCPServer would change.
func (o *takeoverOptions) look(server *v1beta1.MCPServer) (*printers.ServerTakeover, error) {
	found := &printers.ServerTakeover{
		Namespace: server.Namespace, Name: server.Name, Blockers: []printers.Blocker{}, Contested: []printers.ContestedField{},
		Pods: []printers.PodsTakeover{}, Objects: []printers.ObjectTakeover{},
	}
	block := func(object, reason, message string) {
		found.Blockers = append(found.Blockers, printers.Blocker{Object: object, Reason: reason, Message: message})
	}
	in, children, err := o.lookAt(server)
	if err != nil {
		return nil, err
	}
	found.Standing = string(takeover.StandingOf(server, children.Owned))
	for _, ref := range children.Unreadable {
		block(ref.String(), printers.BlockerUnreadable, "you may not read it, so what becomes of it is not known")
	}
	for _, ref := range children.Foreign {
		block(ref.String(), v1beta1.ReasonObjectNotOurs, children.Why[ref])
	}
	if server.DeletionTimestamp != nil {
		found.Notices = append(found.Notices, "It is being deleted; Freehold would see to that.")
		return found, nil
	}
	if found.Standing != string(takeover.OfToolHive) {
		return found, nil
	}
	if in.Process, err = o.client.Process(server.Namespace, server.Name); err != nil {
		return nil, err
	}
	plan, err := takeover.New(in)
	if invalid, ok := errors.AsType[*render.InvalidError](err); ok {
		follows := " ToolHive's objects stay as they are."
		if in.References.Unread() {
			follows = " So it is not known whether it can be taken over."
		}
		for _, problem := range invalid.Problems {
			block("", problem.Reason, problem.Message+follows)
		}
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	for _, problem := range plan.Held {
		block(inventory.Proxy.Ref(server.Namespace, server.Name).String(), problem.Reason, problem.Message)
	}
	if len(plan.Held) > 0 {
		found.Notices = append(found.Notices, "The takeover was begun and goes on: "+heldProxy(server, in.References.Unread())+".")
	}
	for _, notice := range plan.Notices {
		found.Notices = append(found.Notices, notice.Reason+": "+notice.Message)
	}
	// What is refused or belongs to another owner is not written; what may not be read is not known.
	plan.Objects = slices.DeleteFunc(plan.Objects, func(object takeover.Object) bool {
		return children.Hides(object.Ref) || slices.Contains(children.Foreign, object.Ref)
	})
	return found, o.objects(found, server, plan)
}

// objects asks the API server how each object would change, and records the answers.
func (o *takeoverOptions) objects(found *printers.ServerTakeover, server *v1beta1.MCPServer, plan *takeover.Plan) error {
	after := make([]*unstructured.Unstructured, len(plan.Objects))
	refusals := make([]error, len(plan.Objects))
	var group errgroup.Group
	for i := range plan.Objects {
		object := &plan.Objects[i]
		if after[i] = object.Merged; object.Live == nil || object.Merged == nil {
			continue
		}
		changes, err := takeover.Changes(writers.Schema(), object.Live, object.Merged)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(changes, func(c takeover.Change) bool { return !strings.HasPrefix(c.Path, ".metadata.annotations.") }) {
			continue // There is nothing to fill in or to refuse.
		}
		group.Go(func() error {
			answer, err := o.client.TryReplace(object.Ref, object.Merged)
			if refusals[i] = err; err == nil {
				after[i] = answer
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i := range plan.Objects {
		if err := o.object(found, server, &plan.Objects[i], after[i], refusals[i]); err != nil {
			return err
		}
	}
	o.settlements(found, server)
	return nil
}

func (o *takeoverOptions) object(
	found *printers.ServerTakeover, server *v1beta1.MCPServer, object *takeover.Object, after *unstructured.Unstructured, refusal error,
) error {
	told := printers.ObjectTakeover{Object: object.Ref.String(), When: string(object.When), Action: printers.ActionNone}
	switch {
	case refusal == nil:
	case apierrors.IsForbidden(refusal) && !apply.ByAdmission(refusal):
		told.Unchecked = true
		o.warn("you may not update %s, so the API server did not check it, and what it fills in by itself is shown as a change", object.Ref)
	case !apply.ByAdmission(refusal) && (apierrors.IsConflict(refusal) || apply.IsAbsent(refusal)):
		told.Unchecked = true
		found.Notices = append(found.Notices, fmt.Sprintf("%s was changed meanwhile, so the API server did not check it; look again", object.Ref))
	default:
		found.Blockers = append(found.Blockers, printers.Blocker{
			Object: object.Ref.String(), Reason: printers.BlockerRefused, Message: "the API server would not accept it: " + oneLine(refusal),
		})
		told.Unchecked = true
	}
	switch {
	case object.Live == nil:
		told.Action = printers.ActionCreate
		if object.Predecessor == nil {
			break
		}
		changes, err := takeover.Changes(writers.Schema(), object.Predecessor, after)
		if err != nil {
			return err
		}
		// Its content is what proxies read.
		told.Changes = slices.DeleteFunc(changes, func(c takeover.Change) bool { return !strings.HasPrefix(c.Path, ".data.") })
	case object.Merged == nil:
		told.Action = printers.ActionDelete
	default:
		changes, err := takeover.Changes(writers.Schema(), object.Live, after)
		if err != nil {
			return err
		}
		if told.Changes = changes; len(changes) > 0 {
			told.Action = printers.ActionChange
		}
		for _, path := range object.Free {
			free := printers.FreeField{Path: path}
			if path == render.ReplicasPath {
				free.Value, _, _ = unstructured.NestedInt64(object.Live.Object, "spec", "replicas")
			}
			told.Free = append(told.Free, free)
		}
	}
	found.Objects = append(found.Objects, told)
	if of := takeover.Pods(object.Ref); of != "" && object.Live != nil {
		found.Pods = append(found.Pods, podsOf(of, object, told))
	}
	taken := request.Read(server.Annotations[v1beta1.AnnotationTake])
	var contested []desired.Contested
	for _, c := range object.Contested {
		if takeover.Taken(c, taken) {
			found.Notices = append(found.Notices, fmt.Sprintf("%s of %s is taken, as the MCPServer asks", c.Path, object.Ref))
			continue
		}
		contested = append(contested, c)
	}
	found.Contested = append(found.Contested, printers.ContestedFields(contested)...)
	return nil
}

func podsOf(of string, object *takeover.Object, told printers.ObjectTakeover) printers.PodsTakeover {
	pods := printers.PodsTakeover{Of: of, Object: told.Object}
	pods.Pods, _, _ = unstructured.NestedInt64(object.Live.Object, "spec", "replicas")
	for _, c := range told.Changes {
		if c.Restarts {
			pods.Replaced = true
			pods.Because = append(pods.Because, c.Path)
		}
	}
	return pods
}

// settlements adds the commands that settle what is contested. They work before the operator is installed as well.
func (o *takeoverOptions) settlements(found *printers.ServerTakeover, server *v1beta1.MCPServer) {
	if len(found.Contested) == 0 {
		return
	}
	annotate := func(verb, annotation string) string {
		var fields []request.Selector
		for _, c := range found.Contested {
			if annotation == v1beta1.AnnotationTake || c.Leavable {
				fields = append(fields, request.Selector{Object: c.Object, Path: request.Settling(c.Path, c.Ours == nil)})
			}
		}
		if len(fields) == 0 {
			return ""
		}
		entries := append(request.Read(server.Annotations[annotation]), fields...)
		if !request.Fits(entries) {
			return o.client.Freehold(verb, "-n", server.Namespace, "mcpserver/"+server.Name)
		}
		return o.client.Kubectl("annotate", "-n", server.Namespace, cluster.ServerRef(server.Namespace, server.Name).String(),
			"--overwrite", annotation+"="+request.Write(entries))
	}
	found.Take, found.Yield = annotate("take", v1beta1.AnnotationTake), annotate("yield", v1beta1.AnnotationYield)
	found.Notices = append(found.Notices, "Nothing is written of an object that is contested until that is settled; shown is what follows if it is taken.")
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
