package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/ecp/runtime"
)

// progress shows how a run is getting on: a bar on a terminal, else nothing, or with verbose
// a line for each scenario.
type progress struct {
	w       io.Writer
	bar     bool
	verbose bool

	mu     sync.Mutex // guards what follows
	counts map[string]int
	last   string
}

func newProgress(w io.Writer, verbose bool) *progress {
	return &progress{w: w, bar: isTerminal(w), verbose: verbose, counts: map[string]int{}}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p *progress) event(e runtime.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Scenario != nil {
		p.counts[e.Scenario.Status]++
		if p.verbose {
			p.clear()
			fmt.Fprintf(p.w, "%-6s  %s (%d ms)\n", e.Scenario.Status, printable(e.Scenario.Title()), e.Scenario.DurationMS)
		}
	} else {
		p.last = printable(e.Running)
	}
	if !p.bar || e.Total == 0 {
		return
	}
	const width = 24
	full := width * e.Done / e.Total
	name := []rune(p.last)
	if len(name) > 28 {
		name = append(name[:27], '…')
	}
	// Without wrapping: of a line that is too long for the terminal, the rest could not be
	// wiped away again.
	fmt.Fprintf(p.w, "\r\x1b[K\x1b[?7l[%s%s] %d/%d  %d passed, %d failed, %d errors  %s\x1b[?7h", strings.Repeat("#", full), strings.Repeat(".", width-full),
		e.Done, e.Total, p.counts[report.Passed], p.counts[report.Failed], p.counts[report.Error], string(name))
}

// say writes a line that must not wait for the report.
func (p *progress) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintln(p.w, "ecp:", printable(text))
}

func (p *progress) clear() {
	if p.bar {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}
