package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// target is a platform, with its names in Go, in editor plugins, in npm and in Python wheels.
type target struct {
	os, arch string
	assets   []string // archives that editor plugins download, without ".zip"
	npm      [2]string
	wheel    string
}

func (t target) String() string { return t.os + "/" + t.arch }

// exe returns the file name of a program.
func (t target) exe(program string) string {
	if t.os == "windows" {
		return program + ".exe"
	}
	return program
}

func targets() []target {
	return []target{
		{"linux", "amd64", []string{"eca-native-static-linux-amd64", "eca-native-linux-amd64"}, [2]string{"linux", "x64"}, "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64"},
		{"linux", "arm64", []string{"eca-native-linux-aarch64"}, [2]string{"linux", "arm64"}, "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64"},
		{"darwin", "amd64", []string{"eca-native-macos-amd64"}, [2]string{"darwin", "x64"}, "macosx_12_0_x86_64"},
		{"darwin", "arm64", []string{"eca-native-macos-aarch64"}, [2]string{"darwin", "arm64"}, "macosx_12_0_arm64"},
		{"windows", "amd64", []string{"eca-native-windows-amd64"}, [2]string{"win32", "x64"}, "win_amd64"},
		{"windows", "arm64", []string{"eca-native-windows-aarch64"}, [2]string{"win32", "arm64"}, "win_arm64"},
	}
}

// build is the result of the build for one platform.
type build struct {
	target
	programs map[string][]byte // by name, without ".exe"
	modules  []module          // the Go modules in the programs
	licences []byte            // the licence texts of all modules
}

// compile builds programs into a directory.
func (r *release) compile(ctx context.Context, dir, goos, goarch string, programs ...string) error {
	args := []string{"build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w -X main.version=" + r.version, "-o", dir + string(filepath.Separator)}
	for _, p := range programs {
		args = append(args, "./cmd/"+p)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.root
	// Fix all settings that influence the build, so that the machine's own settings have no effect.
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, bytes.TrimSpace(out))
	}
	return nil
}

// build compiles the programs for a platform, and collects their modules and licences.
func (r *release) build(ctx context.Context, t target) (*build, error) {
	dir, err := os.MkdirTemp("", "eca-release-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	programs := []string{"eca", "ecp", "esrp"}
	if err := r.compile(ctx, dir, t.os, t.arch, programs...); err != nil {
		return nil, err
	}
	b := &build{target: t, programs: map[string][]byte{}}
	for _, p := range programs {
		if b.programs[p], err = os.ReadFile(filepath.Join(dir, t.exe(p))); err != nil {
			return nil, err
		}
	}
	if b.modules, err = modulesOf(b.programs); err != nil {
		return nil, err
	}
	b.licences, err = r.licences(ctx, b.modules)
	return b, err
}

// readMetadata builds eca for this machine, and sets the commit, the time, the completions and the manual
// page of the release.
func (r *release) readMetadata(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "eca-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := r.compile(ctx, dir, runtime.GOOS, runtime.GOARCH, "eca"); err != nil {
		return err
	}
	program := filepath.Join(dir, target{os: runtime.GOOS}.exe("eca"))
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			r.commit = s.Value
		case "vcs.time":
			r.time, err = time.Parse(time.RFC3339, s.Value)
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if err != nil || r.commit == "" {
		return errors.Join(errors.New("go build recorded no commit; build in a clone, because Go cannot read the commit in a git worktree"), err)
	}
	if dirty && !strings.HasSuffix(r.version, "-dev") {
		return fmt.Errorf("the working tree has changes that are not in v%s; commit or stash them", r.version)
	}
	r.completions = map[string][]byte{}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r.completions[shell], err = exec.CommandContext(ctx, program, "completion", shell).Output(); err != nil {
			return fmt.Errorf("eca completion %s: %w", shell, err)
		}
	}
	r.manual, err = manual(filepath.Join(r.root, "docs", "commands.md"), r.version, r.time)
	return err
}
