// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/freehold-dev/freehold/hack/cluster/binaries"
	"github.com/freehold-dev/freehold/hack/source"
)

// The images by their names.
const (
	// Pause holds the namespaces of every pod.
	Pause = "freehold.invalid/pause:1"
	// Server is an MCP server for all transports, and NextServer is the same with another version.
	Server     = "freehold.invalid/mcp-server:1"
	NextServer = "freehold.invalid/mcp-server:2"
	// Sample is Server under the name of the image of deploy/samples, as the local node reaches no registry.
	Sample = "ghcr.io/stackloklabs/yardstick/yardstick-server:1.1.1"
	// Client is an MCP client; its arguments control it.
	Client = "freehold.invalid/mcp-client:1"
)

// ProxyRunner and VirtualMCP are ToolHive's, as they are published, of the release that binaries.ToolHiveEnv names.
var (
	ProxyRunner = toolhive("proxyrunner", binaries.ProxyRunner)
	VirtualMCP  = toolhive("vmcp", binaries.VirtualMCP)
)

func toolhive(name string, tool binaries.Tool) string {
	version, err := binaries.Version(tool)
	if err != nil {
		panic(err) // The environment names a release that there is none of.
	}
	return "freehold.invalid/" + name + ":" + version
}

// ForMCP lists the images for MCPServers and their clients. A node brings Pause itself.
func ForMCP() []string { return []string{ProxyRunner, Server, NextServer, Client} }

// content lists the contents of an image.
type content struct {
	// program is its name in the image.
	program string
	// module and pkg are where it is built from, in the checkout. Empty: it is tool.
	module, pkg string
	tool        binaries.Tool
	// env are environment variables, as KEY=value.
	env []string
}

const versionEnv = "MCP_SERVER_VERSION="

var contents = map[string]content{
	Pause:       {program: "pause", module: "hack", pkg: "./images/pause"},
	ProxyRunner: {program: "thv-proxyrunner", tool: binaries.ProxyRunner},
	VirtualMCP:  {program: "vmcp", tool: binaries.VirtualMCP},
	Server:      server("1"),
	Sample:      server("1"),
	NextServer:  server("2"),
	Client:      {program: "mcp-client", module: "hack/images/mcp", pkg: "./client"},
}

func server(version string) content {
	return content{program: "mcp-server", module: "hack/images/mcp", pkg: "./server", env: []string{versionEnv + version}}
}

// Write writes an archive of each named image to the directory and returns their paths, in the order of the names.
// Programs that have to be built first are reported to progress.
func Write(ctx context.Context, dir string, progress io.Writer, names ...string) ([]string, error) {
	var archives []string
	built := map[string]string{}
	for i, name := range names {
		image, ok := contents[name]
		if !ok {
			return nil, fmt.Errorf("no such image %q", name)
		}
		program := built[image.program]
		if program == "" {
			var err error
			if program, err = image.build(ctx, dir, progress); err != nil {
				return nil, err
			}
			built[image.program] = program
		}
		archive := filepath.Join(dir, fmt.Sprintf("%d-%s.tar", i, image.program))
		if err := pack(archive, name, program, image); err != nil {
			return nil, fmt.Errorf("making image %s: %w", name, err)
		}
		archives = append(archives, archive)
	}
	for _, image := range names {
		// What was built here is in the archives now.
		if c := contents[image]; c.tool == "" {
			if err := os.Remove(built[c.program]); err != nil && !os.IsNotExist(err) {
				return nil, err
			}
		}
	}
	return slices.Clip(archives), nil
}

// build returns the path of the image's program.
func (c content) build(ctx context.Context, dir string, progress io.Writer) (string, error) {
	if c.tool != "" {
		found, err := binaries.Finder{Progress: progress}.Ensure(ctx, c.tool)
		return found[c.tool], err
	}
	path := filepath.Join(dir, c.program)
	return path, source.BuildStatic(ctx, c.module, c.pkg, path)
}
