package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// addExtensions adds 200 files to a workspace: agents, skills, rules and commands.
func addExtensions(b *testing.B, root string) {
	b.Helper()
	for i := range 50 {
		for name, text := range map[string]string{
			"agents/a%d.md":       "---\nmode: subagent\ndescription: Agent %[1]d\n---\nYou are number %[1]d.\n",
			"skills/s%d/SKILL.md": "---\nname: skill-%d\ndescription: What the skill is for, and when to use it.\n---\n# Steps\n1. One\n",
			"rules/r%d.md":        "---\npaths: ['src/part%d/**']\n---\nA rule of a few words.\n",
			"commands/c%d.md":     "---\ndescription: Command %d\n---\nDo it with $1.\n",
		} {
			path := filepath.Join(root, ".eca", filepath.FromSlash(fmt.Sprintf(name, i)))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(path, fmt.Appendf(nil, text, i), 0o600); err != nil {
				b.Fatal(err)
			}
			long := time.Now().Add(-time.Hour)
			if err := os.Chtimes(path, long, long); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkExtensions: how much 200 files of agents, skills, rules and commands add to the time
// from a prompt to the model's request, for the first prompt and later ones, and to `initialize`.
// The floor is the same without these files.
func BenchmarkExtensions(b *testing.B) {
	arrived := make(chan time.Time, 1)
	src := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- time.Now()
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n")
	}))
	b.Cleanup(src.Close)
	bin := build(b, ".")
	bare, full := newPlace(b), newPlace(b)
	addExtensions(b, full.root)
	with, without := startIn(b, bin, src.URL, full.root), startIn(b, bin, src.URL, bare.root)
	n := 0
	prompt := func(e *fake.Editor) time.Duration {
		n++
		mark, start := e.Mark(), time.Now()
		e.Call("chat/prompt", map[string]any{"chatId": fmt.Sprint("c", n), "message": "go"})
		took := (<-arrived).Sub(start)
		e.Await(mark, "the end", fake.Finished())
		return took
	}
	firstOurs, firstFloor := prompt(with), prompt(without)
	var ours, floor, start, startFloor []time.Duration
	for b.Loop() {
		floor, ours = append(floor, prompt(without)), append(ours, prompt(with))
		here := func(root string) string { return strings.Replace(initialize, "/tmp", filepath.ToSlash(root), 1) }
		startFloor = append(startFloor, firstByte(b, bare, bin, here(bare.root), "server"))
		start = append(start, firstByte(b, full, bin, here(full.root), "server"))
	}
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(median(ours)), "turn-ms")
	b.ReportMetric(ms(median(floor)), "turn-floor-ms")
	b.ReportMetric(ms(firstOurs), "first-turn-ms")
	b.ReportMetric(ms(firstFloor), "first-turn-floor-ms")
	b.ReportMetric(ms(median(start)), "initialize-ms")
	b.ReportMetric(ms(median(startFloor)), "initialize-floor-ms")
}

// startIn is like served, with a workspace folder.
func startIn(b *testing.B, bin, url, root string) *fake.Editor {
	b.Helper()
	here := newPlace(b, "OPENAI_API_KEY=sk-bench", "OPENAI_API_URL="+url, `ECA_CONFIG={"chat":{"title":false},"providers":{"openai":{"fetchModels":false}}}`)
	cmd := exec.Command(bin, "server", "--log-level", "error")
	cmd.Dir, cmd.Env = here.root, here.env
	p := connect(b, cmd)
	b.Cleanup(func() {
		_ = p.stdin.Close()
		_ = cmd.Wait()
	})
	p.Open(root, nil)
	p.Await(0, "the start", fake.Ready())
	return p.Editor
}
