package proc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// Sandboxed commands have limits on processes, file sizes and core dumps, and cannot raise them. As
// root, they have no rights over the machine.
func TestSandboxLimits(t *testing.T) {
	needs.Long(t)
	needSandbox(t)
	dir := foldersOutside(t)
	ws := filepath.Join(dir, "ws")
	for level, file := range map[sandbox.Level]string{sandbox.ReadOnly: "1048576", sandbox.Workspace: "16777216"} {
		p := sandbox.Policy{Level: level, Write: []string{ws}}
		_, out := runBounded(t, p, ws, "ulimit -Hc; ulimit -Hf; [ $(ulimit -Hu) -le 8192 ] && echo few; cat /proc/self/oom_score_adj")
		if want := "0\n" + file + "\nfew\n500\n"; out != want {
			t.Errorf("%s: limits %q, want %q", level, out, want)
		}
		for _, script := range []string{
			"ulimit -Hf unlimited", "ulimit -Hq 819200; ulimit -Hq unlimited", "ulimit -Hc 1", "ulimit -Hu 100000",
			`dd if=/dev/zero of="$TMPDIR/f" bs=1 count=1 seek=$((16 << 30))`, "mknod disk b 8 0", "mknod null c 1 3", `mknod "$TMPDIR/null" c 1 3`,
			"mount -t tmpfs none .", "hostname other", "date -s 2020-01-01", "echo 0 >/proc/sys/kernel/panic", "echo -1000 >/proc/self/oom_score_adj",
		} {
			if exit, out := runBounded(t, p, ws, script); exit.Code == 0 {
				t.Errorf("%s: %s worked: %s", level, script, out)
			}
		}
	}
	if os.Getuid() == 0 {
		_, out := runBounded(t, sandbox.Policy{Level: sandbox.Workspace, Write: []string{ws}}, ws, "grep -E 'Cap(Eff|Bnd)' /proc/self/status; chown 65534 a.txt && chmod 600 a.txt && cat a.txt && echo x >>a.txt && chown 0 a.txt")
		if strings.Count(out, "00000000000004ff\n") != 2 || !strings.HasSuffix(out, "text\n") {
			t.Errorf("as root: %s", out)
		}
	}
	if _, out := runBounded(t, sandbox.Policy{Level: sandbox.None}, ws, "ulimit -Hf"); out != "unlimited\n" {
		t.Errorf("without bounds: %s", out)
	}
}
