package mcp

import (
	"bytes"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/internal/lineproc"
	"github.com/seed-dec29ce4/eca/internal/shorten"
)

const (
	maxLogLine = 2000      // bytes of a line in the log
	maxLogged  = 256 << 10 // bytes of a connection's stderr in the log
	maxReason  = 300       // bytes of the line that becomes the reason
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

// reason returns the line that most likely tells why a server ended: the last one that mentions a
// failure, otherwise the last one that is not part of a stack trace.
func (s *stderr) reason() (line string, more bool) {
	last := ""
	lines := strings.Split(s.tail.String(), "\n")
	for _, l := range slices.Backward(lines) {
		l = strings.TrimSpace(l)
		switch {
		case l == "" || uninformative.MatchString(l):
		case failure.MatchString(l):
			return shorten.Bytes(l, maxReason), len(lines) > 1
		case last == "":
			last = l
		}
	}
	return shorten.Bytes(last, maxReason), len(lines) > 1
}

var (
	// uninformative matches lines that programs write about a failure besides its reason.
	uninformative = regexp.MustCompile(`^(at |File "|node:|Node\.js v|Traceback|goroutine |exit status |note: |\^|\.\.\. |[{}()\[\]]|from /)|complete log of this run|\.log$|^[a-zA-Z]+: ['\[{]`)
	// failure matches lines that mention a failure.
	failure = regexp.MustCompile(`(?i)error|exception|panic|fatal|cannot|can't|could not|couldn't|not found|no such|denied|refused|invalid|missing|required|failed|unknown|unable|usage:`)
)
