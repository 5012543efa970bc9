// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/freehold-dev/freehold/hack/node/internal/plan"
)

// shownSettings are settings of the whole machine's kernel that the kubelet insists on. It is shown the values that it
// wants, and the machine keeps its own.
var shownSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

func mountAll(binds []plan.Bind) error {
	// First nothing may reach the machine any more; then what the kubelet mounts has to reach the containers.
	for _, propagation := range []uintptr{unix.MS_PRIVATE, unix.MS_SHARED} {
		if err := unix.Mount("", "/", "", propagation|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("setting the propagation of mounts: %w", err)
		}
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mounting /run: %w", err)
	}
	for _, b := range binds {
		for _, dir := range []string{b.Source, b.Target} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("making a directory of the node: %w", err)
			}
		}
		if err := bind(b.Source, b.Target); err != nil {
			return err
		}
	}
	for setting, value := range shownSettings {
		source := "/run/settings/" + setting
		if err := os.MkdirAll(filepath.Dir(source), 0o755); err != nil {
			return fmt.Errorf("making a directory of the node: %w", err)
		}
		if err := os.WriteFile(source, []byte(value), 0o600); err != nil {
			return fmt.Errorf("writing a setting: %w", err)
		}
		if err := bind(source, "/proc/sys/"+setting); err != nil {
			return err
		}
	}
	return nil
}

func bind(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mounting %s at %s: %w", source, target, err)
	}
	return nil
}

// setUpNetwork gives the node its name and its addresses. The interface is a bridge with nothing on it: unlike other
// kinds without a cable, it exists wherever containers run.
func setUpNetwork(hostname string, addresses, routes []string) error {
	if err := unix.Sethostname([]byte(hostname)); err != nil {
		return fmt.Errorf("setting the name of the node: %w", err)
	}
	commands := [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", "eth0", "type", "bridge"},
		{"link", "set", "eth0", "up"},
	}
	for _, address := range addresses {
		commands = append(commands, []string{"addr", "add", address, "dev", "eth0"})
	}
	for _, route := range routes {
		commands = append(commands, []string{"route", "add", route, "dev", "eth0"})
	}
	for _, command := range commands {
		if output, err := exec.Command("ip", command...).CombinedOutput(); err != nil { //nolint:noctx // the node waits for it
			return fmt.Errorf("ip %s: %w: %s", strings.Join(command, " "), err, output)
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600); err != nil {
		return fmt.Errorf("letting the node forward: %w", err)
	}
	return nil
}
