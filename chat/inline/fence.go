package inline

// stripper takes a code fence around an answer away while the answer streams, and the
// line breaks at its end: models add both, whatever the prompt says. The zero value
// is ready for use.
//
// A fence is taken away if it is around the whole answer: only blank lines may be
// before its opening line, and only blank lines after its closing line. So nothing
// but the frame is ever lost, and fences inside the answer stay. Text that could still
// turn out to be the end of the frame is held back until more comes.
type stripper struct {
	keepFence bool // the answer may begin with a fence of its own

	state stripState
	held  []byte // may still be taken away
	ticks int    // length of the fence that is being read
	fence int    // length of the opening fence; or 0
	wrote bool   // something was let through
}

// stripState is what the held bytes are.
type stripState uint8

const (
	stripLead    stripState = iota // blanks before the first word of the answer
	stripOpening                   // the first characters of what may be an opening fence
	stripInfo                      // the rest of its line
	stripText                      // nothing
	stripBreaks                    // line breaks
	stripIndent                    // line breaks, blanks
	stripClosing                   // line breaks, blanks, the characters of a fence
	stripAfter                     // all of that, and blanks after the fence
)

const minFence = 3

// write takes the next piece of the answer and returns what can be let through.
func (s *stripper) write(piece string) string {
	var out []byte
	for i := range len(piece) {
		out = s.next(out, piece[i])
	}
	return s.let(out)
}

// end returns what of the held text belongs to the answer.
func (s *stripper) end() string {
	switch s.state {
	case stripOpening:
		if s.ticks < minFence {
			return s.let(s.held)
		}
		s.fence = s.ticks
	case stripLead:
		return s.let(s.held[:len(s.held)-trailing(s.held, isBreak)])
	case stripInfo:
		s.fence = s.ticks
	case stripIndent:
		return s.let(s.held)
	case stripClosing:
		if s.ticks < s.fence {
			return s.let(s.held)
		}
	}
	return ""
}

func (s *stripper) let(out []byte) string {
	s.wrote = s.wrote || len(out) > 0
	return string(out)
}

// next takes one byte; it appends to out what is let through.
func (s *stripper) next(out []byte, c byte) []byte {
	if s.state <= stripInfo {
		return s.begin(out, c)
	}
	switch s.state {
	case stripAfter:
		if isBlank(c) {
			return s.hold(out, c, stripAfter)
		}
		// The fence was not the last line; one that begins here may be.
		line := trailing(s.held, isIndent)
		line += trailing(s.held[:len(s.held)-line], isBreak)
		if line == 0 || c != '`' || !isBreak(s.held[len(s.held)-line]) {
			return s.release(out, c)
		}
		keep := len(s.held) - line
		out = append(out, s.held[:keep]...)
		s.held = append(s.held[:0], s.held[keep:]...)
		s.ticks = 1
		return s.hold(out, c, stripClosing)
	case stripClosing:
		switch {
		case c == '`':
			s.ticks++
			return s.hold(out, c, stripClosing)
		case isBlank(c) && s.ticks >= s.fence:
			return s.hold(out, c, stripAfter)
		}
	case stripBreaks, stripIndent:
		switch {
		case s.fence > 0 && isIndent(c):
			return s.hold(out, c, stripIndent)
		case s.fence > 0 && c == '`':
			s.ticks = 1
			return s.hold(out, c, stripClosing)
		case isBreak(c) && s.state == stripBreaks:
			return s.hold(out, c, stripBreaks)
		}
	}
	return s.release(out, c)
}

// begin takes a byte of what may be the opening line.
func (s *stripper) begin(out []byte, c byte) []byte {
	switch {
	case s.state == stripLead && isBlank(c):
		return s.hold(out, c, stripLead)
	case s.state != stripInfo && c == '`' && !s.keepFence:
		s.ticks++
		return s.hold(out, c, stripOpening)
	case s.ticks >= minFence && c == '\n':
		s.fence, s.held, s.state = s.ticks, s.held[:0], stripBreaks
		return out
	case s.ticks >= minFence && c != '`':
		return s.hold(out, c, stripInfo)
	}
	return s.release(out, c)
}

func (s *stripper) hold(out []byte, c byte, next stripState) []byte {
	s.held, s.state = append(s.held, c), next
	return out
}

// release lets what is held through, and c too unless it may begin the end.
func (s *stripper) release(out []byte, c byte) []byte {
	out = append(out, s.held...)
	s.held, s.state = s.held[:0], stripText
	if isBreak(c) {
		return s.hold(out, c, stripBreaks)
	}
	return append(out, c)
}

func isBreak(c byte) bool  { return c == '\n' || c == '\r' }
func isIndent(c byte) bool { return c == ' ' || c == '\t' }
func isBlank(c byte) bool  { return isBreak(c) || isIndent(c) }

// trailing counts the bytes at the end of b that are of a kind.
func trailing(b []byte, kind func(byte) bool) int {
	n := 0
	for n < len(b) && kind(b[len(b)-1-n]) {
		n++
	}
	return n
}
