// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/deploy"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
	"github.com/freehold-dev/freehold/pkg/ownership"
	"github.com/freehold-dev/freehold/pkg/render"
	"github.com/freehold-dev/freehold/pkg/settings"
)

// Where deploy/ puts the operator.
const (
	// DefaultOperator is the operator's Deployment, as NAMESPACE/NAME.
	DefaultOperator = "freehold-system/freehold"
	// operatorContainer is its container.
	operatorContainer = "freehold"
	// leavesConfigs is the value of its flag --configs with which it writes nothing that MCPServers refer to, and takesConfigs that
	// with which it writes all. With a selector it writes nothing unless it has the latter.
	leavesConfigs, takesConfigs = "toolhive", "freehold"
)

// Flags of the operator.
const (
	namespacesFlag     = "watch-namespaces"
	selectorFlag       = "mcpserver-selector"
	configsFlag        = "configs"
	leaseFlag          = "leader-elect-resource-name"
	leaseNamespaceFlag = "leader-elect-resource-namespace"
)

// Settings are those of the operator that affect what it writes.
type Settings struct {
	render.Options
	// Scope is which MCPServers it looks after.
	Scope Scope
	// LeavesConfigs is set when another operator, ToolHive's or one for other MCPServers, writes the objects that MCPServers refer to.
	LeavesConfigs bool
}

// ErrNoOperator means that the operator's Deployment does not exist, or may not be read.
var ErrNoOperator = errors.New("the operator's Deployment cannot be read")

// OperatorSettings reads the settings of the operator from its Deployment, which is named as NAMESPACE/NAME. The arguments go
// before what the Deployment says. Without a Deployment the error is ErrNoOperator, and the settings are those of install.yaml
// with the arguments.
func (c *Client) OperatorSettings(deployment string, args []string) (Settings, error) {
	found, err := c.Operator(deployment)
	var missing error
	switch {
	case apply.IsAbsent(err), apierrors.IsForbidden(err):
		missing = fmt.Errorf("%w: %w", ErrNoOperator, err)
		if found, err = installed(); err != nil {
			return Settings{}, err
		}
	case err != nil:
		return Settings{}, fmt.Errorf("the operator's Deployment cannot be read: %w", err)
	}
	settings, err := invocationOf(found.Namespace, &found.Spec.Template.Spec).settings(args, c.apiGroups)
	if err != nil {
		return settings, err
	}
	return settings, missing
}

// installed returns the Deployment that install.yaml makes, as far as the operator's settings go.
func installed() (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict([]byte(deploy.Operator), deployment); err != nil {
		return nil, fmt.Errorf("the operator's Deployment in install.yaml: %w", err)
	}
	return deployment, nil
}

// Operator reads the operator's Deployment, which is named as NAMESPACE/NAME.
func (c *Client) Operator(deployment string) (*appsv1.Deployment, error) {
	namespace, name, _ := strings.Cut(deployment, "/")
	return as[appsv1.Deployment](c.get(versions[managers.Deployment], namespace, name))
}

// Pods reads those of a Deployment. Its selector may select the pods of another operator as well, whose labels are the same and more.
func (c *Client) Pods(deployment *appsv1.Deployment) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return nil, err
	}
	found, err := list[corev1.Pod](c, pods, deployment.Namespace, metav1.ListOptions{LabelSelector: selector.String()})
	return slices.DeleteFunc(found, func(pod *corev1.Pod) bool {
		name, hashed := createdFor(pod)
		return hashed && name != deployment.Name
	}), err
}

// WorkloadPods returns the pods with the labels of an MCPServer's workloads.
func (c *Client) WorkloadPods(namespace, server string) ([]*corev1.Pod, error) {
	return list[corev1.Pod](c, pods, namespace, metav1.ListOptions{LabelSelector: v1beta1.LabelToolHiveName + "=" + server})
}

// Events returns those about an object.
func (c *Client) Events(namespace string, of types.UID) ([]*corev1.Event, error) {
	return list[corev1.Event](c, events, namespace, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(of)})
}

// createdFor returns the name of the Deployment that a pod was created for; empty for none. The name of a Deployment's ReplicaSet is its
// own and a hash, which its pods have in a label: hashed reports whether a pod has that and a controller.
func createdFor(pod *corev1.Pod) (name string, hashed bool) {
	owner, hash := metav1.GetControllerOf(pod), pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	if owner == nil || hash == "" {
		return "", false
	}
	if name, ok := strings.CutSuffix(owner.Name, "-"+hash); ok {
		return name, true
	}
	return "", true
}

