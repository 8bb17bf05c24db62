package shell

import (
	"bytes"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/tools"
)

const (
	maxLines     = 2000    // of a job's output that are kept, the last ones
	maxLineBytes = 2 << 10 // longer lines are several
	maxLinesSize = 1 << 20 // bytes of all that are kept
)

// lines keeps the end of what a job prints.
type lines struct {
	mu      sync.Mutex // guards what follows
	recent  []tools.JobLine
	bytes   int
	dropped int                // lines that are not kept any more
	read    int                // lines that the model has read, lost ones included
	open    [2]strings.Builder // the unfinished lines of stdout and stderr
}

// stream is where one of a job's streams is written to.
type stream struct {
	lines  *lines
	stderr bool
}

// Write implements io.Writer.
func (s stream) Write(p []byte) (int, error) {
	l := s.lines
	l.mu.Lock()
	defer l.mu.Unlock()
	open := &l.open[0]
	if s.stderr {
		open = &l.open[1]
	}
	rest := p
	for len(rest) > 0 {
		room := maxLineBytes - open.Len()
		i := bytes.IndexByte(rest[:min(room, len(rest))], '\n')
		switch {
		case i >= 0:
			open.Write(rest[:i])
			rest = rest[i+1:]
			l.add(open, s.stderr)
		case len(rest) >= room:
			open.Write(rest[:room])
			rest = rest[room:]
			l.add(open, s.stderr)
		default:
			open.Write(rest)
			rest = nil
		}
	}
	return len(p), nil
}

// add finishes a line.
func (l *lines) add(open *strings.Builder, stderr bool) {
	text := strings.ToValidUTF8(strings.TrimSuffix(open.String(), "\r"), "�")
	open.Reset()
	l.recent = append(l.recent, tools.JobLine{Text: text, Stderr: stderr})
	l.bytes += len(text)
	for len(l.recent) > maxLines || l.bytes > maxLinesSize {
		l.bytes -= len(l.recent[0].Text)
		l.recent[0] = tools.JobLine{}
		l.recent = l.recent[1:]
		l.dropped++
	}
}

// end finishes what has no line end.
func (l *lines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.open {
		if l.open[i].Len() > 0 {
			l.add(&l.open[i], i == 1)
		}
	}
}

// all returns what is kept.
func (l *lines) all() []tools.JobLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]tools.JobLine{}, l.recent...)
}

// unread returns the lines that were not read yet, and how many of those are lost.
func (l *lines) unread() (list []tools.JobLine, lost int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost = max(l.dropped-l.read, 0)
	list = append(list, l.recent[max(l.read-l.dropped, 0):]...)
	l.read = l.dropped + len(l.recent)
	return list, lost
}

// last returns the end of what is kept.
func (l *lines) last(n int) []tools.JobLine {
	list := l.all()
	return list[max(len(list)-n, 0):]
}

// render makes text of lines; those of stderr are marked.
func render(list []tools.JobLine) string {
	var b strings.Builder
	for _, line := range list {
		if line.Stderr {
			b.WriteString("[stderr] ")
		}
		b.WriteString(line.Text + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
