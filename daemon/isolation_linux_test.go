package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/internal/testkit"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/shell"
)

// newIsolated returns a daemon whose commands get namespaces, and a folder that is not below the
// temporary one.
func newIsolated(t *testing.T) (*Daemon, string) {
	t.Helper()
	dir := testkit.OutOfTemp(t)
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	return isolatedAt(t, home), dir
}

// isolatedAt returns a daemon of a home folder, whose commands are isolated.
func isolatedAt(t *testing.T, home string) *Daemon {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := New(Options{
		Getenv:   func(name string) string { return map[string]string{"HOME": home}[name] },
		StateDir: filepath.Join(home, ".local", "state", "eca"), CacheDir: filepath.Join(home, ".cache", "eca"), Supervisor: self,
	})
	t.Cleanup(d.Close)
	d.Configure(json.RawMessage(`{"toolCall": {"sandbox": "on"}}`), nil)
	if here := d.bounds.Isolation(); !here.Mounts || !here.Processes {
		t.Skip("NOT TESTED: no mount and PID namespaces on this machine: " + here.Without)
	}
	return d
}

// runInWorkspace runs a script at the workspace level, as a command that the user did not approve
// by hand.
func runInWorkspace(t *testing.T, d *Daemon, root, script string) (code int, out string) {
	t.Helper()
	policy := d.bounds.Custom(d.Config(), "", tools.Call{Roots: []string{root}})
	if policy.Level != sandbox.Workspace || !policy.Isolate {
		t.Fatalf("the policy is %+v", policy)
	}
	return run(t, d, policy, root, script)
}

// run runs a script within a policy.
func run(t *testing.T, d *Daemon, policy sandbox.Policy, root, script string) (code int, out string) {
	t.Helper()
	var buf bytes.Buffer
	exit, err := d.children.Run(context.Background(), proc.Spec{
		Path: "bash", Args: []string{"-c", script}, Dir: root, Stdout: &buf, Stderr: &buf, Sandbox: policy,
		Env: gitUser(),
	})
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return exit.Code, buf.String()
}

func gitUser() []string {
	return []string{"GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@x", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@x", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true"}
}