// Lease reads a Lease.
func (c *Client) Lease(name types.NamespacedName) (*coordinationv1.Lease, error) {
	return as[coordinationv1.Lease](c.get(leases, name.Namespace, name.Name))
}

// Process is what an operator's pod template says about the operator's processes, besides their settings.
type Process struct {
	// Image of the operator, and RunnerImage that of the proxyrunners that it makes; empty where that is not known.
	Image, RunnerImage string
	// User that a process is to the API server, and the namespace and the name of its ServiceAccount.
	User           string
	ServiceAccount types.NamespacedName
	// Scope is which MCPServers it looks after.
	Scope
	// Elects reports whether a process works only while it holds the Lease.
	Elects bool
	Lease  types.NamespacedName
	// leavesConfigs is Settings.LeavesConfigs.
	leavesConfigs bool
}

// ProcessOf reads the operator's Deployment.
func ProcessOf(deployment *appsv1.Deployment) (Process, error) {
	return processOf(deployment.Namespace, &deployment.Spec.Template.Spec)
}

// processOf returns an error, and of the scope nothing, where the pod does not show how the operator is started.
func processOf(namespace string, pod *corev1.PodSpec) (Process, error) {
	called := invocationOf(namespace, pod)
	rendering := settings.New(called.variable)
	account := accountOf(namespace, pod)
	found := Process{
		Image: called.image, Elects: true,
		Lease:          types.NamespacedName{Namespace: cmp.Or(called.env["POD_NAMESPACE"], namespace), Name: Freehold.lease},
		ServiceAccount: account, User: userOf(account), Scope: called.scope(),
	}
	var configs string
	flags, err := called.parse(nil, func(flags *pflag.FlagSet) {
		rendering.AddFlags(flags)
		found.addFlags(flags)
		flags.StringVar(&configs, configsFlag, configs, "")
		flags.BoolVar(&found.Elects, "leader-elect", found.Elects, "")
		flags.StringVar(&found.Lease.Name, leaseFlag, found.Lease.Name, "")
		flags.StringVar(&found.Lease.Namespace, leaseNamespaceFlag, found.Lease.Namespace, "")
	})
	if err == nil {
		err = shown(flags.Lookup(namespacesFlag), flags.Lookup(selectorFlag), flags.Lookup(configsFlag), flags.Lookup(leaseFlag), flags.Lookup(leaseNamespaceFlag))
	}
	found.Lease.Namespace = cmp.Or(found.Lease.Namespace, namespace)
	found.RunnerImage = cmp.Or(rendering.RunnerImage, render.DefaultRunnerImage)
	if !isShown(found.RunnerImage) {
		found.RunnerImage = ""
	}
	found.leavesConfigs = leaves(configs, found.Selector)
	if err = errors.Join(err, found.validate()); err != nil {
		found.Scope, found.leavesConfigs = Scope{}, false
	}
	return found, err
}

// accountOf returns the ServiceAccount of a pod.
func accountOf(namespace string, pod *corev1.PodSpec) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: cmp.Or(pod.ServiceAccountName, "default")}
}

// userOf returns what a ServiceAccount is to the API server.
func userOf(account types.NamespacedName) string {
	return "system:serviceaccount:" + account.Namespace + ":" + account.Name
}

// leaves reports whether an operator with that value of --configs leaves to others what MCPServers refer to.
func leaves(configs, selector string) bool {
	return configs == leavesConfigs || selector != "" && configs != takesConfigs
}

// addFlags adds the flags that narrow the scope.
func (s *Scope) addFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&s.Namespaces, namespacesFlag, s.Namespaces, "")
	flags.StringVar(&s.Selector, selectorFlag, s.Selector, "")
}

// validate refuses what names no namespace, and a selector that cannot be parsed.
func (s *Scope) validate() error {
	if !areNamespaces(s.Namespaces) {
		return fmt.Errorf("the operator's arguments: --%s: %q are not names of namespaces", namespacesFlag, s.Namespaces)
	}
	if _, err := labels.Parse(s.Selector); err != nil {
		return fmt.Errorf("the operator's arguments: --%s: %w", selectorFlag, err)
	}
	return nil
}

