// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/hack/cluster"
	"github.com/freehold-dev/freehold/hack/cluster/audit"
)

func TestNamedDirectoryKeepsTheCluster(t *testing.T) {
	options := cluster.Options{Dir: t.TempDir(), APIServerOnly: true, AuditBodies: true}
	c := start(t, options)
	client := clientFor(t, c.RESTConfig())
	desired := corev1ac.ConfigMap("kept", "default").WithData(map[string]string{"a": "1"})
	if _, err := client.CoreV1().ConfigMaps("default").Apply(t.Context(), desired, metav1.ApplyOptions{FieldManager: manager}); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Start(t.Context(), options); !errors.Is(err, cluster.ErrRunning) {
		t.Errorf("another cluster in the same directory: %v, want %v", err, cluster.ErrRunning)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}

	again := start(t, options)
	if _, err := clientFor(t, again.RESTConfig()).CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	events, _, err := audit.NewReader(again.AuditLog()).Since(audit.Mark{}, audit.Applies(), audit.Resource("", "configmaps"))
	if err != nil || len(events) != 1 {
		t.Fatalf("applies in the audit log: %v, %v, want one", events, err)
	}
	var body struct{ Data map[string]string }
	if err := json.Unmarshal(events[0].Body, &body); err != nil || body.Data["a"] != "1" {
		t.Errorf("recorded body is %s, %v", events[0].Body, err)
	}
}

func TestExistingCluster(t *testing.T) {
	owned := start(t, cluster.Options{APIServerOnly: true})
	t.Setenv("KUBECONFIG", owned.Kubeconfig())
	c, err := cluster.StartOrUse(t.Context(), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Owned() || !owned.Owned() {
		t.Errorf("Owned() is %t for the existing and %t for the started cluster", c.Owned(), owned.Owned())
	}
	if c.AuditLog() != "" {
		t.Errorf("audit log of an existing cluster: %s", c.AuditLog())
	}
	if _, err := c.AuditMark(t.Context()); !errors.Is(err, cluster.ErrNoAuditLog) {
		t.Errorf("marking no audit log: %v, want %v", err, cluster.ErrNoAuditLog)
	}
	if err := c.Pause(cluster.APIServer); !errors.Is(err, cluster.ErrNotStarted) {
		t.Errorf("freezing what is not ours: %v, want %v", err, cluster.ErrNotStarted)
	}
	_, err = clientOfUser(t, c, "carol", "singers").CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"carol"`) {
		t.Errorf("carol's request: %v, want it to be forbidden to her", err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", c.Dir(), err)
	}
	if _, err := clientFor(t, owned.RESTConfig()).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Errorf("the existing cluster has not survived: %v", err)
	}
}

func TestWaitReportsAComponentThatDies(t *testing.T) {
	c := start(t, cluster.Options{APIServerOnly: true})
	if err := syscall.Kill(c.PIDs()[cluster.APIServer], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.Wait(ctx); err == nil || !strings.Contains(err.Error(), "kube-apiserver ended: signal: killed") {
		t.Errorf("Wait() = %v, want the end of the API server", err)
	}
}

// victimEnv makes the test below the process that is killed.
const victimEnv = "FREEHOLD_TEST_VICTIM"

// TestDiesWithItsProcess starts itself as another process, kills that, and looks whether its cluster is gone.
func TestDiesWithItsProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends the children of a killed process")
	}
	if os.Getenv(victimEnv) != "" {
		c := start(t, cluster.Options{APIServerOnly: true})
		running, err := cluster.FindRunning(c.Dir())
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(running)
		}
		if err != nil {
			t.Fatal(err)
		}
		<-t.Context().Done()
		return
	}
	// Makes the programs, so that the other process does not have to.
	kubeconfig := start(t, cluster.Options{APIServerOnly: true}).Kubeconfig()

	victim := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDiesWithItsProcess$", "-test.timeout=5m")
	victim.Env = append(os.Environ(), victimEnv+"=1")
	victim.Stderr = os.Stderr
	output, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	line, readErr := bufio.NewReader(output).ReadBytes('\n')
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := victim.Wait(); err == nil {
		t.Error("the killed process ended well")
	}
	var running cluster.Running
	if err := errors.Join(readErr, json.Unmarshal(line, &running)); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	if len(running.Components) != 2 {
		t.Fatalf("it ran %v, want two components", running.Components)
	}
	for component, pid := range running.Components {
		eventually(t, string(component)+" to be gone", func(context.Context) (bool, error) {
			return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || isZombie(t, pid), nil
		})
	}

	// The next cluster without a directory of its own removes what the killed one left.
	next, err := cluster.FromKubeconfig(t.Context(), kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(running.Kubeconfig); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", running.Kubeconfig, err)
	}
}