// git runs git outside all bounds.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), gitUser()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// repositories makes a clone, a linked worktree of it, and a submodule in it.
func repositories(t *testing.T, dir string) map[string]string {
	t.Helper()
	origin, lib := filepath.Join(dir, "origin"), filepath.Join(dir, "lib")
	for _, repo := range []string{origin, lib} {
		git(t, dir, "init", "-q", repo)
		write(t, filepath.Join(repo, "a.txt"), "text\n")
		git(t, repo, "add", ".")
		git(t, repo, "commit", "-qm", "first")
	}
	clone, worktree := filepath.Join(dir, "clone"), filepath.Join(dir, "worktree")
	git(t, dir, "clone", "-q", origin, clone)
	git(t, clone, "submodule", "add", "-q", lib, "sub/lib")
	git(t, clone, "commit", "-qm", "submodule")
	git(t, clone, "worktree", "add", "-q", "-b", "linked", worktree)
	return map[string]string{"clone": clone, "worktree": worktree, "submodule": filepath.Join(clone, "sub", "lib")}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Commands that can write to the workspace cannot change its protected files: not directly, through
// links, or by moving the folders above them.
func TestProtectedPlacesStay(t *testing.T) {
	needs.Long(t)
	d, dir := newIsolated(t)
	repos := repositories(t, dir)
	clone := repos["clone"]
	names := []string{
		".eca/config.json", ".envrc", ".npmrc", "AGENTS.md", ".mcp.json", ".vscode/tasks.json", ".husky/pre-commit", ".cargo/config.toml",
		".config/nvim/init.lua", ".local/bin/tool", ".gradle/init.d/x.gradle", "x.code-workspace", "deep/er/.envrc", "deep/er/.cursor/rules", ".yarnrc.yml",
		".git/info/attributes", ".git/config.worktree", ".git/hooks/pre-commit", "sub/other/.git/config", "sub/other/.git/hooks/post-checkout",
	}
	git(t, clone, "init", "-q", "sub/other")
	for _, name := range names {
		if !strings.HasSuffix(name, "/.git/config") {
			write(t, filepath.Join(clone, name), "before\n")
		}
	}
	all := append([]string{".git/config", ".git/modules/sub/lib/config", ".git/modules/sub/lib/hooks/x"}, names...)
	write(t, filepath.Join(clone, ".git/modules/sub/lib/hooks/x"), "before\n")
	before := map[string]string{}
	for _, name := range all {
		before[name] = read(t, filepath.Join(clone, name))
	}
	for _, name := range all {
		for _, script := range []string{
			`echo x > "$N"`, `echo x >> "$N"`, `rm -f "$N"`, `mv "$N" "$N.old"`, `echo x > new && mv -f new "$N"`, `ln "$N" hard && echo x >> hard`, `chmod 777 "$N"`,
			`touch "$N"`, `truncate -s 0 "$N"`, `sed -i s/./x/ "$N"`, `ln -sf /etc/passwd "$N"`, `setfattr -n user.x -v y "$N"`, `cp /etc/passwd "$N"`,
			`p=$(dirname "$N"); b=$(basename "$N"); mv "$p" moved && echo x > "moved/$b"`,
			`p=$(dirname "$N"); b=$(basename "$N"); [ "$p" != . ] && mv "$p" moved && mkdir -p "$p" && false`,
			`p=${N%%/*}; [ "$p" != "$N" ] && mv "$p" moved && echo x > "moved/${N#*/}"`,
		} {
			code, out := runInWorkspace(t, d, clone, "N='"+name+"'; "+script)
			if code == 0 {
				t.Errorf("%s: %s: worked: %s", name, script, out)
			}
			// A plain folder above can be moved. Protected files move with it unchanged.
			first, _, _ := strings.Cut(name, "/")
			for _, dir := range []string{first, filepath.Dir(name)} {
				if _, err := os.Lstat(filepath.Join(clone, dir)); err != nil {
					_ = os.Rename(filepath.Join(clone, "moved"), filepath.Join(clone, dir))
				}
			}
			if _, err := os.Lstat(filepath.Join(clone, name)); err != nil { // the script moved the folder and created another
				_ = os.RemoveAll(filepath.Join(clone, filepath.Dir(name)))
				_ = os.Rename(filepath.Join(clone, "moved"), filepath.Join(clone, filepath.Dir(name)))
			}
			_ = os.RemoveAll(filepath.Join(clone, "moved"))
		}
		found := filepath.Join(clone, name)
		if _, err := os.Lstat(found); err != nil || read(t, found) != before[name] {
			t.Errorf("%s is changed: %v", name, err)
		}
		_ = os.RemoveAll(filepath.Join(clone, "hard"))
		_ = os.RemoveAll(filepath.Join(clone, "new"))
	}
	for name, root := range repos {
		for _, script := range []string{
			`echo x >> "$(git rev-parse --git-common-dir)/config"`, `echo x > "$(git rev-parse --git-path hooks)/new"`, `git config core.fsmonitor ./x`,
			`mv "$(git rev-parse --git-common-dir)" gone`, `mkdir -p "$(git rev-parse --git-common-dir)/hooks/d"`,
		} {
			if code, out := runInWorkspace(t, d, root, script); code == 0 {
				t.Errorf("%s: %s: worked: %s", name, script, out)
			}
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(data)
}

// Everyday git commands work, in a clone, in a linked worktree and in a submodule.
func TestGitWorksBesideProtectedPlaces(t *testing.T) {
	needs.Long(t)
	d, dir := newIsolated(t)
	for name, root := range repositories(t, dir) {
		for _, script := range []string{
			"echo x > new.txt && git add new.txt && git commit -qm second",
			"git checkout -qb topic-" + name + " && echo y >> new.txt && git commit -qam third",
			"echo z >> new.txt && git stash -q && git stash pop -q && git checkout -q new.txt",
			"git checkout -q -b other-" + name + " HEAD~1 && echo o > o.txt && git add . && git commit -qm fourth",
			"git rebase -q topic-" + name + " && git log --oneline | grep -q third",
			"git merge -q topic-" + name + "; git tag t-" + name + "; git gc -q; git status --short; git fsck --no-progress",
			"git reset -q --hard HEAD~1 && git clean -qfd && git branch -D topic-" + name,
		} {
			if code, out := runInWorkspace(t, d, root, script); code != 0 {
				t.Errorf("%s: %s: exit %d: %s", name, script, code, out)
			}
		}
		if out := read(t, filepath.Join(root, "new.txt")); out != "x\n" && out != "x\ny\n" {
			t.Errorf("%s: %q", name, out)
		}
	}
}

// A file .git that names a folder of another repository or of the user does not make it writable.
func TestForeignGitFolderStaysReadOnly(t *testing.T) {
	d, dir := newIsolated(t)
	repos := repositories(t, dir)
	root := filepath.Join(dir, "evil")
	for _, target := range []string{filepath.Join(repos["clone"], ".git"), filepath.Join(repos["clone"], ".git", "worktrees", "worktree"), filepath.Join(dir, "home")} {
		write(t, filepath.Join(root, ".git"), "gitdir: "+target+"\n")
		if code, out := runInWorkspace(t, d, root, "echo x > "+target+"/x"); code == 0 {
			t.Errorf("%s: written to: %s", target, out)
		}
	}
}

func shellCommand(t *testing.T, o shell.Options) tools.Tool {
	t.Helper()
	for _, tool := range shell.Tools(o) {
		if tool.Spec().Name == "shell_command" {
			return tool
		}
	}
	t.Fatal("there is no shell_command")
	return nil
}

// Commands read the user's cache. Files that a command adds to it exist only for later commands of the
// same workspace, not for the user or another workspace.
func TestCachesArePrivate(t *testing.T) {
	d, dir := newIsolated(t)
	home := filepath.Join(dir, "home")
	write(t, filepath.Join(home, ".cache", "go-build", "mine"), "mine\n")
	write(t, filepath.Join(home, ".cargo", "registry", "crate"), "crate\n")
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "elsewhere", "a") // of the same name
	for _, root := range []string{a, b} {
		if err := os.MkdirAll(root, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const fill = `set -e; cd "$H"; grep -q mine .cache/go-build/mine; echo evil > .cache/go-build/mine; echo x > .cache/go-build/new; mkdir .cache/tool; echo x > .cache/tool/x
		rm .cargo/registry/crate; mkdir .cargo/bin; echo evil > .cargo/bin/cargo; echo x > "$npm_config_cache/x"`
	if code, out := runInWorkspace(t, d, a, "H="+home+"; "+fill); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	if code, out := runInWorkspace(t, d, a, "cd "+home+"; grep -q evil .cache/go-build/mine && cat .cache/go-build/new .cache/tool/x .cargo/bin/cargo && [ ! -e .cargo/registry/crate ] && cat \"$npm_config_cache/x\""); code != 0 {
		t.Errorf("the next command finds: exit %d: %s", code, out)
	}
	if code, out := runInWorkspace(t, d, b, "cd "+home+"; grep -q mine .cache/go-build/mine && [ ! -e .cache/go-build/new ] && [ ! -e .cargo/bin ] && cat .cargo/registry/crate"); code != 0 {
		t.Errorf("another workspace finds: exit %d: %s", code, out)
	}
	if code, out := runInWorkspace(t, d, a, "echo x > "+home+"/.bashrc || echo x > "+home+"/x"); code == 0 {
		t.Errorf("the home folder was written to: %s", out)
	}
	if got := read(t, filepath.Join(home, ".cache", "go-build", "mine")); got != "mine\n" {
		t.Errorf("the user's cache has %q", got)
	}
	for _, name := range []string{".cache/go-build/new", ".cache/tool", ".cargo/bin"} {
		if _, err := os.Lstat(filepath.Join(home, name)); err == nil {
			t.Errorf("%s is the user's now", name)
		}
	}
	works, _ := filepath.Glob(filepath.Join(d.bounds.CacheLayers(), "*", "*", "work", "*"))
	if len(works) > 0 {
		t.Errorf("the work folders of overlays were not removed: %q", works)
	}
	if _, err := d.ClearSandboxCaches(); err != nil {
		t.Fatal(err)
	}
	if code, out := runInWorkspace(t, d, a, "[ ! -e "+home+"/.cache/go-build/new ]"); code != 0 {
		t.Errorf("after clearing: %s", out)
	}
}

// Commands that run at the same time have separate layers of a cache, because the system does not define
// what happens to a layer that two commands share.
func TestConcurrentCommandsHaveSeparateCaches(t *testing.T) {
	d, dir := newIsolated(t)
	home, root := filepath.Join(dir, "home"), filepath.Join(dir, "a")
	write(t, filepath.Join(home, ".cache", "mine"), "mine\n")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(root, "turn"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := make(chan string)
	go func() {
		code, out := runInWorkspace(t, d, root, "echo x > "+home+"/.cache/one; echo begun > turn; read line < turn; cat "+home+"/.cache/one")
		first <- fmt.Sprint(code, out)
	}()
	if code, out := runInWorkspace(t, d, root, "read line < turn; cd "+home+"/.cache; [ ! -e one ] && cat mine && echo x > two; echo on > "+root+"/turn"); code != 0 {
		t.Errorf("the second: exit %d: %s", code, out)
	}
	if out := <-first; !strings.HasPrefix(out, "0") {
		t.Errorf("the first: %s", out)
	}
	if code, out := runInWorkspace(t, d, root, "cd "+home+"/.cache; ls; [ -e one ] && [ -e two ]"); code == 0 {
		t.Errorf("both commands wrote to the same layer: %s", out)
	}
}

// Without overlays, variables lead to private caches.
func TestCachesWithoutOverlay(t *testing.T) {
	d, dir := newIsolated(t)
	here := d.bounds.Isolation()
	here.Overlay = false
	d.bounds.Isolation = func() sandbox.Isolation { return here }
	home := filepath.Join(dir, "home")
	write(t, filepath.Join(home, ".cache", "go-build", "mine"), "mine\n")
	root := filepath.Join(dir, "a")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if code, out := runInWorkspace(t, d, root, `set -e; for d in "$GOCACHE" "$PIP_CACHE_DIR" "$UV_CACHE_DIR" "$XDG_CACHE_HOME" "$npm_config_cache" "$CARGO_HOME"; do echo x > "$d/x"; done`); code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
	if code, _ := runInWorkspace(t, d, root, "echo x > "+home+"/.cache/go-build/x"); code == 0 {
		t.Error("the user's cache was written to")
	}
}

// The commands of a chat share a loopback interface that other chats and programs cannot reach. Their
// only connection to the outside is eca's proxy.
func TestLoopbackOfChat(t *testing.T) {
	needs.Long(t)
	d, dir := newIsolated(t)
	if !d.bounds.Isolation().Network {
		t.Skip("NOT TESTED: no network namespaces on this machine: " + d.bounds.Isolation().Without)
	}
	root := filepath.Join(dir, "ws")
	write(t, filepath.Join(root, "index.txt"), "served\n")
	here, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	serving := make(chan struct{})
	go func() {
		defer close(serving)
		for {
			c, err := here.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("from outside\n"))
			_ = c.Close()
		}
	}()
	defer func() { _ = here.Close(); <-serving }()
	_, port, _ := net.SplitHostPort(here.Addr().String())
	configure := func(more string) {
		d.Configure(json.RawMessage(`{"toolCall": {"sandbox": "on"`+more+`}}`), []string{root})
		if p := d.Config().Problems; len(p) > 0 {
			t.Fatal(p)
		}
	}
	configure("")
	run := func(chat, line string, background bool) string {
		t.Helper()
		args := map[string]any{"command": line}
		if background {
			args["background"] = "server"
		}
		raw, _ := json.Marshal(args)
		res, err := shellCommand(t, d.shellOptions(d.Config())).Run(context.Background(), tools.Call{ID: "c", ChatID: chat, Roots: []string{root}, Arguments: raw}, nil)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return strings.Join(res.Outputs, "\n")
	}
	const server = `python3 -c '
import http.server
http.server.ThreadingHTTPServer(("127.0.0.1", 8123), http.server.SimpleHTTPRequestHandler).serve_forever()'`
	run("one", server, true)
	const ask = `for i in $(seq 300); do curl -sf http://localhost:8123/index.txt && exit 0; sleep 0.1; done; exit 1`
	if out := run("one", ask, false); !strings.Contains(out, "served") {
		t.Errorf("a later command of the chat: %s", out)
	}
	if out := run("two", `curl -s --max-time 5 http://localhost:8123/index.txt; echo "code $?"`, false); !strings.Contains(out, "code 7") {
		t.Errorf("another chat: %s", out)
	}
	if c, err := net.Dial("tcp", "127.0.0.1:8123"); err == nil {
		_ = c.Close()
		t.Error("a program outside the chat reached the server of a command")
	}
	for _, line := range []string{
		"exec 3<>/dev/tcp/127.0.0.1/" + port, "curl -sf --noproxy '*' --max-time 5 http://127.0.0.1:" + port, "curl -sf --max-time 5 -x http://127.0.0.1:3128 http://127.0.0.1:" + port,
		"curl -sf --max-time 5 http://example.com", "curl -sf --noproxy '*' --max-time 5 http://93.184.216.34", "curl -sf --unix-socket /run/x.sock http://x",
		`python3 -c 'import socket; socket.socket(socket.AF_UNIX)'`, `python3 -c 'import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)'`,
		`python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)'`, `python3 -c 'import socket; socket.socket(40, socket.SOCK_STREAM)'`,
		`python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'`, `getent hosts example.com`,
	} {
		if out := run("one", "if "+line+"; then echo WORKED; fi", false); strings.Contains(out, "WORKED") {
			t.Errorf("%s: %s", line, out)
		}
	}
	if out := run("one", "curl -s http://registry.example/x; curl -s https://other.example", false); !strings.Contains(out, "the host is not in toolCall.sandboxHosts") || !strings.Contains(out, "connection to registry.example:80, other.example:443 refused") {
		t.Errorf("what was refused: %s", out)
	}
	configure(`, "sandboxPorts": [` + port + `], "sandboxHosts": ["127.0.0.1"]`)
	if out := run("one", "timeout 5 cat < /dev/tcp/127.0.0.1/"+port, false); !strings.Contains(out, "from outside") {
		t.Errorf("a port that is listed: %s", out)
	}
	configure(`, "sandboxNetwork": {"allow": ["localhost"]}`)
	if out := run("three", "curl -s -x http://127.0.0.1:3128 --noproxy '' http://localhost:"+port, false); !strings.Contains(out, "not on the public internet") {
		t.Errorf("a name of this machine: %s", out)
	}
}
