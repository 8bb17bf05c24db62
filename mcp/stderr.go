package mcp

import (
	"bytes"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/internal/shorten"
)

const (
	maxLogLine = 2000      // bytes of a line in the log
	maxLogged  = 256 << 10 // bytes of a connection's stderr in the log
	keptTail   = 16 << 10  // bytes of stderr in which the reason is looked for why a server ended
	maxReason  = 300       // bytes of the line that is taken for the reason
)

// stderr takes what a server writes there: into the log, up to a limit, and the end of it is
// kept.
type stderr struct {
	log   *slog.Logger
	clean func(string) string

	mu     sync.Mutex // guards what follows
	line   []byte     // that is not complete; its beginning
	tail   []byte
	logged int
}

// Write implements io.Writer. It never fails, so that the server goes on.
func (s *stderr) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(p)
	s.tail = append(s.tail, p[max(0, len(p)-keptTail):]...)
	s.tail = append(s.tail[:0], s.tail[max(0, len(s.tail)-keptTail):]...)
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

// flush logs a line. mu is held.
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

// reason returns the line of what was written last that probably says why a server ended:
// the last that speaks of a failure, else the last that is no frame of a stack.
func (s *stderr) reason() (line string, more bool) {
	last := ""
	lines := strings.Split(s.last(), "\n")
	for _, l := range slices.Backward(lines) {
		l = strings.TrimSpace(l)
		switch {
		case l == "" || noise.MatchString(l):
		case failure.MatchString(l):
			return shorten.Bytes(l, maxReason), len(lines) > 1
		case last == "":
			last = l
		}
	}
	return shorten.Bytes(last, maxReason), len(lines) > 1
}

var (
	// noise matches what programs write about a failure besides its reason.
	noise = regexp.MustCompile(`^(at |File "|node:|Node\.js v|Traceback|goroutine |exit status |note: |\^|\.\.\. |[{}()\[\]]|from /)|complete log of this run|\.log$|^[a-zA-Z]+: ['\[{]`)
	// failure matches what programs say of one.
	failure = regexp.MustCompile(`(?i)error|exception|panic|fatal|cannot|can't|could not|couldn't|not found|no such|denied|refused|invalid|missing|required|failed|unknown|unable|usage:`)
)

// last returns the end of what was written, from the beginning of a line.
func (s *stderr) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := string(s.tail)
	if len(s.tail) == keptTail {
		if _, rest, ok := strings.Cut(text, "\n"); ok {
			text = rest
		}
	}
	return strings.TrimSpace(strings.ToValidUTF8(text, "�"))
}
