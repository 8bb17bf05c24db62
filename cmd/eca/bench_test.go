package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/llm"
)

// The benchmarks of docs/performance.md. Each measures its floor in the same run: the
// least that any program must spend on the same job. Run them with
//
//	go test -run '^$' -bench . -benchtime 20x ./cmd/eca

// build compiles a program like a release.
func build(b testing.TB, dir string) string {
	b.Helper()
	bin := filepath.Join(b.TempDir(), "program")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", bin, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

// buildEmptyProgram builds a Go program that only waits for the end of its input.
func buildEmptyProgram(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module empty\n\ngo 1.26\n",
		"main.go": "package main\n\nimport \"os\"\n\nfunc main() {\n\tos.Stdout.WriteString(\"x\")\n\tos.Stdin.Read(make([]byte, 1))\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return build(b, dir)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"clientInfo":{"name":"bench"},"capabilities":{},"workspaceFolders":[{"uri":"file:///tmp","name":"ws"}]}}`

// firstByte starts a program and returns the time until its first output.
func firstByte(b *testing.B, p place, bin, input string, args ...string) time.Duration {
	b.Helper()
	cmd := exec.Command(bin, args...)
	cmd.Dir, cmd.Env = p.root, p.env
	start := time.Now()
	stdin, stdout := startPiped(b, cmd)
	if input != "" {
		fmt.Fprintf(stdin, "Content-Length: %d\r\n\r\n%s", len(input), input)
	}
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		b.Fatal(err)
	}
	took := time.Since(start)
	_ = stdin.Close()
	_, _ = io.Copy(io.Discard, stdout)
	_ = cmd.Wait()
	return took
}

// BenchmarkStart: from process start to the answer of `initialize`, compared with the first output
// of an empty Go program.
func BenchmarkStart(b *testing.B) {
	eca, nothing, here := build(b, "."), buildEmptyProgram(b), newPlace(b)
	var ours, floor []time.Duration
	for b.Loop() {
		floor = append(floor, firstByte(b, here, nothing, ""))
		ours = append(ours, firstByte(b, here, eca, initialize, "server"))
	}
	o, f := median(ours), median(floor)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(o.Seconds()*1000, "ms")
	b.ReportMetric(f.Seconds()*1000, "floor-ms")
	b.ReportMetric(o.Seconds()/f.Seconds(), "x-floor")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// newStreamingProvider starts a provider that streams deltas as fast as they are read, or one per
// interval, stamped with the time of sending.
func newStreamingProvider(b *testing.B, deltas int, every time.Duration) *httptest.Server {
	b.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		out := bufio.NewWriterSize(w, 32<<10)
		for i := range deltas {
			text := "token "
			if every > 0 {
				time.Sleep(every)
				text = strconv.FormatInt(time.Now().UnixNano(), 10) + " "
			}
			fmt.Fprintf(out, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":%q,\"sequence_number\":%d}\n\n", text, i)
			if every > 0 {
				_ = out.Flush()
				w.(http.Flusher).Flush()
			}
		}
		fmt.Fprint(out, "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n")
		_ = out.Flush()
	}))
	b.Cleanup(srv.Close)
	return srv
}

// relayStream is the floor: it reads the same stream and writes one frame per delta.
func relayStream(b *testing.B, url string, w io.Writer) {
	b.Helper()
	resp, err := http.Post(url+"/v1/responses", "application/json", strings.NewReader("{}"))
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	sse := llm.NewSSEReader(resp.Body)
	for {
		ev, err := sse.Next()
		if err != nil {
			return
		}
		var d struct{ Delta string }
		if err := json.Unmarshal(ev.Data, &d); err != nil {
			b.Fatal(err)
		}
		body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "chat/contentReceived", "params": map[string]any{"content": map[string]any{"type": "text", "text": d.Delta}}})
		// The counted newline lets the reader take the frame line by line.
		if _, err := fmt.Fprintf(w, "Content-Length: %d\r\n\r\n%s\n", len(body)+1, body); err != nil {
			b.Fatal(err)
		}
	}
}

// startWithProvider starts a released eca with a provider at url, ready for prompts.
func startWithProvider(b *testing.B, bin, url string) (*fake.Editor, *exec.Cmd) {
	b.Helper()
	p, cmd := startOpened(b, bin, newPlace(b, "OPENAI_API_KEY=sk-bench", "OPENAI_API_URL="+url, `ECA_CONFIG={"chat":{"title":false},"providers":{"openai":{"fetchModels":false}}}`))
	p.Await(0, "the start", fake.Ready())
	return p, cmd
}

// startOpened starts a server in a place, and opens it.
func startOpened(b *testing.B, bin string, here place) (*fake.Editor, *exec.Cmd) {
	b.Helper()
	cmd := exec.Command(bin, "server", "--log-level", "error")
	cmd.Dir, cmd.Env = here.root, here.env
	p := connect(b, cmd)
	b.Cleanup(func() {
		_ = p.stdin.Close()
		_ = cmd.Wait()
	})
	p.Open(here.root, nil)
	return p.Editor, cmd
}

