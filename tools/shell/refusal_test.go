package shell

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// refusalIn finds in the error output of programs what the sandbox refused.
func TestRefusalsAreNamed(t *testing.T) {
	posix(t)
	dir := t.TempDir() // where eca may write, and the command may not
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bound := sandbox.Policy{Level: sandbox.Workspace}
	for stderr, want := range map[string]string{
		"touch: cannot touch '" + dir + "/x': Read-only file system":                             "use of " + dir + "/x refused",
		"bash: line 1: " + file + ": Permission denied":                                          "use of " + file + " refused",
		"/bin/bash: line 1: " + file + ": Read-only file system":                                 "use of " + file + " refused",
		"cp: cannot create regular file '" + dir + "/a/b': Operation not permitted":              "use of " + dir + "/a/b refused",
		"npm ERR! code EROFS\nnpm ERR! EROFS: read-only file system, mkdir '" + dir + "/n'":      "use of " + dir + "/n refused",
		"curl: (6) Could not resolve host: registry.example":                                     "connection to registry.example refused",
		"npm ERR! request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN": "connection to registry.npmjs.org refused",
		"dial tcp: lookup proxy.golang.org: Temporary failure in name resolution":                "connection to proxy.golang.org refused",
		"script: failed to create pseudo-terminal: Operation not permitted":                      "a pseudo terminal refused",
		"error: could not write config file .git/config: Device or resource busy":                "writing to git's configuration refused",
		"umount: /mnt: Device or resource busy":                                                  "",
		"mkdir: cannot create directory: Read-only file system":                                  "writing refused",
		"bash: line 1: /etc-of-nobody/x: Permission denied: not found":                           "",
	} {
		if strings.HasPrefix(stderr, "bash: line 1: /etc-of") && os.Geteuid() == 0 {
			continue // root could
		}
		if got := refusalIn(bound, 1, stderr).what; got != want {
			t.Errorf("%q: %q, want %q", stderr, got, want)
		}
		if got := refusalIn(sandbox.Policy{}, 1, stderr).what + refusalIn(bound, 0, stderr).what; got != "" {
			t.Errorf("%q: without a sandbox, or of a command that did not fail: %q", stderr, got)
		}
	}
	for _, line := range []string{
		"permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: dial unix /var/run/docker.sock: socket: operation not permitted",
		"Error: listen EPERM: operation not permitted /tmp/tsx-0/1.pipe", "Failed to connect to bus: socket: Operation not permitted",
	} {
		if got := refusalIn(sandbox.Policy{Level: sandbox.Workspace, Network: true}, 1, line).what; got != "use of a Unix socket refused" {
			t.Errorf("%q: %q", line, got)
		}
		if got := refusalIn(sandbox.Policy{Level: sandbox.Workspace, Network: true, UnixSockets: true}, 1, line).what; strings.Contains(got, "Unix socket") {
			t.Errorf("%q, with Unix sockets: %q", line, got)
		}
	}
	if got := refusalIn(sandbox.Policy{Level: sandbox.Workspace, Network: true}, 1, "curl: (6) Could not resolve host: x.example"); got.what != "" {
		t.Errorf("with network: %q", got)
	}
}

// If a command cannot connect from the sandbox to a local server of the user, the result names the
// sandbox as the reason. If no such server runs, it does not.
func TestOwnServerOutsideOfTheSandboxIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	bound := sandbox.Policy{Level: sandbox.Workspace, Loopback: true}
	lines := []string{
		"curl: (7) Failed to connect to 127.0.0.1 port " + port + " after 0 ms: Couldn't connect to server",
		"dial tcp 127.0.0.1:" + port + ": connect: connection refused", "Error: connect ECONNREFUSED ::1:" + port,
		"psql: error: connection to server at \"localhost\" (127.0.0.1), port " + port + " failed: Connection refused",
	}
	for _, line := range lines {
		if got := refusalIn(bound, 1, line).what; got != "connection to your own server at localhost:"+port+" refused (toolCall.sandboxPorts)" {
			t.Errorf("%q: %q", line, got)
		}
	}
	if got := refusalIn(sandbox.Policy{Level: sandbox.Workspace}, 1, lines[0]).what; got != "" {
		t.Errorf("with the loopback of the machine: %q", got)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if got := refusalIn(bound, 1, line).what; got != "" {
			t.Errorf("%q, and nothing listens there: %q", line, got)
		}
	}
}

