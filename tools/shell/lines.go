package shell

import (
	"bytes"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/tools"
)

const (
	maxLines     = 2000    // how many lines are kept
	maxLineBytes = 2 << 10 // a longer line is split
	maxLinesSize = 1 << 20 // bytes of all kept lines together
)

// outputLines keeps the last lines of the output of a job.
type outputLines struct {
	mu      sync.Mutex // guards the fields below
	recent  []tools.JobLine
	bytes   int
	dropped int                // number of lines that are not kept any more
	read    int                // number of lines that the model has read, including dropped ones
	open    [2]strings.Builder // unfinished lines of stdout and stderr
}

// stream is the writer for stdout or stderr of a job.
type stream struct {
	lines  *outputLines
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

// add moves an unfinished line to the kept lines.
func (l *outputLines) add(open *strings.Builder, stderr bool) {
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

// flush finishes the last lines of stdout and stderr if they have no line end.
func (l *outputLines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.open {
		if l.open[i].Len() > 0 {
			l.add(&l.open[i], i == 1)
		}
	}
}

// all returns all lines that are kept.
func (l *outputLines) all() []tools.JobLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]tools.JobLine{}, l.recent...)
}

// unread returns the lines that the model has not read yet, and how many more were dropped.
func (l *outputLines) unread() (list []tools.JobLine, lost int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost = max(l.dropped-l.read, 0)
	list = append(list, l.recent[max(l.read-l.dropped, 0):]...)
	l.read = l.dropped + len(l.recent)
	return list, lost
}

// last returns the last n lines.
func (l *outputLines) last(n int) []tools.JobLine {
	list := l.all()
	return list[max(len(list)-n, 0):]
}

// render formats lines, and marks those of stderr.
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
