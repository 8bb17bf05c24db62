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
	quietTime    = 3 * time.Second // the output of calls that end within this time is not shown live
	outputPause  = time.Second     // minimum time between two shown lines
	maxShownLine = 100             // maximum length of a shown line, in characters
)

// liveOutput shows the last line of a running call's output as the turn's progress, at most once per
// outputPause. Progress is not stored; the result of the call has the whole output.
type liveOutput struct {
	t *turnContext

	mu             sync.Mutex // guards the fields below
	next           time.Time  // when the next line may be shown
	unfinishedLine string     // the unfinished last line
}

func (t *turnContext) liveOutput() *liveOutput {
	return &liveOutput{t: t, next: t.session.eng.deps.Now().Add(quietTime)}
}

// add receives output; it is a tools.Sink.
func (o *liveOutput) add(chunk string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := o.unfinishedLine + chunk
	done, part := "", text
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		done, part = text[:i], text[i+1:]
	}
	const maxPart = 4 << 10
	if len(part) > maxPart {
		part = part[len(part)-maxPart:]
	}
	o.unfinishedLine = part
	now := o.t.session.eng.deps.Now()
	if done == "" || now.Before(o.next) {
		return
	}
	if line := lastLine(done); line != "" {
		o.next = now.Add(outputPause)
		o.t.rec.emit(event.Progress{Text: progressCalling + ": " + line})
	}
}

// lastLine returns the last line with printable text, shortened and without control characters.
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
			return shorten.Text(line, maxShownLine)
		}
		text = text[:max(i, 0)]
	}
	return ""
}
