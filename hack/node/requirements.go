// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// installer is the script that installs what a node needs, as seen from the top of the checkout.
const installer = "hack/install-node-packages.sh"

// programDirs are where Debian has programs for root, whatever the PATH of the caller is.
var programDirs = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// pluginDirs are where CNI plugins are, as Debian and as others have it.
var pluginDirs = []string{"/usr/lib/cni", "/opt/cni/bin"}

// neededPrograms and neededPlugins come from Debian packages.
var (
	neededPrograms = []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc", "ip", "nft"}
	neededPlugins  = []string{"ptp", "host-local", "loopback"}
)

// Check returns nil if a node can run on this machine, and else ErrUnavailable with the reason.
func Check() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("%w: it needs Linux, this is %s", ErrUnavailable, runtime.GOOS)
	}
	if uid := os.Geteuid(); uid != 0 {
		return fmt.Errorf("%w: it needs root, this is user %d", ErrUnavailable, uid)
	}
	var missing []string
	for _, program := range neededPrograms {
		if find(programDirs, program) == "" {
			missing = append(missing, program)
		}
	}
	if pluginDir() == "" {
		missing = append(missing, "CNI plugins "+strings.Join(neededPlugins, ", "))
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: it needs %s; on Debian and Ubuntu, %s installs them",
			ErrUnavailable, strings.Join(missing, ", "), installer)
	}
	return nil
}

// find returns the path of a program in the first directory that has it, or "".
func find(dirs []string, program string) string {
	for _, dir := range dirs {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// pluginDir returns the directory that has all CNI plugins that a node needs, or "".
func pluginDir() string {
	for _, dir := range pluginDirs {
		found := 0
		for _, plugin := range neededPlugins {
			if find([]string{dir}, plugin) != "" {
				found++
			}
		}
		if found == len(neededPlugins) {
			return dir
		}
	}
	return ""
}
