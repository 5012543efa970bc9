// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// program is what the test binary is when it is the program that starts a child and is killed.
const program = "FREEHOLD_TEST_STARTS_A_CHILD"

// patience is how long a killed child may take to end.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(program) == "" {
		os.Exit(m.Run())
	}
	cmd := sleeper(context.Background(), os.Stdout)
	if err := Start(cmd); err != nil {
		panic(err)
	}
	_ = cmd.Wait()
}

// sleeper is a child that holds the file open until it ends.
func sleeper(ctx context.Context, held *os.File) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "echo runs; exec sleep 600")
	cmd.Stdout = held
	return cmd
}

// A program that is killed takes with it the child that it started.
func TestKilledProgram(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), program+"=1")
	parent.Stdout = write
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	output := bufio.NewReader(read)
	awaitRunning(t, output)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, read, output)
	_ = parent.Wait()
}

// A Parent that is closed takes with it the children that it started, and no others.
func TestClosedParent(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	parent, other := NewParent(), NewParent()
	mine, theirs := sleeper(t.Context(), write), sleeper(t.Context(), nil)
	if err := parent.Start(mine); err != nil {
		t.Fatal(err)
	}
	if err := other.Start(theirs); err != nil {
		t.Fatal(err)
	}
	write.Close()
	output := bufio.NewReader(read)
	awaitRunning(t, output)
	parent.Close()
	awaitEnd(t, read, output)
	_ = mine.Wait()
	if err := theirs.Process.Kill(); err != nil {
		t.Errorf("the child of another Parent has ended, too: %v", err)
	}
	_ = theirs.Wait()
	other.Close()
}

func awaitRunning(t *testing.T, output *bufio.Reader) {
	t.Helper()
	if line, err := output.ReadString('\n'); strings.TrimSpace(line) != "runs" {
		t.Fatalf("the child said %q, %v", line, err)
	}
}

// awaitEnd waits until nobody holds the other end of the pipe.
func awaitEnd(t *testing.T, read *os.File, output *bufio.Reader) {
	t.Helper()
	if err := read.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if rest, err := output.ReadString('\n'); err == nil || !strings.Contains(err.Error(), "EOF") {
		t.Fatalf("the child goes on: it said %q, %v", rest, err)
	}
}
