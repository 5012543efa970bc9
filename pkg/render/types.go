// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	"github.com/freehold-dev/freehold/pkg/configs"
	"github.com/freehold-dev/freehold/pkg/inventory"
)

// DefaultRunnerImage is the proxyrunner image when Options name none: the one that ToolHive's chart of that release names.
const DefaultRunnerImage = "ghcr.io/stacklok/toolhive/proxyrunner:v0.63.0"

// Options are the operator's settings that affect what is rendered.
type Options struct {
	// RunnerImage is the proxyrunner image; DefaultRunnerImage when empty.
	RunnerImage string
	// ProxyHost is the address the proxy listens on; 0.0.0.0 when empty.
	ProxyHost string
	// ImagePullSecrets are added to those of each MCPServer.
	ImagePullSecrets []string
	// DefaultRedis is the session store of MCPServers that name none; nil for none.
	DefaultRedis *Redis
	// OpenShift leaves the user and group ids to the platform.
	OpenShift bool
	// NoUsageMetrics keeps the proxies from reporting usage metrics to Stacklok, unless an MCPServer has its own setting.
	NoUsageMetrics bool
	// MaxObjectSize is how large the spec of an object may be that is read, and its metadata and its status, in bytes; bounds.DefaultSize when
	// 0.
	MaxObjectSize int
}

// Redis is a session store.
type Redis struct {
	// Address as host:port.
	Address string
	// PasswordSecret and PasswordKey name the Secret key of the password, in each MCPServer's namespace.
	// Both are empty when there is no password.
	PasswordSecret, PasswordKey string
	// TLS makes the proxies speak TLS with the store.
	TLS bool
	// CASecret and CAKey name the Secret key, in each MCPServer's namespace, of the certificate authorities to trust.
	// Both are empty for those of the proxy's image.
	CASecret, CAKey string
}

// Input is everything that one MCPServer's children are rendered from.
type Input struct {
	// Server is the MCPServer, as the API server defaulted it. It is not modified.
	Server *v1beta1.MCPServer
	// AuthzConfigMap is the ConfigMap that spec.authzConfig.configMap names; nil when it does not exist.
	AuthzConfigMap *corev1.ConfigMap
	// References are the custom resources that the spec names.
	References References
	// BackendProcess is what a runner for transport stdio is to be attached to, see ProcessOf; empty when that is not
	// known. It has no meaning for other transports.
	BackendProcess string

	// salts are those of the ConfigMaps that are named by their content, see Aside.
	salts map[*inventory.Child]string
}

// Intent is a typed apply configuration and the writer that wants it.
type Intent struct {
	// Child is what the object is to the MCPServer.
	Child *inventory.Child
	// Writer is the field manager, a name of package managers.
	Writer string
	// Kind and Name of the object. Its namespace is the MCPServer's.
	Kind schema.GroupKind
	Name string
	// Config is a typed apply configuration of that kind, for example
	// *applyconfigurations/apps/v1.DeploymentApplyConfiguration. It names the object and holds no
	// resourceVersion and no UID.
	Config runtime.ApplyConfiguration
	// Unset are paths of fields to remove although they have no owner, see apply.Request.
	Unset []string
	// DependsOn are objects without which the object must not be as the intent wants it. While one of them is not as its
	// own intent wants it, this intent is not to be applied. Their intents come before.
	DependsOn []ObjectRef

	// bundlesUnknown is set for a proxy of whose certificate authorities some are missing.
	bundlesUnknown bool
}

// Result is what was rendered.
type Result struct {
	// Intents in the order in which to apply them: the objects that a pod needs come before the pod.
	Intents []Intent
	// Absent are objects that this MCPServer does not want, but may have had under an earlier spec. ConfigMaps are not
	// among them: all that hold a RunConfig or an inline policy and are not in Intents are those of an earlier spec.
	Absent []ObjectRef
	// SinglePod is set when each of the workloads may have one pod at most, whatever other field managers set.
	SinglePod bool
	// SharedSessions is set when the proxy keeps its sessions in a store that all its pods share.
	SharedSessions bool
	// Unshared says in words what several pods of the proxy's authorization server would not share, and what to do about it, as
	// the end of a sentence; empty for nothing.
	Unshared string
	// Notices are things that work otherwise than the spec says and that the user should know of, and references that can be
	// used.
	Notices []Problem
	// Warnings are things that keep pods from starting and nothing from being written.
	Warnings []Problem
	// Held are problems with references. While there are any, Intents has neither the proxy nor the objects that it reads: a
	// running proxy keeps its last good configuration, and no proxy is created without what the spec asks for.
	Held []Problem
	// References are the objects that the proxy was rendered from besides the MCPServer.
	References []Reference
	// Hashes of those of them that can be used.
	Hashes configs.Hashes
}

// ObjectRef names an object in the MCPServer's namespace.
type ObjectRef struct {
	Kind schema.GroupKind
	Name string
}

// Problem is one thing wrong with an MCPServer.
type Problem struct {
	// Condition is the type of the condition that shows the problem.
	Condition string
	// Reason is the condition's reason.
	Reason string
	// Message says what is wrong and what to do about it. It never holds a secret.
	Message string
}

// InvalidError means that nothing can be rendered until the MCPServer, or something it refers to, changes.
type InvalidError struct {
	// Problems, at least one, in a stable order.
	Problems []Problem
}

// Error implements error.
func (e *InvalidError) Error() string {
	messages := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		messages = append(messages, fmt.Sprintf("%s: %s", p.Reason, p.Message))
	}
	return strings.Join(messages, "; ")
}
