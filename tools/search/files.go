package search

import (
	"bytes"
	"context"
	"strconv"

	"github.com/seed-dec29ce4/eca/internal/linesearch"
	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/workspace"
)

const (
	maxShown  = 500       // bytes shown of a matching line
	maxFile   = 64 << 20  // larger files are not searched
	blockSize = 256 << 10 // how much of a file, or of a longer line, is searched at a time
)

// results are result lines in one buffer.
type results struct {
	text []byte
	ends []int // end of each line in text
}

// add appends the path of a file. The caller may append to it and must then call end.
func (r *results) add(path string) { r.text = append(r.text, path...) }

func (r *results) number(n int) { r.text = strconv.AppendInt(append(r.text, ':'), int64(n), 10) }

func (r *results) end() {
	r.text = append(r.text, '\n')
	r.ends = append(r.ends, len(r.text))
}

// first returns at most the given number of lines.
func (r *results) first(limit int) []byte {
	if limit >= len(r.ends) {
		return r.text
	}
	if limit == 0 {
		return nil
	}
	return r.text[:r.ends[limit-1]]
}

// scanner searches files one after another. It is not safe for concurrent use.
type scanner struct {
	search         *linesearch.Searcher
	mode           string
	limit          int // how many results are needed
	buf            []byte
	lastBatchBytes int // bytes of the last batch's results
}

func newScanner(p *linesearch.Pattern, mode string, limit int) *scanner {
	return &scanner{search: p.Searcher(), mode: mode, limit: limit, buf: make([]byte, blockSize)}
}

// file adds the results of a file. It skips files that cannot be read, are too large or are binary.
// follow means that path may be a symlink. The error is that of ctx.
func (s *scanner) file(ctx context.Context, found *results, path string, follow bool) error {
	f, size, ok := openFile(path, follow)
	if !ok {
		return nil
	}
	defer f.close()
	if size > maxFile {
		return nil
	}
	in := scan{scanner: s, path: visible.Name(path), results: found}
	have, total := 0, int64(0) // bytes in the buffer, and bytes read
	for {
		n := f.read(s.buf[have:])
		have += n
		if total == 0 && workspace.IsBinary(s.buf[:have]) {
			return nil
		}
		total += int64(n)
		// Do not wait for data that is being appended. Some files report no size.
		end := n == 0 || total == size
		rest := in.block(s.buf[:have], end)
		switch {
		case in.done:
			return nil
		case end:
			if s.mode == modeCount && in.count > 0 {
				found.add(in.path)
				found.number(in.count)
				found.end()
			}
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		have = copy(s.buf, rest)
	}
}

// scan is the search of one file.
type scan struct {
	*scanner
	path     string // as it is shown
	results  *results
	line     int // number of lines before the current block; only for modeContent
	count    int // matching lines
	skipLine bool
	done     bool // further results are not needed
}

// block searches the complete lines in the buffer, and returns the rest.
func (s *scan) block(text []byte, end bool) (rest []byte) {
	if s.skipLine { // the rest of a line whose beginning was already searched
		i := bytes.IndexByte(text, '\n')
		if i < 0 {
			return nil
		}
		text, s.skipLine = text[i+1:], false
		s.line++
	}
	whole := len(text)
	if !end {
		if whole = bytes.LastIndexByte(text, '\n') + 1; whole == 0 && len(text) == len(s.buf) {
			whole, s.skipLine = len(text), true
		}
	}
	s.search.Start(text[:whole])
	counted := 0 // lines before this offset are included in s.line
	for at := 0; ; {
		place, after, ok := s.search.Next(at)
		if !ok {
			break
		}
		s.count++
		at = after
		switch s.mode {
		case modeFiles:
			s.results.add(s.path)
			s.results.end()
			s.done = true
			return nil
		case modeContent:
			start, stop := s.search.Line(place)
			s.line += bytes.Count(text[counted:start], []byte("\n"))
			counted = start
			s.show(text[start:stop])
			if s.done = len(s.results.ends) >= s.limit; s.done {
				return nil
			}
		}
	}
	if s.mode == modeContent && !end {
		s.line += bytes.Count(text[counted:whole], []byte("\n"))
	}
	return text[whole:]
}

// show adds a line to the results.
func (s *scan) show(line []byte) {
	r := s.results
	r.add(s.path)
	r.number(s.line + 1)
	r.text = append(r.text, ':')
	if len(line) <= maxShown {
		r.text = append(r.text, line...)
	} else {
		r.text = append(append(r.text, bytes.ToValidUTF8(line[:maxShown], nil)...), "…"...)
	}
	r.end()
}
