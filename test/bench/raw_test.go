// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
	"github.com/freehold-dev/freehold/hack/operator"
	"github.com/freehold-dev/freehold/pkg/fieldmanager/managers"
)

// The ratio of their times says something only if the raw applier sends what the operator sends.
func TestTheRawApplierSendsWhatTheOperatorSends(t *testing.T) {
	ctx := t.Context()
	s, err := newSite(ctx, cluster.Options{AuditBodies: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	b := &bench{settings: settings{workers: 2}, progress: os.Stderr, dir: t.TempDir()}
	if b.deployed, err = readDeployed(); err != nil {
		t.Fatal(err)
	}
	b.settings.operator = filepath.Join(b.dir, "freehold")
	if err := operator.Build(ctx, b.settings.operator); err != nil {
		t.Fatal(err)
	}

	raw, err := newRawApplier(s.operator, b.deployed.rendering, b.settings.workers)
	if err != nil {
		t.Fatal(err)
	}
	byRaw := bodies(t, s, "raw", func(ctx context.Context, namespace string) error {
		_, err := raw.converge(ctx, s, places{name: namespace, servers: 1})
		return err
	})
	// The operator only ever sees the namespace that is its own.
	b.deployed.args = append(b.deployed.args, "--watch-namespaces=operated")
	subject, err := b.startFreehold(ctx, s, b.deployed.unlimitedEnv())
	if err != nil {
		t.Fatal(err)
	}
	byOperator := bodies(t, s, "operated", func(ctx context.Context, namespace string) error {
		if _, err := s.converge(ctx, load{places: places{name: namespace, servers: 1}}, serversReady); err != nil {
			return err
		}
		return subject.settle(ctx, 1)
	})
	if err := subject.close(t.Failed()); err != nil {
		t.Error(err)
	}

	if len(byRaw) == 0 {
		t.Error("the raw applier sent nothing")
	}
	if diff := cmp.Diff(byOperator, byRaw); diff != "" {
		t.Errorf("- the operator, + the raw applier:\n%s", diff)
	}
}

// bodies returns what the ServiceAccount of the operator applies to a namespace meanwhile, by object and manager,
// without what differs from one MCPServer to the next. The two states of a status are told apart by their phase.
func bodies(t *testing.T, s *site, namespace string, meanwhile func(ctx context.Context, namespace string) error) map[string]string {
	t.Helper()
	ctx := t.Context()
	mark, err := s.cluster.AuditMark(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := meanwhile(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	if _, err := s.cluster.AuditMark(ctx); err != nil {
		t.Fatal(err)
	}
	events, _, err := s.audit.Since(mark, audit.Applies(), audit.Namespace(namespace),
		audit.ServiceAccount(operator.Namespace, operator.ServiceAccount))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, e := range events {
		if !e.Succeeded() {
			t.Errorf("refused: %s", e)
		}
		body := generalized(t, e, namespace)
		key := strings.Join([]string{e.Resource, e.Subresource, e.Name, e.FieldManager}, " ")
		if e.FieldManager == managers.Status {
			key += regexp.MustCompile(`"phase": "\w+"`).FindString(body)
		}
		if _, again := found[key]; again {
			t.Errorf("sent twice: %s", e)
		}
		found[key] = body
	}
	return found
}

var (
	uid     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	instant = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	// checksum is of a document that has the namespace in it.
	checksum = regexp.MustCompile(`[0-9a-f]{64}`)
)

func generalized(t *testing.T, e *audit.Event, namespace string) string {
	t.Helper()
	var body struct {
		Metadata map[string]any `json:"metadata"`
		Rest     map[string]any `json:"-"`
	}
	if err := json.Unmarshal(e.Body, &body); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(e.Body, &body.Rest); err != nil {
		t.Fatal(err)
	}
	// The version of an object that exists is another one each time; that of one that is to be created is not.
	if version := body.Metadata["resourceVersion"]; version == nil {
		t.Errorf("no precondition: %s", e)
	} else if version != "1" {
		body.Metadata["resourceVersion"] = "some"
	}
	body.Rest["metadata"] = body.Metadata
	text, err := json.MarshalIndent(body.Rest, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	for _, vary := range []*regexp.Regexp{uid, instant, checksum} {
		text = vary.ReplaceAll(text, []byte(vary.String()))
	}
	return strings.ReplaceAll(string(text), namespace, "namespace")
}
