// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/deploy"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/pkg/render"
	operatorsettings "github.com/freehold-dev/freehold/pkg/settings"
)

const (
	// creators is how many MCPServers are made at a time: more than anybody works on, so that making them is never
	// what is waited for.
	creators = 16
	// pollInterval is how often something is looked at that cannot be watched.
	pollInterval = 100 * time.Millisecond
)

// deployed is how the operator is set up by install.yaml, as far as it counts here.
type deployed struct {
	args, env []string
	rendering render.Options
}

// readDeployed reads the operator's log level, its environment and the image of the proxyrunner.
func readDeployed() (d deployed, err error) {
	objects, err := operator.Decode([]byte(deploy.Install))
	if err != nil {
		return d, fmt.Errorf("cannot read install.yaml: %w", err)
	}
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
	if i < 0 {
		return d, errors.New("install.yaml has no Deployment")
	}
	containers, _, err := unstructured.NestedSlice(objects[i].Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) == 0 {
		return d, fmt.Errorf("the Deployment of install.yaml has no container: %w", err)
	}
	var container struct {
		Args []string `json:"args"`
		Env  []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"env"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(containers[0].(map[string]any), &container); err != nil {
		return d, fmt.Errorf("cannot read the Deployment of install.yaml: %w", err)
	}
	for _, arg := range container.Args {
		if strings.HasPrefix(arg, "-v=") {
			d.args = append(d.args, arg)
		}
	}
	env := map[string]string{}
	for _, variable := range container.Env {
		if variable.Value == "" {
			continue // it is about the pod
		}
		d.env = append(d.env, variable.Name+"="+variable.Value)
		env[variable.Name] = variable.Value
	}
	d.rendering = operatorsettings.New(func(name string) (string, bool) { value, ok := env[name]; return value, ok }).Options(false)
	return d, nil
}

const (
	// manifestServers is for how many MCPServers the limits of install.yaml are, and kiBPerServer is what to raise them by for each one
	// more: docs/architecture.md.
	manifestServers, kiBPerServer = 1000, 80
	memoryLimit                   = "GOMEMLIMIT="
)

// limitedEnv returns the environment with the limit on memory that docs/architecture.md advises for a number of MCPServers. With less,
// the Go runtime would collect garbage half of the time.
func (d *deployed) limitedEnv(servers int) ([]string, error) {
	i := slices.IndexFunc(d.env, limitsMemory)
	if i < 0 {
		return nil, errors.New("install.yaml does not set GOMEMLIMIT")
	}
	var manifest int
	if _, err := fmt.Sscanf(d.env[i], memoryLimit+"%dMiB", &manifest); err != nil {
		return nil, fmt.Errorf("cannot read %s of install.yaml: %w", d.env[i], err)
	}
	env := slices.Clone(d.env)
	env[i] = fmt.Sprintf(memoryLimit+"%dMiB", manifest+max(0, servers-manifestServers)*kiBPerServer/1024)
	return env, nil
}

// unlimitedEnv returns the environment without a limit on memory, for a comparison with programs that have none.
func (d *deployed) unlimitedEnv() []string {
	return slices.DeleteFunc(slices.Clone(d.env), limitsMemory)
}

func limitsMemory(variable string) bool { return strings.HasPrefix(variable, memoryLimit) }

// newServers returns MCPServers to be made: the sample of a transport, as often as asked for.
func newServers(p places, transport v1beta1.Transport) ([]*v1beta1.MCPServer, error) {
	samples, err := operator.Samples()
	if err != nil {
		return nil, err
	}
	for _, sample := range samples {
		if of, _, _ := unstructured.NestedString(sample.Object, "spec", "transport"); of != string(transport) {
			continue
		}
		servers := make([]*v1beta1.MCPServer, 0, p.servers)
		for i := range p.servers {
			server := &v1beta1.MCPServer{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(sample.Object, server); err != nil {
				return nil, err
			}
			server.ObjectMeta = metav1.ObjectMeta{Namespace: p.namespaceOf(i), Name: serverName(i)}
			servers = append(servers, server)
		}
		return servers, nil
	}
	return nil, fmt.Errorf("no sample has transport %s", transport)
}

// serverName is the name of the MCPServer of a number.
func serverName(i int) string { return fmt.Sprintf("server-%05d", i) }

// childrenOf names what is rendered for MCPServers.
func childrenOf(servers []*v1beta1.MCPServer) ([]string, error) {
	names := sets.New[string]()
	for _, server := range servers {
		result, err := render.Render(render.Input{Server: server}, render.Options{})
		if err != nil {
			return nil, fmt.Errorf("cannot render MCPServer %s: %w", server.Name, err)
		}
		for _, intent := range result.Intents {
			names.Insert(child(intent.Kind.Kind, intent.Name))
		}
	}
	return names.UnsortedList(), nil
}

// arrival is when milestones were reached, counted from before the first MCPServer was made.
type arrival map[milestone]time.Duration

// String tells the milestones in seconds.
func (a arrival) String() string {
	var parts []string
	for _, m := range []milestone{childrenExist, proxiesReady, serversReady} {
		if took, ok := a[m]; ok {
			parts = append(parts, fmt.Sprintf("%s after %.2f s", m, took.Seconds()))
		}
	}
	return strings.Join(parts, ", ")
}

// load says which MCPServers are made.
type load struct {
	places
	// transport of all of them. Default: streamable-http, whose sample has the most children.
	transport v1beta1.Transport
	// children names what is made for them. Default: childrenOf.
	children func([]*v1beta1.MCPServer) ([]string, error)
	// handOn is called for each that was made, if it is not nil.
	handOn func(*v1beta1.MCPServer)
}

// converge makes MCPServers as fast as a client can, in namespaces that it makes before, and waits for milestones.
//
// The clock runs while MCPServers are made, for the raw applier as for the operator, which is up and idle by then:
// this is what a user sees who applies many, and no start of a process or filling of caches is counted on one side
// only.
func (s *site) converge(ctx context.Context, l load, goals ...milestone) (arrival, error) {
	if l.children == nil {
		l.children = childrenOf
	}
	namespaces := l.namespaces()
	err := each(ctx, len(namespaces), func(ctx context.Context, i int) error { return s.makeNamespace(ctx, namespaces[i]) })
	if err != nil {
		return nil, err
	}
	servers, err := newServers(l.places, cmp.Or(l.transport, v1beta1.TransportStreamableHTTP))
	if err != nil {
		return nil, err
	}
	children, err := l.children(servers)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, server := range servers {
		names = append(names, server.Name)
	}
	w, err := s.watch(ctx, l.places, names, children)
	if err != nil {
		return nil, err
	}
	defer w.end()

	begin := time.Now()
	err = each(ctx, len(servers), func(ctx context.Context, i int) error {
		made, err := s.servers.ToolhiveV1beta1().MCPServers(servers[i].Namespace).Create(ctx, servers[i], metav1.CreateOptions{})
		if err == nil && l.handOn != nil {
			l.handOn(made)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make MCPServers: %w", err)
	}
	times := arrival{}
	for _, m := range goals {
		at, err := w.goals[m].wait(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m, err)
		}
		times[m] = at.Sub(begin)
	}
	return times, nil
}

// each calls do with the numbers below n, creators of them at a time, and ends at the first error.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}
