package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

func TestMain(m *testing.M) {
	if code, ok := proc.Supervise(os.Args); ok {
		os.Exit(code)
	}
	if len(os.Args) > 2 && os.Args[1] == "worker" {
		os.Exit(workerProcess(os.Args[2]))
	}
	if len(os.Args) > 2 && os.Args[1] == "leader" {
		os.Exit(leaderProcess(os.Args[2]))
	}
	os.Exit(m.Run())
}

// lease is short enough for tests to lose workers, and long enough for a slow machine.
const lease = 3 * time.Second

// rig is a cluster with keys for each role, and a folder for manifests.
type rig struct {
	t       *testing.T
	seeds   map[string][]byte // by role
	public  map[string]string
	servers []*node
	dir     string
}

// node is a server that can be stopped and started again.
type node struct {
	config string
	s      *server.Server
}

func (n *node) start() error {
	o, err := server.ProcessConfigFile(n.config)
	if err != nil {
		return err
	}
	o.NoSigs, o.NoLog = true, true
	if n.s, err = server.NewServer(o); err != nil {
		return err
	}
	n.s.Start()
	return nil
}

func (n *node) stop() {
	n.s.Shutdown()
	n.s.WaitForShutdown()
}

// newRig starts servers with exactly the rights of ServerConfig.
func newRig(t *testing.T, servers int) *rig {
	t.Helper()
	needs.POSIX(t)
	r := &rig{t: t, seeds: map[string][]byte{}, public: map[string]string{}, dir: t.TempDir()}
	keys := Keys{}
	for _, role := range []string{RoleController, RoleWorker, RoleViewer, "stranger"} {
		var err error
		r.seeds[role], r.public[role], err = NewKey()
		r.must(err)
		if role != "stranger" {
			keys[role] = []string{r.public[role]}
		}
	}
	r.startServers(servers, ServerConfig(keys))
	return r
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) startServers(count int, accounts string) {
	r.t.Helper()
	ports := testkit.FreePorts(r.t, 2*count)
	var routes []string
	for i := range count {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports[count+i]))
	}
	for i := range count {
		text := fmt.Sprintf("server_name: n%d\nlisten: 127.0.0.1:%d\njetstream {store_dir: %q, max_file_store: 1GB}\n%s", i, ports[i], r.t.TempDir(), accounts)
		if count > 1 {
			text += fmt.Sprintf("cluster {name: ecp, listen: 127.0.0.1:%d, routes: [%s]}\n", ports[count+i], strings.Join(routes, ", "))
		}
		n := &node{config: filepath.Join(r.t.TempDir(), "nats.conf")}
		r.must(os.WriteFile(n.config, []byte(text), 0o600))
		r.must(n.start())
		r.servers = append(r.servers, n)
		r.t.Cleanup(n.stop)
	}
	for _, n := range r.servers {
		if !n.s.ReadyForConnections(time.Minute) {
			r.t.Fatalf("the server of %s does not start", n.config)
		}
	}
}

// url names all servers.
func (r *rig) url() string {
	var out []string
	for _, n := range r.servers {
		u, err := url.Parse(n.s.ClientURL())
		r.must(err)
		out = append(out, u.String())
	}
	return strings.Join(out, ",")
}

// dial connects as a role.
func (r *rig) dial(role string) *Cluster {
	r.t.Helper()
	c, err := Dial(r.t.Context(), Options{URL: r.url(), Seed: r.seeds[role], Role: role, Lease: lease, Log: slog.New(slog.NewTextHandler(testWriter{r.t}, nil))})
	r.must(err)
	r.t.Cleanup(c.Close)
	return c
}

// raw connects as a role, without the code of this repository.
func (r *rig) raw(role string) (*nats.Conn, jetstream.JetStream) {
	r.t.Helper()
	key, err := nkeys.FromSeed(r.seeds[role])
	r.must(err)
	nc, err := nats.Connect(r.url(), nats.Nkey(r.public[role], key.Sign), nats.CustomInboxPrefix(inboxPrefix(role)))
	r.must(err)
	r.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	r.must(err)
	return nc, js
}

// testWriter writes into the log of a test until the test has ended.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

// answer is an agent that answers ok to each message, after running its own line of shell.
const answer = `while IFS= read -r line; do
id=${line##*\"id\":}; id=${id%%\}*}
case $line in
*initialize*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"name\":\"a\",\"capabilities\":{}}}";;
*) %s
echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"status\":\"done\",\"public_output\":\"ok\",\"cost_usd\":0.01}}";;
esac
done
`

// manifest writes a manifest with a case for each record, and an agent that runs a line of shell
// for each message.
func (r *rig) manifest(cases int, line, setup string) *runtime.Manifest {
	r.t.Helper()
	dir := r.t.TempDir()
	r.must(os.WriteFile(filepath.Join(dir, "agent.sh"), fmt.Appendf(nil, answer, line), 0o600))
	var data strings.Builder
	data.WriteString("n\n")
	for i := range cases {
		fmt.Fprintln(&data, i)
	}
	r.must(os.WriteFile(filepath.Join(dir, "data.csv"), []byte(data.String()), 0o600))
	path := filepath.Join(dir, "manifest.yaml")
	r.must(os.WriteFile(path, fmt.Appendf(nil, `
manifest_version: v1
name: cluster
target: sh agent.sh
scenarios:
  - name: one
    steps:
      - input: "{{n}}"
        graders: [{type: text_match, condition: contains, value: ok}]
        constraints: {scenario: {dataset: data.csv%s}}
`, setup), 0o600))
	m, _, err := runtime.Load(r.t.Context(), path)
	r.must(err)
	return m
}

