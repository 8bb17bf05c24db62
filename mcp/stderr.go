package mcp

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/internal/lineproc"
)

const (
	maxLogLine = 2000      // bytes of a line in the log
	maxLogged  = 256 << 10 // bytes of a connection's stderr in the log
	maxPrinted = 300       // bytes of a line in place of a message that become a reason
)

// stderr logs what a server writes to its stderr, up to a limit, and keeps the end of it.
type stderr struct {
	log   *slog.Logger
	clean func(string) string
	tail  lineproc.Tail

	mu     sync.Mutex // guards the fields below
	line   []byte     // the beginning of the incomplete line
	logged int
}

// Write implements io.Writer. It never fails, so that the server keeps running.
func (s *stderr) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(p)
	_, _ = s.tail.Write(p)
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		part := p
		if i >= 0 {
			part = p[:i]
		}
		s.line = append(s.line, part[:min(len(part), max(0, maxLogLine-len(s.line)))]...)
		if i < 0 {
			break
		}
		s.flush()
		p = p[i+1:]
	}
	return n, nil
}

// flush logs a line. The caller holds mu.
func (s *stderr) flush() {
	line := strings.TrimSpace(strings.ToValidUTF8(string(s.line), "�"))
	s.line = s.line[:0]
	switch {
	case line == "" || s.logged > maxLogged:
	case s.logged+len(line) > maxLogged:
		s.log.Info("MCP server stderr", "text", "[it writes too much; the rest is left out]")
		s.logged = maxLogged + 1
	default:
		s.log.Info("MCP server stderr", "text", s.clean(line))
		s.logged += len(line)
	}
}

// reason returns the line that most likely tells why a server ended.
func (s *stderr) reason() (line string, more bool) {
	text := s.tail.String()
	return lineproc.Reason(text), strings.Contains(text, "\n")
}
