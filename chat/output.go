package chat

import (
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/shorten"
)

const (
	quietTime   = 3 * time.Second // a call that is done within it shows its result only
	outputPause = time.Second     // between two lines that are shown
	shownOutput = 100             // characters of a line
)

// liveOutput shows what a call prints while it runs: now and then its last line, as the
// turn's progress, which is never stored. The result has all of it.
type liveOutput struct {
	t *setting

	mu   sync.Mutex // guards what follows
	next time.Time  // the next line may be shown
	part string     // the unfinished line
}

func (t *setting) liveOutput() *liveOutput {
	return &liveOutput{t: t, next: t.s.eng.deps.Now().Add(quietTime)}
}

// add is a tools.Sink.
func (o *liveOutput) add(chunk string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := o.part + chunk
	done, part := "", text
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		done, part = text[:i], text[i+1:]
	}
	const most = 4 << 10
	if len(part) > most {
		part = part[len(part)-most:]
	}
	o.part = part
	now := o.t.s.eng.deps.Now()
	if done == "" || now.Before(o.next) {
		return
	}
	if line := lastLine(done); line != "" {
		o.next = now.Add(outputPause)
		o.t.rec.emit(event.Progress{Text: progressCalling + ": " + line})
	}
}

// lastLine returns the last line with something to show, fit for one line of a client.
func lastLine(text string) string {
	for text != "" {
		i := strings.LastIndexAny(text, "\n\r")
		line := strings.Map(func(r rune) rune {
			if r == '\t' {
				return ' '
			}
			if !unicode.IsPrint(r) {
				return -1
			}
			return r
		}, strings.ToValidUTF8(text[i+1:], ""))
		if line = strings.TrimSpace(line); line != "" {
			return shorten.Text(line, shownOutput)
		}
		text = text[:max(i, 0)]
	}
	return ""
}
