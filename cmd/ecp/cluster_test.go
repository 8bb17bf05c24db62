package main

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// runNATS is a separate NATS server for the processes of a cluster.
func runNATS(config string) int {
	o, err := server.ProcessConfigFile(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	o.NoLog = true
	s, err := server.NewServer(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		return 1
	}
	fmt.Println(s.Addr())
	s.WaitForShutdown()
	return 0
}

// startNATS starts a server with TLS and the accounts that ecp cluster keys wrote.
func startNATS(t *testing.T, accounts string, a *testkit.Authority) (address, store string) {
	t.Helper()
	certificate := a.Issue(testkit.Tomorrow(), "127.0.0.1")
	key := a.Write("server.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: testkit.PKCS8(t, certificate.PrivateKey)}))
	store = t.TempDir()
	config := filepath.Join(filepath.Dir(accounts), "nats.conf")
	write(t, config, fmt.Sprintf("listen: 127.0.0.1:-1\njetstream {store_dir: %q, max_file_store: 1GB}\ntls {cert_file: %q, key_file: %q}\ninclude accounts.conf\n",
		store, a.Write("server.pem", testkit.CertPEM(certificate)), key))
	return start(t, "nats", config), store
}

// start starts this program as another process until the test ends, and returns its first line.
func start(t *testing.T, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), "CANARY=cluster-canary-4711")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// A cluster as users set it up: keys, a server with TLS, a worker, a run, its report. The servers
// store none of a worker's variables.
func TestCluster(t *testing.T) {
	isolateEnvironment(t)
	dir := filepath.Join(t.TempDir(), "keys")
	r := invoke(t, "cluster", "keys", dir)
	trust := regexp.MustCompile(`--trust (U\w+)`).FindStringSubmatch(r.out)
	if r.code != 0 || trust == nil {
		t.Fatalf("exit %d: %s%s", r.code, r.out, r.err)
	}
	if again := invoke(t, "cluster", "keys", dir); again.code != exitError {
		t.Error("the command replaced existing keys")
	}
	a := testkit.NewAuthority(t, "cluster")
	address, store := startNATS(t, filepath.Join(dir, "accounts.conf"), a)
	as := func(role string, args ...string) []string {
		return append(args, "--nats", "tls://"+address, "--tls-ca", a.File(), "--nkey", filepath.Join(dir, role+".nk"))
	}
	m := manifest(t, agentTarget(t, "ok"), scenario("a", has("x"), "x")+scenario("b", has("y"), "y")+scenario("c", has("other"), "z"))
	r = invoke(t, as("controller", "submit", m, "--repeat", "3", "--matrix", "model=p/a,p/b", "--limit", "p/a=1")...)
	id := strings.TrimSpace(r.out)
	if r.code != 0 || len(id) != 26 {
		t.Fatalf("exit %d: %s%s", r.code, r.out, r.err)
	}
	start(t, as("worker", "ecp", "worker", "--trust", trust[1], "--env", "host", "-j", "2")...)
	r = invoke(t, as("controller", "watch", id, "--json")...)
	out, err := report.Parse([]byte(r.out))
	if r.code != exitFailed || err != nil || len(out.Scenarios) != 6 || out.Counts.Passed != 4 || out.RunID != id || len(out.Scenarios[0].Attempts) != 3 {
		t.Fatalf("exit %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	later := invoke(t, as("viewer", "watch", id, "--no-lead", "--json")...)
	same, err := report.Parse([]byte(later.out))
	if err != nil {
		t.Fatalf("exit %d, %v: %s", later.code, err, later.err)
	}
	if diff := cmp.Diff(out.Scenarios, same.Scenarios); diff != "" || same.Counts != out.Counts {
		t.Errorf("a viewer gets other results: %s", diff)
	}
	list := invoke(t, as("viewer", "cluster", "runs")...)
	if !strings.Contains(list.out, id) || !strings.Contains(list.out, "finished") || !strings.Contains(list.out, "18/") || !strings.Contains(list.out, "at most 1 attempts") {
		t.Errorf("exit %d: %s%s", list.code, list.out, list.err)
	}
	if r := invoke(t, as("controller", "gc")...); r.code != 0 || r.out != "Removed 0 runs and 0 uploads (0.0 MiB)\n" {
		t.Errorf("gc: %d %q %q", r.code, r.out, r.err)
	}
	if r := invoke(t, as("controller", "cluster", "cancel", id)...); r.code != exitError || !strings.Contains(r.err, "already finished") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	files := 0
	err = filepath.WalkDir(store, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files++
		if strings.Contains(string(data), "cluster-canary-4711") {
			t.Errorf("%s has the worker's variable", path)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files, %v", files, err)
	}
}

// Errors in the connection settings of a cluster, or in a worker's rights, are reported before
// anything is sent.
func TestClusterUsage(t *testing.T) {
	isolateEnvironment(t)
	m := manifest(t, "agent", scenario("a", has("x"), "x"))
	open := filepath.Join(t.TempDir(), "open.nk")
	write(t, open, "SU")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"submit", m}, exitFailed, "--nats is missing"},
		{[]string{"submit", m, "--nats", "nats://cluster.example:4222"}, exitError, "needs tls://"},
		{[]string{"submit", m, "--nats", "nonsense"}, exitError, "not the URL"},
		{[]string{"submit", m, "--nats", "nats://127.0.0.1:1"}, exitError, "connect to NATS"},
		{[]string{"submit", m, "--nats", "nats://127.0.0.1:1", "--limit", "x"}, exitFailed, "MODEL=N"},
		{[]string{"submit", m, "--nats", "nats://127.0.0.1:1", "--nkey", open}, exitError, "chmod 600"},
		{[]string{"worker", "--nats", "nats://127.0.0.1:1"}, exitFailed, "--trust is missing"},
		{[]string{"worker", "--nats", "nats://127.0.0.1:1", "--trust", "any", "--env", "moon"}, exitFailed, "--env"},
		{[]string{"view", "--nats", "nats://127.0.0.1:1"}, exitFailed, "id of a run"},
	} {
		if r := invoke(t, c.args...); r.code != c.code || !strings.Contains(r.err, c.want) {
			t.Errorf("%q: exit %d: %s", c.args, r.code, r.err)
		}
	}
}
