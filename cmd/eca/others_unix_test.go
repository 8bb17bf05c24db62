//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// Someone who can write the user's configuration can run commands as the user, and someone who can
// read a secret in it has that secret. eca reports both, and uses the file.
func TestConfigurationOfOthers(t *testing.T) {
	needs.Long(t)
	t.Setenv("GOTMPDIR", "/tmp") // others can reach it; they may not reach the folder of a run of tests
	here := newPlace(t)
	dir := filepath.Join(filepath.Dir(here.root), "config", "eca")
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(filepath.Dir(filepath.Dir(here.root)), 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"config.json": `{"providers": {"mine": {"api": "openai-chat", "url": "http://127.0.0.1:1", "key": "sk-0123456789", "fetchModels": false, "models": {"m": {}}}}}`,
	} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		mode os.FileMode
		say  string // in the output of config check, doctor and exec; empty: nothing is found
		code int    // of exec; 0: it is not run
	}{
		{"config.json", 0o600, "", 0},
		{"config.json", 0o644, "providers.mine.key is a secret, and other users can read this file: run `chmod 600 " + at("config.json") + "`", 1},
		{"config.json", 0o666, "other users can change it, because they can write to " + at("config.json") + " (mode 0666): run `chmod go-w " + at("config.json") + "`", 1},
		{".", 0o777, "they can write to " + dir + " (mode 0777): run `chmod go-w " + dir + "`", 1},
		{".", os.ModeSticky | 0o777, "", 0}, // only owners can replace files
	} {
		before, err := os.Stat(at(c.name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(at(c.name), c.mode); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"config", "check"}, {"doctor", "--offline"}, {"exec", "hi"}} {
			if args[0] == "exec" && c.code == 0 {
				continue
			}
			stdout, stderr, code := runProgram(t, here, "", args...)
			said := stdout + stderr
			switch {
			case c.say == "" && (code != 0 || strings.Contains(said, "chmod")):
				t.Errorf("eca %q with %s %o: exit code %d, %s", args, c.name, c.mode, code, said)
			case c.say != "" && !strings.Contains(said, c.say):
				t.Errorf("eca %q with %s %o does not say %q: %s", args, c.name, c.mode, c.say, said)
			}
			if args[0] == "exec" && code != c.code {
				t.Errorf("eca exec with %s %o: exit code %d, %s", c.name, c.mode, code, said)
			}
		}
		if err := os.Chmod(at(c.name), before.Mode()); err != nil {
			t.Fatal(err)
		}
	}
}

// If the chat store may not be read or written, every command names the file, the cause and the
// remedy once. Commands that only read work if the store can be read, exec still answers, and the
// daemon serves chats that it does not store.
func TestChatStoreWithoutPermission(t *testing.T) {
	needs.Long(t)
	p := newProvider(t, answerCassette("fine"))
	for _, c := range []struct {
		file string
		mode os.FileMode
		read bool   // chats can be read
		want string // %S is the store
	}{
		{"chats.db", 0, false, "%S: permission denied; run `chmod u+rwX %S*`"},
		{"chats.db", 0o400, true, "%S: permission denied; run `chmod u+rwX %S*`"},
		{"chats.db-wal", 0, true, "%S-wal: permission denied; run `chmod u+rwX %S*`"},
		{".", 0o500, true, "%D: permission denied; run `chmod u+rwX %D`"},
		{".", 0, false, "%D cannot be read (mode 0000): run `chmod 700 %D`"},
		{"chats.db", os.ModeDir, false, "%S: a folder is in the place of the file; restore it from a backup, or move it"},
	} {
		t.Run(c.file+" "+c.mode.String(), func(t *testing.T) {
			here := newPlace(t, p.env()...)
			if _, errOut, code := runProgram(t, here, "", "exec", "hi"); code != 0 {
				t.Fatal(errOut)
			}
			list, errOut, code := runProgram(t, here, "", "chats", "list")
			id, _, found := strings.Cut(list, " ")
			if code != 0 || !found {
				t.Fatal(list, errOut)
			}
			dir := filepath.Join(filepath.Dir(here.root), "state", "eca")
			at := filepath.Join(dir, c.file)
			if c.mode.IsDir() {
				if err := errors.Join(os.Remove(at), os.Mkdir(at, 0o700)); err != nil {
					t.Fatal(err)
				}
			} else {
				if f, err := os.OpenFile(at, os.O_CREATE, 0o600); err == nil {
					_ = f.Close()
				}
				if err := os.Chmod(at, c.mode); err != nil {
					t.Fatal(err)
				}
				defer os.Chmod(at, 0o700)
			}
			want := strings.NewReplacer("%S", filepath.Join(dir, "chats.db"), "%D", dir).Replace(c.want)
			for _, args := range [][]string{
				{"exec", "hi"},
				{"doctor", "--offline"},
				{"chats", "list"},
				{"chats", "search", "hi"},
				{"chats", "show", id},
				{"chats", "export", id},
				{"exec", "--continue", "hi"},
			} {
				if c.read && len(args) == 3 && args[0] == "exec" {
					continue // it continues the chat, which the cassette does not
				}
				answers := args[0] == "exec" && len(args) == 2 && !strings.Contains(c.want, "0000")
				out, errOut, code := runCommand(t, withoutRoot(t, here.command(args...)), "")
				if c.read && args[0] == "chats" {
					if code != 0 || !strings.Contains(out, "fine") && !strings.Contains(out, id) || strings.Count(errOut, want) != 1 {
						t.Errorf("eca %q: exit code %d, want what is stored, and %q once: %s%s", args, code, want, out, errOut)
					}
					continue
				}
				if n := strings.Count(out+errOut, want); n != 1 || (code == 0) != answers || answers != (out == "fine\n") {
					t.Errorf("eca %q: exit code %d, %q is said %d times: %s%s", args, code, want, n, out, errOut)
				}
			}
			if strings.Contains(c.want, "0000") {
				return // the server refuses to start, as exec does
			}
			server := connect(t, withoutRoot(t, here.command("server")))
			server.Open(here.root, nil)
			for _, id := range []string{"a", "b"} {
				mark := server.Mark()
				server.Call("chat/prompt", map[string]any{"chatId": id, "message": "hi"})
				server.Await(mark, "the answer", fake.Contains("chat/contentReceived", "fine"))
				server.Await(mark, "the end", fake.Contains("chat/contentReceived", "finished"))
			}
			server.Await(0, "the message", fake.Contains("chat/contentReceived", "cannot be saved", want))
		})
	}
}

// withoutRoot returns a command that runs without root's right to ignore permissions.
func withoutRoot(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	if os.Geteuid() != 0 {
		return cmd
	}
	setpriv := needs.Program(t, "setpriv", "util-linux") // root ignores permissions
	cmd.Args = append([]string{setpriv, "--bounding-set=-dac_override,-dac_read_search", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = setpriv
	return cmd
}
