package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// plantedSecret must never be sent to the model.
const plantedSecret = "planted-canary-7f3a9"

// world is a small user's machine: a workspace with unsaved work, the files around it, and services
// that count connections.
type world struct {
	base, ws, out, sib, home, tmp, config, state string

	port, udp string
	visits    atomic.Int32
}

// newWorld builds a world.
func newWorld(t *testing.T) *world {
	t.Helper()
	needs.Git(t)
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(base, name) }
	w := &world{base: base, ws: at("ws"), out: at("out"), sib: at("ws-evil"), home: at("home"), tmp: at("tmp"), config: at("eca/config/eca"), state: at("eca/state")}
	w.listen(t)
	secret := plantedSecret + "\n"
	evil := "#!/bin/sh\ntouch " + w.out + "/ran\n"
	names := strings.Join([]string{w.out + "/secret.txt", w.home + "/.netrc"}, "\n")
	for path, text := range map[string]string{
		"home/.bashrc": "text\n", "home/.profile": "text\n", "home/.ssh/id_ed25519": secret, "home/.ssh/authorized_keys": "text\n", "home/.netrc": secret,
		"home/.gitconfig": "[user]\nname = U\nemail = u@example.com\n[init]\ndefaultBranch = main\n", "home/.config/fish/config.fish": "text\n",
		"out/secret.txt": secret, "out/file.txt": "text\n", "out/linked.txt": "text\n", "out/dir/x": "text\n", "ws-evil/secret.txt": secret, "ws-evil/file.txt": "text\n", "tmp/target.txt": "text\n", "eca/config/eca/config.json": "{}\n",
		"ws/a.txt": "text\n", "ws/src/main.go": "package main\n", "ws/Makefile": "all:\n\ttouch " + w.out + "/ran\nevil: all\n", "ws/.gitignore": "build/\n", "ws/build/out.o": "text\n",
		"ws/evil.sh": evil, "ws/evil.py": "open('" + w.out + "/ran', 'w')\n", "ws/names.txt": names, "ws/names.nul": strings.ReplaceAll(names, "\n", "\x00"), "ws/sums.txt": "0  " + w.out + "/secret.txt\n", "ws/program.jq": "env",
		"ws/.eca/config.json": "{}\n", "ws/.eca/rules/r.md": "---\npaths: 'zzz.txt'\n---\nRule.\n", "ws/.eca/skills/s/SKILL.md": "---\nname: s\ndescription: d\n---\nSkill.\n",
		"ws/sub-evil/x.txt": "text\n", "ws/sub-evil/.gitattributes": "*.txt diff=evil filter=evil\n",
	} {
		path = at(path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = w.ws, []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "sub-evil")
	git("-C", "sub-evil", "add", ".")
	git("-C", "sub-evil", "commit", "-qm", "one")
	for _, key := range []string{"diff.external", "diff.evil.textconv", "diff.evil.command", "filter.evil.clean", "filter.evil.smudge", "core.fsmonitor", "core.pager", "core.sshCommand", "alias.status"} {
		git("-C", "sub-evil", "config", key, w.ws+"/evil.sh")
	}
	git("init", "-q")
	git("add", "a.txt", "src", "Makefile", ".gitignore", "evil.sh")
	git("commit", "-qm", "one")
	git("checkout", "-qb", "feature")
	git("commit", "-qm", "only here", "--allow-empty")
	git("checkout", "-q", "main")
	for path, text := range map[string]string{"ws/a.txt": "stashed\n"} {
		if err := os.WriteFile(at(path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git("stash", "-q")
	for path, text := range map[string]string{"ws/a.txt": "text, changed and not committed\n", "ws/notes.txt": "text that is in no commit\n", "ws/sub-evil/x.txt": "changed\n"} {
		if err := os.WriteFile(at(path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link-dir": w.out, "link-file": w.out + "/secret.txt", "link-up": "..", "dangling": w.out + "/by-dangling"} {
		if err := os.Symlink(to, filepath.Join(w.ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(w.ws+"/evil.sh", 0o755), os.Link(w.out+"/linked.txt", w.ws+"/hard.txt"), syscall.Mkfifo(w.ws+"/pipe", 0o600)); err != nil {
		t.Fatal(err)
	}
	return w
}

// listen starts the services that count their visitors.
func (w *world) listen(t *testing.T) {
	t.Helper()
	if err := os.MkdirAll(w.out, 0o755); err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(w.out, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []net.Listener{tcp, socket} {
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				w.visits.Add(1)
				_ = c.Close()
			}
		}()
	}
	t.Cleanup(func() { _ = udp.Close() })
	go func() {
		for buf := make([]byte, 2048); ; w.visits.Add(1) {
			if _, _, err := udp.ReadFrom(buf); err != nil {
				return
			}
		}
	}()
	_, w.port, _ = net.SplitHostPort(tcp.Addr().String())
	_, w.udp, _ = net.SplitHostPort(udp.LocalAddr().String())
}

// fill inserts the world's paths into a text.
func (w *world) fill(s string) string {
	return strings.NewReplacer("{WS}", w.ws, "{OUT}", w.out, "{SIB}", w.sib, "{HOME}", w.home, "{TMP}", w.tmp, "{CONFIG}", w.config, "{PORT}", w.port, "{UDP}", w.udp).Replace(s)
}

// place is the program's place in this world. Its environment has a secret, and a mark that all its
// descendants inherit.
func (w *world) place(t *testing.T, env ...string) place {
	t.Helper()
	p := newPlace(t)
	kept := slices.DeleteFunc(p.env, func(v string) bool {
		return strings.HasPrefix(v, "HOME=") || strings.HasPrefix(v, "XDG_CONFIG_HOME=") || strings.HasPrefix(v, "XDG_STATE_HOME=")
	})
	p.root = w.ws
	p.env = slices.Concat(kept, env, []string{
		"HOME=" + w.home, "TMPDIR=" + w.tmp, "XDG_CONFIG_HOME=" + filepath.Dir(w.config), "XDG_STATE_HOME=" + w.state, "CANARY_VARIABLE=" + plantedSecret, w.mark(),
	})
	return p
}

func (w *world) mark() string { return "ECA_TEST_WORLD=" + w.base }

// look describes everything that must not change: kinds, modes, times and contents of files, and
// the user's configuration.
func (w *world) look(t *testing.T) map[string]string {
	t.Helper()
	seen := map[string]string{}
	for _, top := range []string{w.ws, w.out, w.sib, w.home, w.tmp, w.config} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			text := info.Mode().String()
			switch {
			case info.Mode().IsRegular():
				data, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				text += fmt.Sprintf(" %s %x", info.ModTime(), sha256.Sum256(data))
			case info.Mode()&fs.ModeSymlink != 0:
				to, err := os.Readlink(path)
				if err != nil {
					return err
				}
				text += " " + to
			}
			seen[strings.TrimPrefix(path, w.base+"/")] = text
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return seen
}

// changes compares two results of look.
func changes(before, after map[string]string) (out []string) {
	for path, was := range before {
		if now, ok := after[path]; !ok {
			out = append(out, path+" is gone")
		} else if now != was {
			out = append(out, path+" was changed")
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			out = append(out, path+" is new")
		}
	}
	slices.Sort(out)
	return out
}

// processes lists the processes of this world, except for the given ones.
func (w *world) processes(t *testing.T, but ...int) (out []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err != nil || !slices.Contains(strings.Split(string(env), "\x00"), w.mark()) {
			continue
		}
		if slices.ContainsFunc(but, func(pid int) bool { return e.Name() == fmt.Sprint(pid) }) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if len(line) == 0 {
			continue // ended, and not yet reaped
		}
		out = append(out, e.Name()+" "+strings.ReplaceAll(string(line), "\x00", " "))
	}
	return out
}