// Of more than 100 commands that fail for other reasons, at most two are reported as stopped by the
// sandbox.
func TestFailuresOfTheirOwnAreNotStopped(t *testing.T) {
	posix(t)
	root := t.TempDir()
	setup := `mkdir d; echo 'exit 3' > s.sh; echo '{' > bad.json; : > plain; echo 'def' > bad.py; printf 'all:\n\tfalse\n' > Makefile; echo 'int main(' > a.c`
	var commands []string
	for i := range 10 {
		commands = append(
			commands, fmt.Sprintf("exit %d", i+1), fmt.Sprintf("cat missing%d", i), fmt.Sprintf("ls /nowhere/%d", i), fmt.Sprintf("grep needle%d plain", i), fmt.Sprintf("cd nowhere%d", i),
			fmt.Sprintf("test %d -gt 20", i), fmt.Sprintf("echo 'Error: test %d failed: expected 1, got 2' >&2; exit 1", i),
		)
	}
	commands = append(
		commands, "./plain", "no-such-program", "sh s.sh", "false", "make", "make nothing", "cat d", "rmdir /", "mkdir d", "mv missing d", "cp missing d", "rm missing", "diff plain s.sh", "cmp plain s.sh", "tar xf plain", "gzip -d plain", "git -C nowhere status", "git checkout nothing", "git log",
		"sort missing", "head -n x plain", "sed -e '(' plain; sed 's/x' plain", "awk '{' plain", "find nowhere", "kill -0 999999999", "ls --nonsense", "grep '[' plain", "expr 1 / 0", "[ 1 -eq x ]", "exec 9<missing",
		"echo 'PermissionError: [Errno 13] Permission denied' >&2; exit 1", "echo '403 permission denied for user x' >&2; exit 1",
	)
	if len(commands) < 100 {
		t.Fatalf("%d commands", len(commands))
	}
	wrong := 0
	bound := sandbox.Policy{Level: sandbox.Workspace, Write: []string{root}}
	run := func(command string) (code int, stderr string) {
		t.Helper()
		_, exit, stderr, err := runToEnd(t.Context(), nil, Options{}.processFor(command, root), defaultTimeout, nil)
		if err != nil {
			t.Fatal(err)
		}
		return exit.Code, stderr
	}
	run(setup)
	for _, command := range commands {
		code, stderr := run(command)
		if code == 0 {
			t.Errorf("%q does not fail", command)
		}
		if s := refusalIn(bound, code, stderr); s.what != "" {
			wrong++
			t.Logf("%q: %s (%q)", command, s.what, stderr)
		}
	}
	if wrong > 2 {
		t.Errorf("%d of %d commands are reported as stopped by the sandbox, want at most 2", wrong, len(commands))
	}
}

// Results have the hosts, the port and the folder that the sandbox refused.
func TestStopAsData(t *testing.T) {
	for _, c := range []struct {
		run  attempt
		want event.SandboxStop
	}{
		{attempt{refusal: refusal{what: "connection to a.example refused", host: "a.example"}}, event.SandboxStop{Text: "connection to a.example", Hosts: []string{"a.example"}}},
		{attempt{refused: []string{"a.example:443"}, private: []string{"[fd00::1]:80"}, refusal: refusal{what: "use of /x/y refused", path: "/x/y"}}, event.SandboxStop{Text: "connection to a.example:443, [fd00::1]:80", Hosts: []string{"a.example", "fd00::1"}}},
		{attempt{refusal: refusal{what: "connection to your own server at localhost:80 refused (toolCall.sandboxPorts)", port: "80"}}, event.SandboxStop{Text: "connection to your own server at localhost:80", Port: "80"}},
		{attempt{refusal: refusal{what: "use of /x/y refused", path: "/x/y"}}, event.SandboxStop{Text: "use of /x/y", Folder: "/x"}},
		{attempt{refusal: refusal{what: "a pseudo terminal refused"}}, event.SandboxStop{Text: "a pseudo terminal"}},
	} {
		if got := c.run.sandboxStop(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v", got)
		}
	}
}
