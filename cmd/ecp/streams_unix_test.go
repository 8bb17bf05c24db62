//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A command that names a pipe, which blocks until another program opens it, fails at once.
func TestNamedPipes(t *testing.T) {
	isolateEnvironment(t)
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	tasks := t.TempDir() // task folders in which one file is a pipe
	for name, others := range map[string][]string{"harbor/instruction.md": {"harbor/task.toml"}, "older/task.yaml": nil, "bench/tasks/a/task.yaml": {"bench/sweb.yaml"}} {
		for _, other := range others {
			write(t, filepath.Join(tasks, other), "")
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(tasks, name)), 0o700), syscall.Mkfifo(filepath.Join(tasks, name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	m := manifest(t, agentTarget(t, "ok"), scenario("a", has("x"), "x"))
	for _, args := range [][]string{
		{"validate", pipe},
		{"run", pipe},
		{"run", m, "--baseline", pipe},
		{"run", m, "--rerun-failed", pipe},
		{"run", m, "--resume", pipe},
		{"run", m, "--run-file", pipe},
		{"run", m, "--run-file", filepath.Join(dir, "new"), "--reuse-from", pipe},
		{"run", m, "--json-out", pipe},
		{"run", m, "--report", pipe},
		{"conformance", "--target", agentTarget(t, "ok"), "--json-out", pipe},
		{"view", "--no-open", pipe},
		{"export", "swebench", pipe},
		{"import", "swebench", pipe, "--out", dir, "--target", "x"},
		{"import", "swebench", filepath.Join(tasks, "bench"), "--out", dir, "--target", "x"},
		{"import", "harbor", filepath.Join(tasks, "harbor"), "--out", dir, "--target", "x"},
		{"import", "harbor", filepath.Join(tasks, "older"), "--out", dir, "--target", "x"},
		{"submit", pipe},
		{"cluster", "runs", "--nats", "nats://127.0.0.1:1", "--nkey", pipe},
		{"cluster", "runs", "--nats", "nats://127.0.0.1:1", "--tls-ca", pipe},
	} {
		if r := invoke(t, args...); r.code != exitError || !strings.Contains(r.err, "not a regular file") {
			t.Errorf("%q: exit %d: %s%s", args, r.code, r.out, r.err)
		}
	}
}

// A command reads what a shell passes as <(...), and writes to its >(...). Waiting for it ends with a
// signal.
func TestStreams(t *testing.T) {
	isolateEnvironment(t)
	m := manifest(t, agentTarget(t, "ok"), scenario("a", has("x"), "x"))
	text, err := os.ReadFile(m)
	if err != nil {
		t.Fatal(err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := in.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if r := invoke(t, "validate", fmt.Sprintf("/dev/fd/%d", out.Fd())); r.code != 0 || !strings.Contains(r.out, "Scenarios: 1") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	out, in, err = os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if r := invoke(t, "run", m, "--markdown", fmt.Sprintf("/dev/fd/%d", in.Fd())); r.code != 0 {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	written := make([]byte, 64<<10)
	if n, err := out.Read(written); err != nil || !strings.Contains(string(written[:n]), "PASSED") && !strings.Contains(string(written[:n]), "passed") {
		t.Errorf("%s, %v", written[:n], err)
	}
	silent, open, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(silent.Close(), open.Close()) }()
	path := fmt.Sprintf("/dev/fd/%d", silent.Fd())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"validate", path}, {"run", path}, {"run", m, "--baseline", path}, {"view", "--no-open", path}} {
		var stdout, stderr bytes.Buffer
		if code := run(ctx, args, streams{&stdout, &stderr}); code != exitInterrupted || !strings.Contains(stderr.String(), "interrupted") {
			t.Errorf("%q: exit %d: %s", args, code, stderr.String())
		}
	}
}
