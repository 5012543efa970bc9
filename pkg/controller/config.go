// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/freehold-dev/freehold/generated/clientset/versioned"
	"github.com/freehold-dev/freehold/pkg/apply"
	"github.com/freehold-dev/freehold/pkg/configcontroller"
	"github.com/freehold-dev/freehold/pkg/render"
)

// DefaultConfigRolloutsAtOnce is how many MCPServers of a namespace are rolled out at a time for a change of an object that they
// refer to, when Config names no number.
const DefaultConfigRolloutsAtOnce = 10

// DefaultTakeoversAtOnce is how many MCPServers of a namespace are taken over at a time, when Config names no number.
const DefaultTakeoversAtOnce = 3

// TakeoverMode says whether and how Freehold takes over MCPServers of ToolHive.
type TakeoverMode string

const (
	// TakeoverAuto takes them over.
	TakeoverAuto TakeoverMode = "auto"
	// TakeoverManual takes over those that are annotated with v1beta1.AnnotationTakeover.
	TakeoverManual TakeoverMode = "manual"
	// TakeoverOff leaves them alone, their deletion included.
	TakeoverOff TakeoverMode = "off"
)

const (
	// minBackoff and maxBackoff bound the wait before an MCPServer is looked at again that could not be looked at. How long a
	// refused write waits is for package apply to say.
	minBackoff = 200 * time.Millisecond
	maxBackoff = apply.LongestWait
	// catchUpCheck is when to look again whether the cache shows our own last write. The event that brings
	// it wakes the key as well; this is for the case that the two arrive in another order.
	catchUpCheck = time.Second
)

// DefaultWorkers is the number of MCPServers that are worked on at a time, when Config names none.
const DefaultWorkers = 16

// Config configures a controller.
type Config struct {
	// Core is the client for everything but MCPServers.
	Core kubernetes.Interface
	// Servers is the client for MCPServers.
	Servers versioned.Interface
	// Dynamic is the client for kinds of ToolHive that Freehold only counts, such as VirtualMCPServers, and for the definitions of
	// kinds that the API server does not serve; nil counts none, and lists the latter kinds from time to time.
	Dynamic dynamic.Interface
	// Recorder takes events; nil drops them.
	Recorder events.EventRecorder
	// Observer receives every write; nil for none.
	Observer apply.Observer
	// Tracer gets a span for every pass over an MCPServer, with a child for every request; nil for none.
	Tracer trace.TracerProvider
	// Options of rendering.
	Options render.Options
	// Namespaces to watch; none means all.
	Namespaces []string
	// Selector selects, by their labels, the MCPServers that this operator works for, where others work for the rest; nil selects all.
	// With it, ConfigsAuto is ConfigsToolHive: only one operator is to write the objects that the MCPServers of all refer to.
	Selector labels.Selector
	// Workers is how many MCPServers are worked on at a time, at most half of them of one namespace; DefaultWorkers when 0.
	Workers int
	// Resync is how often every MCPServer is looked at without a cause; 0 for never. It costs no requests.
	Resync time.Duration
	// Takeover says whether and how Freehold takes over MCPServers of ToolHive; TakeoverAuto when empty.
	Takeover TakeoverMode
	// ConfigRolloutsAtOnce is how many MCPServers of a namespace are rolled out at a time for a change of an object that they
	// refer to; DefaultConfigRolloutsAtOnce when 0.
	ConfigRolloutsAtOnce int
	// TakeoversAtOnce is how many of a namespace are taken over at a time; DefaultTakeoversAtOnce when 0.
	TakeoversAtOnce int
	// Configs says which operator writes the status and the finalizer of the objects that MCPServers refer to; ConfigsAuto when empty.
	Configs configcontroller.ConfigsMode
	// Clock gives the time of condition changes; the real one when nil.
	Clock clock.PassiveClock
}

// complete fills in the defaults.
func (config *Config) complete() {
	if config.Workers == 0 {
		config.Workers = DefaultWorkers
	}
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	if config.Takeover == "" {
		config.Takeover = TakeoverAuto
	}
	if config.Configs == "" {
		config.Configs = configcontroller.ConfigsAuto
	}
	if config.Selector != nil && config.Configs == configcontroller.ConfigsAuto {
		config.Configs = configcontroller.ConfigsToolHive
	}
	if config.ConfigRolloutsAtOnce == 0 {
		config.ConfigRolloutsAtOnce = DefaultConfigRolloutsAtOnce
	}
	if config.TakeoversAtOnce == 0 {
		config.TakeoversAtOnce = DefaultTakeoversAtOnce
	}
	if config.Tracer == nil {
		config.Tracer = noop.NewTracerProvider()
	}
	if config.Recorder != nil {
		config.Recorder = newEventRecorder(config.Recorder)
	}
}
