package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Output that cannot be written makes every command fail, with one message.
func TestLostOutputFails(t *testing.T) {
	p := newProvider(t, "cassette: 1\nturns:\n  - steps:\n      - {text: fine}\n")
	for _, args := range [][]string{{"exec", "hi"}, {"exec", "--json", "hi"}, {"--version"}, {"--help"}, {"config", "schema"}, {"config", "show"}, {"permission", "explain", "ls"}} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		cmd := newPlace(t, p.env()...).command(args...)
		var stderr strings.Builder
		cmd.Stdout, cmd.Stderr = full, &stderr
		_ = cmd.Run()
		_ = full.Close()
		if code := cmd.ProcessState.ExitCode(); code != 1 || strings.Count(stderr.String(), "no space left") != 1 {
			t.Errorf("%q: exit code %d: %s", args, code, &stderr)
		}
	}
	stdout, stderr, code := runProgram(t, newPlace(t, p.env()...), "", "exec", "-o", "/dev/full", "hi")
	if code != exitFailed || strings.Count(stderr, "no space left") != 1 || !strings.Contains(stderr, "--output") {
		t.Errorf("-o: exit code %d: %s%s", code, stdout, stderr)
	}
}

// Commands in a directory that was deleted say so.
func TestDeletedWorkingDirectoryIsNamed(t *testing.T) {
	p := newProvider(t, "cassette: 1\nturns:\n  - steps:\n      - {text: fine}\n")
	here := newPlace(t, p.env()...)
	for _, args := range []string{"exec hi", "models", "config check", "trust", "trust --list", "repomap"} {
		if err := os.WriteFile(here.root+"/../run.sh", []byte("mkdir -p gone && cd gone && rmdir ../gone && exec \"$@\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		self := here.command().Path
		_, stderr, code := runScript(t, here, here.root+"/../run.sh", append([]string{self}, strings.Fields(args)...)...)
		if code != 1 || !strings.Contains(stderr, "deleted or moved") {
			t.Errorf("%s: exit code %d: %s", args, code, stderr)
		}
	}
}

// Lists of chats that are empty, and limits out of range, are explained.
func TestChatsExplainEmptyListsAndLimits(t *testing.T) {
	p := newProvider(t, "cassette: 1\nturns:\n  - steps:\n      - {text: fine}\n")
	here := newPlace(t, p.env()...)
	list := func(want string, args ...string) {
		t.Helper()
		if stdout, stderr, code := runProgram(t, here, "", append([]string{"chats", "list"}, args...)...); code != 0 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d: %q %s", args, code, stdout, stderr)
		}
	}
	list("there are no chats yet")
	if _, stderr, code := runProgram(t, here, "", "exec", "hi"); code != 0 {
		t.Fatal(stderr)
	}
	list("there are no chats of "+filepath.Dir(here.root), "--workspace", filepath.Dir(here.root))
	if _, stderr, code := runProgram(t, here, "", "chats", "list", "--workspace", "/nonexist"); code != 1 || !strings.Contains(stderr, "there is no folder /nonexist, and no chats were made there") {
		t.Errorf("a folder that does not exist: exit code %d: %s", code, stderr)
	}
	for _, limit := range []string{"0", "-1", "900"} {
		if _, stderr, code := runProgram(t, here, "", "chats", "search", "--limit", limit, "x"); code != 2 || !strings.Contains(stderr, "--limit must be between 1 and") {
			t.Errorf("--limit %s: exit code %d: %s", limit, code, stderr)
		}
	}
	if _, stderr, code := runProgram(t, here, "", "exec", "-o", "-", "hi"); code != 2 || !strings.Contains(stderr, "stdout") {
		t.Errorf("-o -: exit code %d: %s", code, stderr)
	}
	here.env = append(here.env, "HOME=relative", "XDG_STATE_HOME=")
	if _, stderr, code := runProgram(t, here, "", "chats", "list"); code != 1 || !strings.Contains(stderr, "HOME must be an absolute path") {
		t.Errorf("relative home: exit code %d: %s", code, stderr)
	}
}
