// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package health

// Reasons of findings, besides those of conditions and the kubelet's of containers that do not run.
const (
	// FoundNotInstalled is a CustomResourceDefinition that the cluster lacks.
	FoundNotInstalled = "NotInstalled"
	// FoundBeingDeleted is one that is being deleted.
	FoundBeingDeleted = "BeingDeleted"
	// FoundNotEstablished is one that the API server does not serve.
	FoundNotEstablished = "NotEstablished"
	// FoundVersionNotServed is one without the version that Freehold reads and writes.
	FoundVersionNotServed = "VersionNotServed"
	// FoundStoredVersion is one with objects in a version that Freehold's lacks.
	FoundStoredVersion = "StoredVersion"
	// FoundRecordedVersion is one with objects that have managedFields in a version that it lacks.
	FoundRecordedVersion = "RecordedVersion"
	// FoundPastProxy is a Service that leads to a backend and is not its MCPServer's.
	FoundPastProxy = "PastProxy"
	// FoundDroppedFields is one that lacks fields which objects were given by kubectl apply.
	FoundDroppedFields = "DroppedFields"
	// FoundFieldsNeeded is one without fields that Freehold writes.
	FoundFieldsNeeded = "FieldsNeeded"
	// FoundFieldsMissing is one without fields that users could write.
	FoundFieldsMissing = "FieldsMissing"
	// FoundFieldsUnknown is one with fields that Freehold does not know.
	FoundFieldsUnknown = "FieldsUnknown"
	// FoundTwoInstallers is one that several field managers install.
	FoundTwoInstallers = "TwoInstallers"
	// FoundHelmMayRemove is one that goes with its Helm release, and takes all objects with it.
	FoundHelmMayRemove = "HelmMayRemove"

	// FoundNoOperator is that there is no Deployment.
	FoundNoOperator = "NoOperator"
	// FoundNotAvailable is a Deployment without an available replica, and FoundPartlyAvailable one with too few.
	FoundNotAvailable    = "NotAvailable"
	FoundPartlyAvailable = "PartlyAvailable"
	// FoundNoLeader means that no replica holds the Lease, and FoundStaleLease that the holder does not renew it.
	FoundNoLeader   = "NoLeader"
	FoundStaleLease = "StaleLease"
	// FoundOtherLeader is a holder that is no pod of the Deployment.
	FoundOtherLeader = "OtherLeader"
	// FoundSeveralLeaders is that the replicas do not elect a leader.
	FoundSeveralLeaders = "SeveralLeaders"
	// FoundRestarted is a container that restarted lately.
	FoundRestarted = "Restarted"
	// FoundNoVersion is an image whose tag names no version.
	FoundNoVersion = "NoVersion"
	// FoundOtherVersion is an operator of another version than the plugin.
	FoundOtherVersion = "OtherVersion"

	// FoundToolHiveRuns is ToolHive's operator at work on the same MCPServers.
	FoundToolHiveRuns = "ToolHiveRuns"
	// FoundTwoOperators is a second Freehold operator that looks after some of the same MCPServers.
	FoundTwoOperators = "TwoOperators"
	// FoundSharedLease is a second Freehold operator for other MCPServers, of which only one works at a time.
	FoundSharedLease = "SharedLease"
	// FoundUnattended are MCPServers that no operator looks after.
	FoundUnattended = "Unattended"
	// FoundRightMissing is a right that the operator lacks.
	FoundRightMissing = "RightMissing"
	// FoundNoPolicy is a binding without its policy, and FoundNoBinding a policy without its binding.
	FoundNoPolicy  = "NoPolicy"
	FoundNoBinding = "NoBinding"
	// FoundNotEnforced is a policy that is to refuse requests, with a binding that only warns of them or records them.
	FoundNotEnforced = "NotEnforced"
	// FoundTypeChecking is a policy of which the API server warns.
	FoundTypeChecking = "TypeChecking"
	// FoundOtherOperator is a policy that takes another ServiceAccount for the operator's.
	FoundOtherOperator = "OtherOperator"

	// FoundNotTested is a proxyrunner of a release that Freehold is not tested with.
	FoundNotTested = "NotTested"
	// FoundOtherRunner is a proxy with another proxyrunner than the operator's.
	FoundOtherRunner = "OtherRunner"
)
