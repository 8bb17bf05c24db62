package inline

// stripper removes a code fence around a streamed answer, and the line breaks at its end.
// Models add both, even if the prompt forbids it. The zero value is ready to use.
//
// A fence is removed only if it is around the whole answer: only blank lines may precede
// its opening line or follow its closing line. Fences inside the answer are kept. Text that
// may turn out to be the closing line is held back until more of the answer arrives.
type stripper struct {
	keepFence bool // do not remove a fence at the beginning: it may belong to the answer

	state     stripState
	heldBack  []byte // text that is held back
	ticks     int    // length of the fence that is being read
	fence     int    // length of the opening fence, or 0
	wroteText bool   // some text was returned
}

// stripState describes the held bytes.
type stripState uint8

const (
	stripLead    stripState = iota // blanks before the first word of the answer
	stripOpening                   // the first characters of what may be an opening fence
	stripInfo                      // the rest of its line
	stripText                      // no bytes are held
	stripBreaks                    // line breaks
	stripIndent                    // line breaks and blanks
	stripClosing                   // line breaks, blanks and the characters of a fence
	stripAfter                     // line breaks, blanks, a fence and more blanks
)

const minFence = 3

// write adds the next piece of the answer and returns the text that is not held back.
func (s *stripper) write(piece string) string {
	var out []byte
	for i := range len(piece) {
		out = s.next(out, piece[i])
	}
	return s.emit(out)
}

// end returns the part of the held text that belongs to the answer.
func (s *stripper) end() string {
	switch s.state {
	case stripOpening:
		if s.ticks < minFence {
			return s.emit(s.heldBack)
		}
		s.fence = s.ticks
	case stripLead:
		return s.emit(s.heldBack[:len(s.heldBack)-trailing(s.heldBack, isBreak)])
	case stripInfo:
		s.fence = s.ticks
	case stripIndent:
		return s.emit(s.heldBack)
	case stripClosing:
		if s.ticks < s.fence {
			return s.emit(s.heldBack)
		}
	}
	return ""
}

func (s *stripper) emit(out []byte) string {
	s.wroteText = s.wroteText || len(out) > 0
	return string(out)
}

// next adds one byte, and appends the text that is not held back to out.
func (s *stripper) next(out []byte, c byte) []byte {
	if s.state <= stripInfo {
		return s.begin(out, c)
	}
	switch s.state {
	case stripAfter:
		if isBlank(c) {
			return s.hold(out, c, stripAfter)
		}
		// The fence was not the last line; another fence may begin here.
		line := trailing(s.heldBack, isIndent)
		line += trailing(s.heldBack[:len(s.heldBack)-line], isBreak)
		if line == 0 || c != '`' || !isBreak(s.heldBack[len(s.heldBack)-line]) {
			return s.release(out, c)
		}
		keep := len(s.heldBack) - line
		out = append(out, s.heldBack[:keep]...)
		s.heldBack = append(s.heldBack[:0], s.heldBack[keep:]...)
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

// begin adds a byte of a line that may be the opening line.
func (s *stripper) begin(out []byte, c byte) []byte {
	switch {
	case s.state == stripLead && isBlank(c):
		return s.hold(out, c, stripLead)
	case s.state != stripInfo && c == '`' && !s.keepFence:
		s.ticks++
		return s.hold(out, c, stripOpening)
	case s.ticks >= minFence && c == '\n':
		s.fence, s.heldBack, s.state = s.ticks, s.heldBack[:0], stripBreaks
		return out
	case s.ticks >= minFence && c != '`':
		return s.hold(out, c, stripInfo)
	}
	return s.release(out, c)
}

func (s *stripper) hold(out []byte, c byte, next stripState) []byte {
	s.heldBack, s.state = append(s.heldBack, c), next
	return out
}

// release appends the held text to out, and c too unless the closing line may begin with it.
func (s *stripper) release(out []byte, c byte) []byte {
	out = append(out, s.heldBack...)
	s.heldBack, s.state = s.heldBack[:0], stripText
	if isBreak(c) {
		return s.hold(out, c, stripBreaks)
	}
	return append(out, c)
}

func isBreak(c byte) bool  { return c == '\n' || c == '\r' }
func isIndent(c byte) bool { return c == ' ' || c == '\t' }
func isBlank(c byte) bool  { return isBreak(c) || isIndent(c) }

// trailing returns the number of bytes at the end of b for which kind returns true.
func trailing(b []byte, kind func(byte) bool) int {
	n := 0
	for n < len(b) && kind(b[len(b)-1-n]) {
		n++
	}
	return n
}
