package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/llm/cassette"
)

const (
	soakChats   = 34 // of each of three daemons
	soakServers = 12
	soakTurns   = 10       // of a chat; then it is deleted, and another one begins
	soakMemory  = 80 << 10 // resident, in KiB
	soakMark    = "ECA_SOAK_MARK"
)

// soak is one run: three daemons share the folders of a user, whose MCP servers come and go, whose
// disk fills up at times, and whose editors stop reading at times. Two of the daemons are killed at
// random moments.
type soak struct {
	here     place
	bin      string
	url      string // of the provider
	deadline time.Time
	full     atomic.Int64 // odd while the disk is full; each change adds one
	turns    atomic.Int64
	kills    atomic.Int64
	refused  atomic.Int64 // prompts and turns that failed while the disk was full

	mu      sync.Mutex         // guards the fields below
	invalid []string           // histories that a provider would refuse
	memory  map[string][]int64 // KiB, by daemon, over time
}

// TestSoak runs for 20 s; ECA_SOAK sets another time (`make soak`: 20m; 24h is possible).
func TestSoak(t *testing.T) {
	needs.Long(t)
	lasting := 20 * time.Second
	if text := os.Getenv("ECA_SOAK"); text != "" {
		var err error
		if lasting, err = time.ParseDuration(text); err != nil {
			t.Fatalf("ECA_SOAK: %v", err)
		}
	}
	s := &soak{memory: map[string][]int64{}}
	s.here = newPlace(t, soakMark+"="+strconv.Itoa(os.Getpid()))
	s.here.env = slices.DeleteFunc(s.here.env, func(v string) bool { return strings.HasPrefix(v, asProgram) })
	s.bin = build(t, ".")
	s.configure(t, s.provider(t))
	if err := os.WriteFile(filepath.Join(s.here.root, "a.txt"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(filepath.Dir(s.here.root), "state")
	disk := os.Getenv("ECA_SOAK") != "" && s.smallDisk(t, state) // tests of other packages count mounts
	s.deadline = time.Now().Add(lasting)
	stop := make(chan struct{})
	var others sync.WaitGroup
	if disk {
		others.Go(func() { s.fillDisk(state, stop) })
	}
	others.Go(func() { s.changeServers(stop) })
	var daemons sync.WaitGroup
	for _, name := range []string{"steady", "killed-1", "killed-2"} {
		daemons.Go(func() { s.use(t, name) })
	}
	daemons.Wait()
	close(stop)
	others.Wait()
	s.report(t)
	awaitGone(t, s.processes())
}

// provider is a scripted model that looks at each history.
func (s *soak) provider(t *testing.T) string {
	t.Helper()
	player, err := cassette.Parse([]byte(`
cassette: 1
default:
  steps:
    - {reasoning: "thinking about it ", text: "some words before a call ", delay: 1ms, calls: [{id: call_1, tool: eca__read_file, arguments: {path: "${workspace}/a.txt"}}]}
    - {text: "and more ", calls: [{id: call_2, tool: s3__t, arguments: {}}, {id: call_3, tool: eca__shell_command, arguments: {command: "cat a.txt"}}]}
    - {text: "the last words", delay: 1ms}
turns: []
`))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(player.Handler(func(_ string, body []byte) {
		var request struct{ Input []map[string]any }
		if err := json.Unmarshal(body, &request); err != nil {
			s.addInvalid(fmt.Sprint("a request: ", err))
			return
		}
		if problem := historyProblem(request.Input); problem != "" {
			s.addInvalid(problem)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func (s *soak) addInvalid(problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.invalid = append(s.invalid, problem)
}

// configure writes the user's configuration, with all servers.
func (s *soak) configure(t *testing.T, url string) {
	t.Helper()
	s.url = url
	if err := s.writeConfig(nil); err != nil {
		t.Fatal(err)
	}
}

func (s *soak) writeConfig(off map[int]bool) error {
	servers := map[string]any{}
	for i := range soakServers {
		script := mcpScript
		if i%4 == 0 { // ends after some seconds
			script = "(sleep 3; kill $$) & " + script
		}
		servers[fmt.Sprint("s", i)] = map[string]any{"command": "sh", "args": []any{"-c", script}, "disabled": off[i]}
	}
	raw, err := json.Marshal(map[string]any{
		"chat":      map[string]any{"title": false},
		"providers": map[string]any{"openai": map[string]any{"fetchModels": false, "url": s.url, "key": "sk-test-0123456789abcdef"}},
		"toolCall":  map[string]any{"approval": map[string]any{"byDefault": "allow"}}, "mcpServers": servers,
	})
	if err != nil {
		return err
	}
	file := filepath.Join(filepath.Dir(s.here.root), "config", "eca", "config.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// changeServers turns servers off and on.
func (s *soak) changeServers(stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(1+rand.IntN(4)) * time.Second):
		}
		off := map[int]bool{}
		for range rand.IntN(soakServers) {
			off[rand.IntN(soakServers)] = true
		}
		if err := s.writeConfig(off); err != nil {
			s.addInvalid(fmt.Sprint("the configuration: ", err))
		}
	}
}

// smallDisk mounts a small file system for eca's state; false if that is not permitted here.
func (s *soak) smallDisk(t *testing.T, state string) bool {
	t.Helper()
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", state, "tmpfs", 0, "size=96m,mode=0700"); err != nil {
		t.Logf("NOT TESTED: a full disk, because a file system cannot be mounted (%v); run it as root", err)
		return false
	}
	t.Cleanup(func() {
		if err := unix.Unmount(state, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return true
}

// fillDisk fills the disk for a while, again and again.
func (s *soak) fillDisk(dir string, stop chan struct{}) {
	file := filepath.Join(dir, "ballast")
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(2+rand.IntN(6)) * time.Second):
		}
		s.full.Add(1)
		if f, err := os.Create(file); err == nil {
			block := make([]byte, 64<<10)
			for err == nil {
				_, err = f.Write(block)
			}
			_ = f.Close()
		}
		time.Sleep(time.Duration(200+rand.IntN(1500)) * time.Millisecond)
		_ = os.Remove(file)
		s.full.Add(1)
	}
}

// use works with one daemon, and with its successors if it is killed, until the time is over.
func (s *soak) use(t *testing.T, name string) {
	t.Helper()
	known := make([][]string, soakChats) // the prompts that were answered, by chat
	generation := make([]int, soakChats)
	id := func(i int) string { return fmt.Sprintf("%s-%d-%d", name, i, generation[i]) }
	d := s.start(t, name)
	begin := -1
	for n := 0; time.Now().Before(s.deadline); n++ {
		i := rand.IntN(soakChats)
		if n > 0 && n%20 == 0 && name != "steady" {
			d.prompt(id(i), "killed in between")
			time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
			d.kill9(t)
			s.kills.Add(1)
			d = s.start(t, name)
			s.check(t, d, id(i), known[i])
			continue
		}
		if n%50 == 10 {
			d.reader.pause(time.Duration(rand.IntN(2000)) * time.Millisecond)
		}
		if len(known[i]) == soakTurns {
			s.check(t, d, id(i), known[i])
			if _, err := d.TryCall("chat/delete", map[string]any{"chatId": id(i)}); err == nil || s.full.Load()%2 == 0 {
				generation[i]++
				known[i] = nil
			}
			continue
		}
		full, text := s.full.Load(), fmt.Sprintf("prompt %d of %s.", n, name)
		mark := d.Mark()
		err := d.prompt(id(i), text)
		if err == nil {
			d.Await(mark, "the end of "+text, fake.Finished())
		}
		whole := err == nil && fake.Content("text", "the last words")(d.Since(mark)) == fake.Met
		d.Forget()
		switch undisturbed := full%2 == 0 && s.full.Load() == full; {
		case whole && undisturbed:
			known[i] = append(known[i], text)
		case undisturbed:
			t.Errorf("%s: the disk was not full, but the answer is not whole (%v)", text, err)
		default:
			s.refused.Add(1)
		}
		s.turns.Add(1)
		s.measure(d, name)
		if begin < 0 && n == 2*soakChats {
			begin = d.goroutines(t)
		}
	}
	for i := range known {
		s.check(t, d, id(i), known[i])
	}
	if end := d.goroutines(t); name == "steady" && begin >= 0 && end > begin+soakChats {
		t.Errorf("%d goroutines, %d at the beginning", end, begin)
	}
	if name == "steady" {
		d.reader.pause(0)
		shutDown(t, d.process)
		return
	}
	d.kill9(t)
}

// check opens a chat and looks for the prompts that were answered in it.
func (s *soak) check(t *testing.T, d *soakDaemon, id string, prompts []string) {
	t.Helper()
	if len(prompts) == 0 {
		return
	}
	full := s.full.Load()
	mark := d.Mark()
	if _, err := d.TryCall("chat/open", map[string]any{"chatId": id}); err != nil {
		if full%2 == 0 && s.full.Load() == full {
			t.Errorf("%s cannot be opened: %v", id, err)
		}
		return
	}
	shown := fmt.Sprint(d.Since(mark))
	for _, text := range prompts {
		if !strings.Contains(shown, text) {
			t.Errorf("%s: lost: %s", id, text)
		}
	}
}

// soakDaemon is a running daemon with an editor that can stop reading.
type soakDaemon struct {
	*process
	reader *pausable
	page   string // the debug page
}

func (s *soak) start(t *testing.T, name string) *soakDaemon {
	t.Helper()
	cmd := exec.Command(s.bin, "server", "--debug", "127.0.0.1:0", "--log-level", "error")
	cmd.Dir, cmd.Env = s.here.root, s.here.env
	errOut, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, stdout := startPiped(t, cmd)
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewReader(errOut)
	line, err := lines.ReadString('\n')
	found := regexp.MustCompile(`^eca: debug page: (\S+)`).FindStringSubmatch(line)
	if err != nil || found == nil {
		t.Fatalf("%s: %q, %v", name, line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	reader := &pausable{Reader: stdout}
	d := &soakDaemon{&process{Editor: fake.Connect(t, reader, stdin), cmd: cmd, stdin: stdin, stderr: &bytes.Buffer{}}, reader, found[1]}
	d.Open(s.here.root, nil)
	return d
}

func (d *soakDaemon) prompt(id, text string) error {
	result, err := d.TryCall("chat/prompt", map[string]any{"chatId": id, "message": text})
	if err == nil && !bytes.Contains(result, []byte(`"prompting"`)) {
		err = fmt.Errorf("refused: %s", result)
	}
	return err
}

// goroutines is their number when the daemon is idle.
func (d *soakDaemon) goroutines(t *testing.T) int {
	t.Helper()
	_, text := answerOf(t, d.page)
	found := regexp.MustCompile(`goroutines, (\d+)|(\d+) goroutines`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no goroutines on the page: %s", text)
	}
	n, _ := strconv.Atoi(found[1] + found[2])
	return n
}

// measure notes how much memory a daemon uses.
func (s *soak) measure(d *soakDaemon, name string) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		return
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory[name] = append(s.memory[name], kib)
}

// report fails for histories that providers would refuse, and for memory that is used or grows.
func (s *soak) report(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, problem := range s.invalid[:min(len(s.invalid), 5)] {
		t.Error(problem)
	}
	t.Logf("%d turns (%d while the disk was full), %d kills, %d times full", s.turns.Load(), s.refused.Load(), s.kills.Load(), s.full.Load()/2)
	for name, kib := range s.memory {
		parts := make([]string, 0, 10)
		for part := range slices.Chunk(kib, max(1, (len(kib)+9)/10)) {
			parts = append(parts, strconv.FormatInt(slices.Max(part)>>10, 10))
		}
		t.Logf("memory of %s, the maxima of ten parts of the time: %s MiB", name, strings.Join(parts, " "))
		if largest := slices.Max(kib); largest > soakMemory {
			t.Errorf("%s used %d MiB", name, largest>>10)
		}
		if n := len(kib); n >= 1000 {
			if early, late := slices.Max(kib[n/5:n*2/5]), slices.Max(kib[n*4/5:]); late > early*5/4 {
				t.Errorf("%s: its memory grew from %d to %d MiB", name, early>>10, late>>10)
			}
		}
	}
}

// processes lists the processes that daemons of the run have started, directly or not.
func (s *soak) processes() (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range all {
		if env, err := os.ReadFile(file); err == nil && bytes.Contains(env, []byte(soakMark+"="+strconv.Itoa(os.Getpid()))) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// pausable is a reader that can stop reading.
type pausable struct {
	io.Reader
	until atomic.Int64 // nanoseconds since 1970
}

func (p *pausable) pause(d time.Duration) { p.until.Store(time.Now().Add(d).UnixNano()) }

func (p *pausable) Read(b []byte) (int, error) {
	time.Sleep(time.Until(time.Unix(0, p.until.Load())))
	return p.Reader.Read(b)
}
