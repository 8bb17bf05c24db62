package main

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// A workspace's .env and .envrc do not change eca's environment: no request goes to their
// addresses, and no configuration is read from their paths.
func TestDotEnvIsNotRead(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var visits atomic.Int32
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			visits.Add(1)
			_ = c.Close()
		}
	}()
	p := newProvider(t, hello)
	here := newPlace(t, p.env()...)
	evil := filepath.Join(here.root, "evil")
	text := ""
	for _, line := range []string{"OPENAI_API_URL=http://" + listener.Addr().String(), "HTTP_PROXY=http://" + listener.Addr().String(), "XDG_CONFIG_HOME=" + evil, "XDG_STATE_HOME=" + evil, "HOME=" + evil, `ECA_CONFIG={"welcomeMessage": "EVIL"}`, "ECA_CONFIG_PATH=" + evil} {
		text += line + "\n"
	}
	if err := os.MkdirAll(filepath.Join(evil, "eca"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{".env": text, ".envrc": text, ".eca/.env": text, "evil/eca/config.json": `{"welcomeMessage": "EVIL"}`} {
		path = filepath.Join(here.root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := here.serve(t)
	if started := string(e.Open(here.root, nil)); strings.Contains(started, "EVIL") {
		t.Errorf("the configuration is that of the workspace: %s", started)
	}
	e.Call("chat/prompt", map[string]any{"chatId": "c", "message": "hi"})
	e.Await(0, "the answer", fake.Content("text", "Hello."))
	e.Await(0, "the end", fake.Finished())
	shutDown(t, e)
	if n := visits.Load(); n > 0 {
		t.Errorf("the attacker was reached %d times", n)
	}
	if list, err := os.ReadDir(evil); err != nil || len(list) != 1 {
		t.Errorf("something was put into the workspace: %v %v", list, err)
	}
}

// With any umask, eca's files are only accessible to its user, and have no predictable names in
// shared folders.
func TestFilesArePrivate(t *testing.T) {
	p := newProvider(t, `
cassette: 1
default:
  steps:
    - calls: [{id: a, tool: eca__shell_command, arguments: {command: "seq 1 100000"}}, {id: b, tool: eca__write_file, arguments: {path: "${workspace}/a.txt", content: x}}]
    - {text: Done.}
turns: []
`)
	here := newPlace(t, p.env()...)
	temp := t.TempDir()
	here.env = append(here.env, "TMPDIR="+temp)
	cmd := here.command("server")
	cmd.Args = append([]string{"sh", "-c", `umask 0; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	e := connect(t, cmd)
	e.Open(here.root, nil)
	e.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go", "trust": true})
	e.Await(0, "the end", fake.Finished())
	shutDown(t, e)
	kept := 0
	base := filepath.Dir(here.root)
	for _, top := range []string{filepath.Join(base, "state"), filepath.Join(base, "config"), filepath.Join(base, "cache", "eca"), temp} {
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || path == top || filepath.Base(path) == "models-dev.json" {
				return nil //nolint:nilerr // not every folder exists
			}
			info, err := d.Info()
			if err != nil {
				return nil //nolint:nilerr // it does not exist any more
			}
			kept++
			// Other users cannot reach files below a private folder.
			if info.Mode().Perm()&0o077 != 0 && info.Mode()&fs.ModeSymlink == 0 {
				t.Errorf("%s is %s", path, info.Mode())
			}
			if d.IsDir() && info.Mode().Perm()&0o077 == 0 && top == temp {
				return filepath.SkipDir
			}
			return nil
		})
	}
	if kept == 0 {
		t.Error("eca stored no file whose mode the test could check")
	}
}

// eca only listens to its client.
func TestNothingListens(t *testing.T) {
	p := newProvider(t, hello)
	here := newPlace(t, p.env()...)
	e := here.serve(t)
	e.Open(here.root, nil)
	e.Call("chat/prompt", map[string]any{"chatId": "c", "message": "hi"})
	e.Await(0, "the end", fake.Finished())
	if own := listeningSockets(t, os.Getpid()); len(own) == 0 {
		t.Error("listening does not find the provider, which listens in this process")
	}
	if found := listeningSockets(t, e.cmd.Process.Pid); len(found) > 0 {
		t.Errorf("listening: %v", found)
	}
	shutDown(t, e)
}

// listeningSockets lists the sockets on which a process accepts connections.
func listeningSockets(t *testing.T, pid int) (out []string) {
	t.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	entries, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(dir, "fd", e.Name())); err == nil && strings.HasPrefix(to, "socket:[") {
			own[strings.Trim(to, "socket:[]")] = true
		}
	}
	for _, kind := range []string{"tcp", "tcp6", "udp", "udp6", "unix"} {
		data, err := os.ReadFile(filepath.Join(dir, "net", kind))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			f := strings.Fields(line)
			switch {
			case kind == "unix" && len(f) > 6 && f[3] == "00010000" && own[f[6]], // __SO_ACCEPTCON
				strings.HasPrefix(kind, "tcp") && len(f) > 9 && f[3] == "0A" && own[f[9]], // LISTEN
				strings.HasPrefix(kind, "udp") && len(f) > 9 && f[3] == "07" && own[f[9]]:
				out = append(out, kind+" "+f[1])
			}
		}
	}
	return out
}

// A workspace may have pipes without a writer, or links to endless files. eca still starts, works,
// and ends.
func TestOddFilesInWorkspace(t *testing.T) {
	needs.Long(t)
	names := []string{".eca/config.json", ".eca/agents/a.md", ".eca/rules/r.md", ".eca/commands/c.md", ".eca/skills/s/SKILL.md", ".agents/skills/t/SKILL.md", "AGENTS.md", "CLAUDE.md", ".gitignore", ".git/config", ".git/HEAD", ".git/info/exclude", "sub/.gitignore", "src/a.go", "b.go"}
	for _, kind := range []string{"pipe", "endless", "loop", "huge", "folder"} {
		t.Run(kind, func(t *testing.T) {
			p := newProvider(t, `
cassette: 1
default:
  steps:
    - calls: [{id: a, tool: eca__repo_map, arguments: {}}, {id: b, tool: eca__grep, arguments: {path: "${workspace}", pattern: x}}, {id: c, tool: eca__read_file, arguments: {path: "${workspace}/b.go"}}, {id: d, tool: eca__directory_tree, arguments: {path: "${workspace}"}}, {id: e, tool: eca__glob, arguments: {pattern: "**/*.go"}}, {id: f, tool: eca__edit_file, arguments: {path: "${workspace}/b.go", original_content: x, new_content: y}}]
    - {text: Done.}
turns: []
`)
			here := newPlace(t, p.env()...)
			for _, name := range names {
				path := filepath.Join(here.root, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				var err error
				switch kind {
				case "pipe":
					err = syscall.Mkfifo(path, 0o644)
				case "endless":
					err = os.Symlink("/dev/zero", path)
				case "loop":
					err = os.Symlink(filepath.Base(path), path)
				case "huge": // no bytes on the disk
					if err = os.WriteFile(path, nil, 0o644); err == nil {
						err = os.Truncate(path, 1<<40)
					}
				case "folder":
					err = os.Mkdir(path, 0o755)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			e := here.serve(t)
			e.Open(here.root, nil)
			decide(t, e, "chat/toolCallReject") // links out of the workspace ask
			e.Call("chat/queryFiles", map[string]any{"chatId": "c", "query": "b"})
			e.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go", "contexts": []any{map[string]any{"type": "file", "path": filepath.Join(here.root, "b.go")}, map[string]any{"type": "directory", "path": here.root}, map[string]any{"type": "repoMap"}}})
			e.Await(0, "the end", fake.Finished())
			if peak := testkit.PeakMemory(e.cmd.Process.Pid); peak == 0 || peak > 500<<20 {
				t.Errorf("it took %d bytes", peak)
			}
			shutDown(t, e)
		})
	}
}

// Approving everything does not override a denial.
func TestApproveAllKeepsDenials(t *testing.T) {
	p := newProvider(t, `
cassette: 1
default:
  steps:
    - calls: [{id: a, tool: eca__shell_command, arguments: {command: "ls; touch denied.txt"}}, {id: b, tool: eca__write_file, arguments: {path: "${workspace}/denied.txt", content: x}}, {id: c, tool: eca__shell_command, arguments: {command: "echo x > fine.txt"}}]
    - {text: Done.}
turns: []
`)
	here := newPlace(t, p.env()...)
	here.env = append(here.env, `ECA_CONFIG={"chat": {"title": false, "defaultTrust": true}, "toolCall": {"approval": {"deny": {"eca__shell_command": {"argsMatchers": {"command": ["touch .*"]}}, "eca__write_file": {}}}}}`)
	stdout, stderr, _ := runProgram(t, here, "", "exec", "--approve", "all", "go")
	for file, want := range map[string]bool{"denied.txt": false, "fine.txt": true} {
		if _, err := os.Stat(filepath.Join(here.root, file)); (err == nil) != want {
			t.Errorf("%s is there: %v\n%s%s", file, err == nil, stdout, stderr)
		}
	}
}