// BenchmarkDeltas: text deltas per second from the provider's socket to the editor's
// pipe, through the whole daemon and its store.
func BenchmarkDeltas(b *testing.B) {
	const n = 200_000
	src := newStreamingProvider(b, n, 0)
	e, _ := startWithProvider(b, build(b, "."), src.URL)
	var ours, floor time.Duration
	for b.Loop() {
		r, w, err := os.Pipe()
		if err != nil {
			b.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, r) }()
		start := time.Now()
		relayStream(b, src.URL, w)
		floor += time.Since(start)
		_ = w.Close()

		mark := e.Mark()
		start = time.Now()
		e.Call("chat/prompt", map[string]any{"message": "go"})
		e.Await(mark, "the end", fake.Finished())
		ours += time.Since(start)
	}
	rate := func(d time.Duration) float64 { return float64(n) * float64(b.N) / d.Seconds() }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(rate(ours), "deltas/s")
	b.ReportMetric(rate(floor), "floor-deltas/s")
	b.ReportMetric(ours.Seconds()/floor.Seconds(), "x-floor")
}

// BenchmarkLatency: from the moment the provider writes a delta to the moment the
// editor has read it, at 500 deltas per second.
func BenchmarkLatency(b *testing.B) {
	const n = 1000
	src := newStreamingProvider(b, n, 2*time.Millisecond)
	e, _ := startWithProvider(b, build(b, "."), src.URL)
	var ours, floor []time.Duration
	for b.Loop() {
		r, w, err := os.Pipe()
		if err != nil {
			b.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			lines := bufio.NewScanner(r)
			for lines.Scan() {
				at := time.Now()
				if _, rest, ok := strings.Cut(lines.Text(), `"text":"`); ok {
					text, _, _ := strings.Cut(rest, `"`)
					floor = append(floor, latenciesOf(text, at)...)
				}
			}
		}()
		relayStream(b, src.URL, w)
		_ = w.Close()
		<-done

		mark := e.Mark()
		e.Watch(func(m fake.Message, at time.Time) {
			var c struct{ Content struct{ Type, Text string } }
			if json.Unmarshal(m.Params, &c) == nil && c.Content.Type == "text" {
				ours = append(ours, latenciesOf(c.Content.Text, at)...)
			}
		})
		e.Call("chat/prompt", map[string]any{"message": "go"})
		e.Await(mark, "the end", fake.Finished())
		e.Watch(nil)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(quantile(ours, 0.5), "p50-ms")
	b.ReportMetric(quantile(ours, 0.99), "p99-ms")
	b.ReportMetric(quantile(floor, 0.5), "floor-p50-ms")
	b.ReportMetric(quantile(floor, 0.99), "floor-p99-ms")
}

// latenciesOf returns how old the deltas in a text are that source made.
func latenciesOf(text string, at time.Time) (out []time.Duration) {
	for s := range strings.FieldsSeq(text) {
		if ns, err := strconv.ParseInt(s, 10, 64); err == nil {
			out = append(out, at.Sub(time.Unix(0, ns)))
		}
	}
	return out
}

// quantile returns a quantile in ms, and sorts.
func quantile(d []time.Duration, q float64) float64 {
	slices.Sort(d)
	return d[int(float64(len(d)-1)*q)].Seconds() * 1000
}

// resident returns a process's resident memory in MB.
func resident(b *testing.B, pid int) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skip("NOT MEASURED: memory is read from /proc, which only Linux has: ", err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.Atoi(strings.Fields(rest)[0])
			return float64(kb) / 1024
		}
	}
	b.Fatal("no VmRSS")
	return 0
}

// BenchmarkMemory: resident memory idle, and after 100 chats of one turn each.
func BenchmarkMemory(b *testing.B) {
	src := newStreamingProvider(b, 100, 0)
	bin, nothing := build(b, "."), buildEmptyProgram(b)
	var idle, after, floor float64
	for b.Loop() {
		cmd := exec.Command(nothing)
		stdin, err := cmd.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
		floor = resident(b, cmd.Process.Pid)
		_ = stdin.Close()
		_ = cmd.Wait()

		e, proc := startWithProvider(b, bin, src.URL)
		time.Sleep(2 * time.Second)
		idle = resident(b, proc.Process.Pid)
		for i := range 100 {
			mark := e.Mark()
			e.Call("chat/prompt", map[string]any{"chatId": fmt.Sprint("c", i), "message": "go"})
			e.Await(mark, "the end", fake.Finished())
		}
		time.Sleep(2 * time.Second)
		after = resident(b, proc.Process.Pid)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(idle, "idle-MB")
	b.ReportMetric(after, "after-100-chats-MB")
	b.ReportMetric(floor, "floor-MB")
}

// BenchmarkCancel: from chat/promptStop until the provider sees that its request was closed.
func BenchmarkCancel(b *testing.B) {
	closed := make(chan time.Time, 1)
	src := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // until then the server does not watch the connection
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"type\":\"response.output_text.delta\",\"delta\":\"x\"}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		closed <- time.Now()
	}))
	b.Cleanup(src.Close)
	e, _ := startWithProvider(b, build(b, "."), src.URL)
	var took []time.Duration
	for b.Loop() {
		mark := e.Mark()
		e.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
		e.Await(mark, "text", fake.Content("text", `"x"`))
		start := time.Now()
		e.Notify("chat/promptStop", map[string]any{"chatId": "c"})
		took = append(took, (<-closed).Sub(start))
		e.Await(mark, "the end", fake.Finished())
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(took).Seconds()*1000, "ms")
	b.ReportMetric(slices.Max(took).Seconds()*1000, "max-ms")
}
