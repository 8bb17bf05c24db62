package search

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/linesearch"
	"github.com/seed-dec29ce4/eca/workspace"
)

const (
	maxShown = 500       // bytes shown of a matching line
	maxFile  = 64 << 20  // larger files are not searched
	block    = 256 << 10 // of a file that is searched at once; of a longer line, the beginning
)

// scanner searches files, one after another. It is for one goroutine.
type scanner struct {
	search *linesearch.Searcher
	mode   string
	most   int // results that are worth having
	buf    []byte
	out    []byte // a result that is being made
}

func newScanner(p *linesearch.Pattern, mode string, most int) *scanner {
	return &scanner{search: p.Searcher(), mode: mode, most: most, buf: make([]byte, block)}
}

// file appends the results of a file. Files that can not be read are skipped: they may be
// gone, or not ours; so are large and binary ones. follow says that it may be a link. The
// error is that of a ctx that ended.
func (s *scanner) file(ctx context.Context, found []string, path string, follow bool) ([]string, error) {
	f, size, ok := openFile(path, follow)
	if !ok {
		return found, nil
	}
	defer f.close()
	if size > maxFile {
		return found, nil
	}
	in := scan{scanner: s, path: path, found: found}
	have, total := 0, int64(0) // bytes in the buffer, and read
	for {
		n := f.read(s.buf[have:])
		have += n
		if total == 0 && workspace.IsBinary(s.buf[:have]) {
			return found, nil
		}
		total += int64(n)
		// What is added meanwhile is not waited for. Some files have no size.
		end := n == 0 || total == size
		rest := in.block(s.buf[:have], end)
		switch {
		case end && s.mode == modeCount && in.count > 0:
			return append(in.found, fmt.Sprintf("%s:%d", path, in.count)), nil
		case end || in.done:
			return in.found, nil
		case ctx.Err() != nil:
			return found, ctx.Err()
		}
		have = copy(s.buf, rest)
	}
}

// scan is the search of one file.
type scan struct {
	*scanner
	path  string
	found []string
	line  int // how many lines are before what is searched next; only for modeContent
	count int // matching lines
	skip  bool
	done  bool // nothing more is of interest
}

// block searches what is in the buffer, as far as lines are whole, and returns the rest.
func (s *scan) block(text []byte, end bool) (rest []byte) {
	if s.skip { // the rest of a line whose beginning was searched
		i := bytes.IndexByte(text, '\n')
		if i < 0 {
			return nil
		}
		text, s.skip = text[i+1:], false
		s.line++
	}
	whole := len(text)
	if !end {
		if whole = bytes.LastIndexByte(text, '\n') + 1; whole == 0 && len(text) == len(s.buf) {
			whole, s.skip = len(text), true
		}
	}
	s.search.Start(text[:whole])
	counted := 0 // lines before it are in s.line
	for at := 0; ; {
		start, stop, after, ok := s.search.Next(at)
		if !ok {
			break
		}
		s.count++
		at = after
		switch s.mode {
		case modeFiles:
			s.found, s.done = append(s.found, s.path), true
			return nil
		case modeContent:
			s.line += bytes.Count(text[counted:start], []byte("\n"))
			counted = start
			s.found = append(s.found, s.result(text[start:stop]))
			if s.done = len(s.found) >= s.most; s.done {
				return nil
			}
		}
	}
	if s.mode == modeContent && !end {
		s.line += bytes.Count(text[counted:whole], []byte("\n"))
	}
	return text[whole:]
}

// result is a line as it is shown.
func (s *scan) result(line []byte) string {
	s.out = append(append(s.out[:0], s.path...), ':')
	s.out = append(strconv.AppendInt(s.out, int64(s.line)+1, 10), ':')
	if len(line) <= maxShown {
		return string(append(s.out, line...))
	}
	return string(s.out) + strings.ToValidUTF8(string(line[:maxShown]), "") + "…"
}
