// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"strings"
	"sync"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
)

// besieged are the namespaces in which a test runs proxyrunners that Freehold has not made, or gives runners rights that
// they should not have. What these try is for those tests to judge.
var besieged sync.Map // namespace -> struct{}

// checkRunners judges what the runners of all MCPServers have asked the API server for.
func checkRunners() error {
	of, writes, err := requestsOfRunners()
	if err != nil {
		return fmt.Errorf("the requests of runners cannot be checked: %w", err)
	}
	fmt.Printf("Runners: looked at %d requests, %d writes\n", of, len(writes))
	for _, e := range writes {
		fmt.Println(e)
	}
	if len(writes) > 0 || of == 0 {
		return fmt.Errorf("%d requests of runners should not have been, and %d were seen", len(writes), of)
	}
	return nil
}

// requestsOfRunners returns how many requests ToolHive's proxyrunners have sent, and those that would have changed
// something, whether they were granted or not. To attach to a pod changes nothing.
func requestsOfRunners() (count int, writes []*audit.Event, err error) {
	events, _, err := env.Audit.Since(audit.Mark{}, func(e *audit.Event) bool {
		namespace, account, isAccount := strings.Cut(strings.TrimPrefix(e.User, "system:serviceaccount:"), ":")
		_, left := besieged.Load(namespace)
		return isAccount && !left && strings.HasSuffix(account, "-proxy-runner")
	})
	for _, e := range events {
		if e.IsWrite() && e.Subresource != "attach" {
			writes = append(writes, e)
		}
	}
	return len(events), writes, err
}
