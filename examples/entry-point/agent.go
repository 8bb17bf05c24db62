package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/proc"
)

// runAgent copies eca's sources into the workspace that the runtime created, and runs `eca ecp`
// there. It also serves the searcher, unless ownModel is set: then eca uses the user's configuration.
// It must be run at the root of the repository.
func runAgent(ctx context.Context, ownModel bool) (int, error) {
	workspace := os.Getenv("ECP_WORKSPACE")
	if workspace == "" {
		return 1, errors.New("ECP_WORKSPACE is not set: run manifest.yaml with ecp run, which starts this agent")
	}
	if err := copySources(".", workspace); err != nil {
		return 1, fmt.Errorf("copy the sources: %w", err)
	}
	cache, err := os.MkdirTemp("", "entry-point-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(cache) }()
	args := []string{"run", "./cmd/eca", "ecp"}
	env := []string{"XDG_CACHE_HOME=" + cache} // repository maps of a temporary folder
	if os.Getenv("GOCACHE") == "" {            // its default is below XDG_CACHE_HOME
		if dir, err := os.UserCacheDir(); err == nil {
			env = append(env, "GOCACHE="+filepath.Join(dir, "go-build"))
		}
	}
	if !ownModel {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return 1, err
		}
		server := &http.Server{Handler: newProvider(), ReadHeaderTimeout: time.Minute}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = server.Serve(listener)
		}()
		defer func() { _ = server.Close(); <-done }()
		args = []string{"run", "./cmd/eca", "--config-file", "examples/entry-point/config.json", "ecp"}
		env = append(env, "ENTRY_POINT_URL=http://"+listener.Addr().String()+"/v1")
	}
	exit, err := proc.Run(ctx, proc.Spec{Path: "go", Args: args, Env: env, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		return 1, fmt.Errorf("go run ./cmd/eca: %w", err)
	}
	return exit.Code, nil
}

// excludedFolders are the folders that are not copied. The folder examples contains the answers.
var excludedFolders = []string{"examples", "node_modules"} //nolint:gochecknoglobals // constant

func copySources(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == from {
			return err
		}
		if name := e.Name(); strings.HasPrefix(name, ".") || slices.Contains(excludedFolders, name) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		target := filepath.Join(to, path)
		switch {
		case e.IsDir():
			return os.MkdirAll(target, 0o755)
		case !e.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o600)
	})
}