// submit makes a run.
func (r *rig) submit(c *Cluster, m *runtime.Manifest, s Submission) *Stored {
	r.t.Helper()
	s.Manifest, s.Now, s.Program = m, time.Now, "test"
	s.Settings.Timeout = time.Minute
	d, err := c.Submit(r.t.Context(), s)
	r.must(err)
	return d
}

func baseOptions(self string) runtime.Options {
	return runtime.Options{Version: "test", Path: os.Getenv("PATH"), Getenv: os.Getenv, Now: time.Now, NewID: uuid.NewString, Supervisor: self}
}

// follow follows a run to its end, or until ctx ends.
func (r *rig) follow(ctx context.Context, c *Cluster, d *Stored, o FollowOptions) *report.Report {
	r.t.Helper()
	out, err := follow(ctx, c, d, o, r.t.TempDir())
	if err != nil {
		r.t.Error(err)
	}
	return out
}

func follow(ctx context.Context, c *Cluster, d *Stored, o FollowOptions, dir string) (*report.Report, error) {
	m, err := c.Fetch(context.WithoutCancel(ctx), d, dir)
	if err != nil {
		return nil, err
	}
	options := baseOptions("")
	if err := d.Settings.Apply(&options); err != nil {
		return nil, err
	}
	p, err := runtime.NewPlan(m, options)
	if err != nil {
		return nil, err
	}
	f := c.Follow(d, p, o)
	options.Scheduler = f
	out, err := runtime.Run(ctx, p, options)
	if err == nil {
		err = f.Err()
	}
	return out, err
}

// workerSpec is the configuration of a worker process.
type workerSpec struct {
	URL, Dir, Seed, Name string
	Options              WorkerOptions
}

func (r *rig) spec(name string) workerSpec {
	return workerSpec{
		URL: r.url(), Dir: r.t.TempDir(), Seed: string(r.seeds[RoleWorker]), Name: name,
		Options: WorkerOptions{Name: name, Jobs: 4, Kinds: []string{KindHost}, Trust: []string{r.public[RoleController]}, Grace: 10 * time.Second},
	}
}

func (s workerSpec) options() WorkerOptions {
	o := s.Options
	o.Dir = s.Dir
	o.Prepare = func(Settings) (runtime.Options, func(), error) {
		self, err := os.Executable()
		return baseOptions(self), func() {}, err
	}
	return o
}

// work runs a worker in this process until the test ends, or stop is called.
func (r *rig) work(s workerSpec) (stop func()) {
	c := r.dial(RoleWorker)
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	var done sync.WaitGroup
	done.Go(func() {
		if err := c.Work(ctx, s.options()); err != nil {
			r.t.Error(err)
		}
	})
	stop = func() {
		cancel()
		done.Wait()
	}
	r.t.Cleanup(stop)
	return stop
}

// workerProcess is the main function of a worker that can be killed.
func workerProcess(spec string) int {
	var s workerSpec
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		return 2
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	c, err := Dial(ctx, Options{URL: s.URL, Seed: []byte(s.Seed), Role: RoleWorker, Lease: lease, Log: log})
	if err == nil {
		err = c.Work(ctx, s.options())
	}
	if err != nil {
		log.Error("worker", "err", err)
		return 1
	}
	return 0
}

// resultCounts returns the number of messages and of subjects in the stream of results.
func (r *rig) resultCounts(d *Stored) (messages uint64, subjects int) {
	r.t.Helper()
	_, js := r.raw(RoleController)
	stream, err := js.Stream(r.t.Context(), resultStreams+d.Run)
	r.must(err)
	info, err := stream.Info(r.t.Context(), jetstream.WithSubjectFilter("ecp.res.>"))
	r.must(err)
	return info.State.Msgs, len(info.State.Subjects)
}

// expect checks that each attempt has one result, and that it passed.
func (r *rig) expect(c *Cluster, d *Stored, out *report.Report, want int) {
	r.t.Helper()
	if out == nil || out.Counts.Passed != want || len(out.Scenarios) != want || out.NotRun != 0 {
		if out != nil && len(out.Errors) > 0 {
			r.t.Logf("%+v", out.Errors[0])
		}
		if out == nil {
			r.t.Fatal("there is no report")
		}
		r.t.Errorf("%d passed of %d, %d not run, want %d", out.Counts.Passed, len(out.Scenarios), out.NotRun, want)
	}
	if messages, subjects := r.resultCounts(d); messages != uint64(want) || subjects != want {
		r.t.Errorf("%d results of %d attempts, want %d", messages, subjects, want)
	}
}

// leaderSpec is the configuration of a process that leads a run.
type leaderSpec struct{ URL, Seed, Run, Dir string }

// leaderProcess is the main function of a leader that can be killed.
func leaderProcess(spec string) int {
	var s leaderSpec
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		return 2
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	c, err := Dial(context.Background(), Options{URL: s.URL, Seed: []byte(s.Seed), Role: RoleController, Lease: lease, Log: log})
	if err != nil {
		log.Error("leader", "err", err)
		return 1
	}
	d, err := c.Doc(context.Background(), s.Run)
	if err == nil {
		_, err = follow(context.Background(), c, d, FollowOptions{Lead: true}, s.Dir)
	}
	if err != nil {
		log.Error("leader", "err", err)
		return 1
	}
	return 0
}
