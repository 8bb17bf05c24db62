package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

// progress shows the progress of a run: a bar on a terminal, otherwise nothing, or with verbose a
// line for each scenario.
type progress struct {
	w       io.Writer
	bar     bool
	verbose bool

	waitingFor string // the reason for waiting that is shown if the first scenario takes long
	starting   string // is added to waitingFor while no agent has answered

	mu              sync.Mutex // guards the fields below
	counts          map[string]int
	last            string
	notice          *time.Timer // shows waitingFor; nil before the first scenario begins
	noticeCancelled bool        // the notice is no longer needed
	ready           bool        // an agent has answered
}

func newProgress(w io.Writer, verbose bool, awaited, starting string) *progress {
	return &progress{w: w, bar: isTerminal(w), verbose: verbose, waitingFor: awaited, starting: starting, counts: map[string]int{}}
}

// noticeAfter is how long the first scenario may take before awaited is shown.
const noticeAfter = 2 * time.Second

func isTerminal(w io.Writer) bool {
	f, ok := usage.File(w)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p *progress) event(e runtime.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case e.Ready:
		p.ready = true
		return
	case e.Scenario != nil:
		p.stopNotice()
		p.counts[e.Scenario.Status]++
		if p.verbose {
			p.clear()
			fmt.Fprintf(p.w, "%-6s  %s (%d ms)\n", e.Scenario.Status, printable(e.Scenario.Title()), e.Scenario.DurationMS)
		}
	default:
		p.last = printable(e.Running)
		if p.notice == nil {
			p.notice = time.AfterFunc(noticeAfter, func() { p.reportWaiting(e.Running) })
		}
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
	// Wrapping is off, because the second line of a wrapped one could not be erased.
	fmt.Fprintf(p.w, "\r\x1b[K\x1b[?7l[%s%s] %d/%d  %d passed, %d failed, %d errors  %s\x1b[?7h", strings.Repeat("#", full), strings.Repeat(".", width-full),
		e.Done, e.Total, p.counts[report.Passed], p.counts[report.Failed], p.counts[report.Error], string(name))
}

// printLine writes a line immediately, above the progress bar.
func (p *progress) printLine(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printLineLocked(text)
}

func (p *progress) printLineLocked(text string) {
	p.clear()
	fmt.Fprintln(p.w, "ecp:", printable(text))
}

// reportWaiting shows waitingFor, unless the first scenario has ended.
func (p *progress) reportWaiting(scenario string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.noticeCancelled {
		return
	}
	awaited := p.waitingFor
	if !p.ready {
		awaited += p.starting
	}
	p.printLineLocked("waiting for " + awaited + " (scenario " + scenario + ")")
}

func (p *progress) clear() {
	if p.bar {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopNotice()
	p.clear()
}

// stopNotice cancels the notice. The caller holds p.mu.
func (p *progress) stopNotice() {
	p.noticeCancelled = true
	if p.notice != nil {
		p.notice.Stop()
	}
}
