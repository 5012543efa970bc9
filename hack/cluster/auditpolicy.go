// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "fmt"

// auditPolicy returns the policy of the audit log. It answers the questions of tests: which client wrote what, how, and
// which reads from the API server what its informers should know.
func auditPolicy(bodies bool) string {
	writeLevel := "Metadata"
	if bodies {
		writeLevel = "Request"
	}
	return fmt.Sprintf(`apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
# The control plane reads all the time, and nobody asks about it. Its writes stay.
- level: None
  users: [%[1]q, %[2]q, %[3]q, "system:apiserver"]
  verbs: [get, list, watch]
- level: None
  userGroups: ["system:serviceaccounts:kube-system"]
  verbs: [get, list, watch]
- level: None
  nonResourceURLs: ["/healthz*", "/livez*", "/readyz*"]
# A request that lasts is recorded when it is answered, not again when it ends, maybe minutes later.
- level: Metadata
  verbs: [watch]
  omitStages: [ResponseComplete]
- level: Metadata
  resources:
  - group: ""
    resources: [pods/attach, pods/exec, pods/log, pods/portforward, pods/proxy, services/proxy, nodes/proxy]
  omitStages: [ResponseComplete]
# The body of a deletion says what it was guarded by. Credentials never get in here: they are not deleted by body.
- level: Request
  verbs: [delete, deletecollection]
- level: %[4]s
  verbs: [create, update, patch]
- level: Metadata
`, controllerManagerUser.name, schedulerUser.name, kwokUser.name, writeLevel)
}
