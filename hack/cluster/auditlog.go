// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/kubernetes"

	"github.com/freehold-dev/freehold/hack/cluster/audit"
)

// ErrNoAuditLog is returned for a cluster that this package has not started.
var ErrNoAuditLog = errors.New("this cluster has no audit log that could be read")

// AuditLog returns the path of the audit log, for audit.NewReader, or "" if there is none. A cluster that was started
// again in the same directory goes on writing the same file.
func (c *Cluster) AuditLog() string {
	if !c.Owned() {
		return ""
	}
	return c.state.file(auditLogFile)
}

// AuditMark returns a mark in the audit log that has every request before it that was answered before the call. It
// sends a request of its own and waits until that is in the log.
func (c *Cluster) AuditMark(ctx context.Context) (audit.Mark, error) {
	if !c.Owned() {
		return audit.Mark{}, ErrNoAuditLog
	}
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return audit.Mark{}, fmt.Errorf("making a client: %w", err)
	}
	reader := audit.NewReader(c.AuditLog())
	from, err := reader.Mark()
	if err != nil {
		return audit.Mark{}, err
	}
	// The API server ignores parameters that it does not know, but records them.
	token := rand.Text()
	if err := client.Discovery().RESTClient().Get().AbsPath("/version").Param("auditMark", token).Do(ctx).Error(); err != nil {
		return audit.Mark{}, fmt.Errorf("marking the audit log: %w", err)
	}
	marked := func(e *audit.Event) bool { return strings.Contains(e.URI, token) }
	_, mark, err := reader.WaitFor(ctx, from, func(found []*audit.Event) bool { return len(found) > 0 }, marked)
	return mark, err
}