// apiGroups asks the API server for its API groups.
func (c *Client) apiGroups() (*metav1.APIGroupList, error) {
	discovery, err := c.getter.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	return discovery.ServerGroups()
}

// invocation is how an operator is started: its image, its arguments and its environment.
type invocation struct {
	image string
	args  []string
	env   map[string]string
}

func invocationOf(namespace string, pod *corev1.PodSpec) invocation {
	found := invocation{env: map[string]string{}}
	if container := containerOf(pod.Containers); container != nil {
		found.image = container.Image
		found.env = environmentOf(namespace, container)
		for _, word := range slices.Concat(container.Command, container.Args) {
			found.args = append(found.args, expand(word, found.env))
		}
	}
	return found
}

// containerOf returns the operator's container: the one with its name, or that shows what it is; nil if there is none.
func containerOf(containers []corev1.Container) *corev1.Container {
	if len(containers) == 1 {
		return &containers[0]
	}
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == operatorContainer })
	if i < 0 {
		i = slices.IndexFunc(containers, func(c corev1.Container) bool { return Freehold.shownBy(&c) != "" })
	}
	if i < 0 {
		return nil
	}
	return &containers[i]
}

// scope returns the scope that the environment sets.
func (i invocation) scope() Scope { return Scope{Namespaces: settings.List(i.env[watchNamespace])} }

// variable reads one of the environment.
func (i invocation) variable(name string) (value string, ok bool) {
	value, ok = i.env[name]
	return value, ok
}

// settings reads the settings as the operator does. More arguments go before its own.
func (i invocation) settings(more []string, groups func() (*metav1.APIGroupList, error)) (found Settings, err error) {
	rendering, scope := settings.New(i.variable), i.scope()
	var configs string
	flags, err := i.parse(more, func(flags *pflag.FlagSet) {
		rendering.AddFlags(flags)
		scope.addFlags(flags)
		flags.StringVar(&configs, configsFlag, configs, "")
	})
	if err != nil {
		return found, err
	}
	flags.VisitAll(func(flag *pflag.Flag) {
		if problem := shown(flag); err == nil && problem != nil {
			err = fmt.Errorf("%w; give it by --operator-arg=--%s=VALUE", problem, flag.Name)
		}
	})
	if err != nil {
		return found, err
	}
	if err := rendering.Validate(); err != nil {
		return found, fmt.Errorf("the operator's arguments: %w", err)
	}
	if err := scope.validate(); err != nil {
		return found, err
	}
	openshift, err := rendering.IsOpenShift(groups)
	return Settings{Options: rendering.Options(openshift), Scope: scope, LeavesConfigs: leaves(configs, scope.Selector)}, err
}

// parse reads some of the operator's flags, and returns them with their values. More arguments, of the plugin's user, go before its own.
// They have to be among those flags: any other would change nothing, without a word.
func (i invocation) parse(more []string, add func(*pflag.FlagSet)) (*pflag.FlagSet, error) {
	flags := newFlags(add)
	// The operator has other flags as well.
	flags.ParseErrorsAllowlist.UnknownFlags = true
	if err := flags.Parse(i.args); err != nil {
		return flags, fmt.Errorf("the operator's arguments: %w", err)
	}
	flags = newFlags(add)
	err := flags.Parse(more)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("%q is not a flag", flags.Arg(0))
	}
	if err != nil {
		return flags, fmt.Errorf("--operator-arg: %w; it takes flags of the operator that count for what it writes, each with its dashes and its "+
			"value, such as --operator-arg=--runner-image=IMAGE", err)
	}
	return flags, nil
}

func newFlags(add func(*pflag.FlagSet)) *pflag.FlagSet {
	flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	add(flags)
	return flags
}

// Proxies reads the Deployments of which Freehold writes the pod template, of a namespace, or of all with an empty one.
func (c *Client) Proxies(namespace string) ([]*appsv1.Deployment, error) {
	ofToolHive := metav1.ListOptions{LabelSelector: v1beta1.LabelToolHive + "=true"}
	found, err := list[appsv1.Deployment](c, versions[managers.Deployment], namespace, ofToolHive)
	return slices.DeleteFunc(found, func(d *appsv1.Deployment) bool { return ownership.ApplyEntry(d, managers.Proxy, "") == nil }), err
}
