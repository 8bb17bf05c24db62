package jsonrpc

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/internal/lines"
	"github.com/seed-dec29ce4/eca/internal/shorten"
)

// Limits for incoming data. A header block has a few dozen bytes in practice; a body can hold
// images as base64.
const (
	maxHeaderLine   = 8 << 10
	DefaultMaxFrame = 64 << 20
	maxSkippedFrame = 1 << 30 // bytes of the largest body that is skipped
)

// Codec separates the messages of a stream.
type Codec interface {
	// Next returns the next message; the caller may keep it. An *Error has to be sent to the peer,
	// and the following message can still be read.
	Next() ([]byte, error)
	// Frame returns a message in its written form.
	Frame(body []byte) []byte
}

// Lines is a Codec that has each message on its own line.
func Lines(r io.Reader, limit int) Codec {
	return lineCodec{lines.NewReader(r, limit, Errorf(CodeInvalidRequest, "the line is longer than %d MiB", limit>>20))}
}

type lineCodec struct{ r *lines.Reader }

func (l lineCodec) Next() ([]byte, error) {
	line, err := l.r.NextMessage()
	return bytes.Clone(line), err
}

func (lineCodec) Frame(body []byte) []byte { return append(body, '\n') }

// ContentLength is the Codec of editors: each message follows a header with its length.
func ContentLength(r io.Reader, limit int) Codec { return newFrameReader(r, limit) }

// frameReader cuts a byte stream into JSON bodies.
type frameReader struct {
	src *source
	r   *bufio.Reader // reads src
	max int

	onStray       func(string) // gets the first line that is not part of a frame; may be nil
	strayReported bool         // since the last frame, onStray was called, or a frame was invalid
}

// source is a reader with bytes put back before it.
type source struct {
	putBack []byte
	r       io.Reader
}

func (s *source) Read(p []byte) (int, error) {
	if len(s.putBack) > 0 {
		n := copy(p, s.putBack)
		s.putBack = s.putBack[n:]
		return n, nil
	}
	return s.r.Read(p)
}

func newFrameReader(r io.Reader, max int) *frameReader {
	src, size := &source{r: r}, 64<<10
	if _, inProcess := r.(*io.PipeReader); inProcess {
		size = 4 << 10 // reading from a pipe in this process needs no system call, and there are many such connections
	}
	return &frameReader{src: src, r: bufio.NewReaderSize(src, size), max: max}
}

// Frame implements Codec.
func (f *frameReader) Frame(body []byte) []byte {
	out := append(make([]byte, 0, len(body)+32), "Content-Length: "...)
	out = append(strconv.AppendInt(out, int64(len(body)), 10), "\r\n\r\n"...)
	return append(out, body...)
}

// Next implements Codec.
func (f *frameReader) Next() ([]byte, error) {
	length, err := f.header()
	if err != nil {
		return nil, err
	}
	f.strayReported = false
	if length > maxSkippedFrame {
		return nil, Errorf(CodeInvalidRequest, "Content-Length %d cannot be meant", length)
	}
	if length > f.max {
		if n, err := io.CopyN(io.Discard, f.r, int64(length)); err != nil {
			return nil, eofInBody(err, n, length)
		}
		return nil, Errorf(CodeInvalidRequest, "message of %d bytes is over the limit of %d", length, f.max)
	}
	body, err := f.body(length)
	if err != nil {
		return nil, err
	}
	if err := checkBody(body); err != nil {
		f.strayReported = true // what follows may be the rest of the body
		f.putBackNextFrame(body)
		return nil, err
	}
	return body, nil
}

// body reads a body of length bytes. A large one is grown as its bytes arrive: a declared length alone
// must cost nothing.
func (f *frameReader) body(length int) ([]byte, error) {
	const small = 4 << 10
	if length <= small {
		body := make([]byte, length)
		n, err := io.ReadFull(f.r, body)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		if err != nil {
			return nil, eofInBody(err, int64(n), length)
		}
		return bytes.TrimSpace(body), nil
	}
	var buf bytes.Buffer
	if n, err := io.CopyN(&buf, f.r, int64(length)); err != nil {
		return nil, eofInBody(err, n, length)
	}
	return bytes.TrimSpace(buf.Bytes()), nil
}

// eofInBody is the error for the end of the input in a body. Other errors stay the same.
func eofInBody(err error, read int64, length int) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w after %d of the %d bytes of a message", io.ErrUnexpectedEOF, read, length)
	}
	return err
}

// header reads header lines up to the blank line and returns the body length.
// It skips lines that are not headers; this also finds the next frame after a body with a wrong
// length.
func (f *frameReader) header() (int, error) {
	length, hasLength := 0, false
	var bad error
	skipped := "" // the first line since the last blank one, before any Content-Length
	for {
		line, err := f.line()
		if err != nil {
			return 0, f.eofInHeader(err, hasLength, skipped, line)
		}
		if line == "" {
			if bad != nil {
				f.strayReported = true // what follows is probably the body
				return 0, bad
			}
			if hasLength {
				return length, nil
			}
			f.reportStray(skipped)
			skipped = ""
			continue
		}
		// If the declared length of a body was too short, the line begins with the body's tail;
		// only the header counts.
		if i := indexFold(line, "content-length:"); i >= 0 {
			value := strings.TrimSpace(line[i+len("content-length:"):])
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 {
				bad = Errorf(CodeInvalidRequest, "bad Content-Length %q", shorten.Bytes(value, 40))
				continue
			}
			length, hasLength, bad = n, true, nil
			continue
		}
		if !hasLength {
			if skipped = cmp.Or(skipped, line); !isHeader(line) {
				f.reportStray(skipped)
			}
			continue
		}
		if name, value, ok := strings.Cut(line, ":"); ok && strings.EqualFold(strings.TrimSpace(name), "content-type") {
			if cs := charset(value); cs != "" && cs != "utf-8" && cs != "utf8" {
				bad = Errorf(CodeInvalidRequest, "unsupported charset %q", shorten.Bytes(cs, 40))
			}
		}
	}
}

// reportStray names a line that is not part of a frame, unless one was named since the last frame.
func (f *frameReader) reportStray(line string) {
	if line != "" && !f.strayReported && f.onStray != nil {
		f.onStray(line)
		f.strayReported = true
	}
}

// eofInHeader is the error for the end of the input outside a body. hasLength says whether there
// was a Content-Length, skipped is the first line before it, and line is the unfinished line.
func (f *frameReader) eofInHeader(err error, hasLength bool, skipped, line string) error {
	switch {
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case hasLength, isHeader(line):
		return fmt.Errorf("%w in the header of a message", io.ErrUnexpectedEOF)
	}
	f.reportStray(cmp.Or(skipped, line))
	return io.EOF
}

// isHeader reports whether a line is a header, or the beginning of one.
func isHeader(line string) bool {
	name, _, _ := strings.Cut(line, ":")
	letter := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
	return name != "" && name[0] != '-' && strings.IndexFunc(name, func(r rune) bool { return !letter(r) && r != '-' }) < 0
}

// line reads one header line without its line end. Of an overlong line, it returns only the last part.
func (f *frameReader) line() (string, error) {
	var out []byte
	for {
		chunk, err := f.r.ReadSlice('\n')
		if len(out) < maxHeaderLine {
			out = append(out, chunk...)
		} else if len(chunk) > 0 {
			// Keep the end of the line: garbage may precede a header on it.
			out = append(out[:0], chunk...)
		}
		if err == nil {
			return strings.TrimRight(string(out), "\r\n"), nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return strings.TrimSpace(string(out)), err
	}
}

// putBackNextFrame puts back the beginning of the next frame if the declared length of an invalid body was
// too long and included it.
func (f *frameReader) putBackNextFrame(body []byte) {
	rest := -1
	dec := json.NewDecoder(bytes.NewReader(body))
	var value json.RawMessage
	if dec.Decode(&value) == nil {
		rest = int(dec.InputOffset())
	} else if i := indexFold(string(body), "content-length:"); i > 0 {
		rest = i
	}
	if rest > 0 && rest < len(body) {
		buffered, _ := f.r.Peek(f.r.Buffered())
		f.src.putBack = slices.Concat(body[rest:], buffered, f.src.putBack)
		f.r.Reset(f.src)
	}
}

// checkBody reports a body that is not a JSON object or array in UTF-8.
func checkBody(body []byte) error {
	switch {
	case len(body) == 0:
		return Errorf(CodeInvalidRequest, "empty message")
	case !utf8.Valid(body):
		return Errorf(CodeParse, "message is not valid UTF-8")
	case !json.Valid(body):
		return Errorf(CodeParse, "message is not valid JSON, or nested too deeply")
	case body[0] != '{' && body[0] != '[':
		return Errorf(CodeInvalidRequest, "message is neither a JSON object nor a batch")
	}
	return nil
}

func charset(contentType string) string {
	_, params, ok := strings.Cut(strings.ToLower(contentType), "charset")
	if !ok {
		return ""
	}
	return strings.Trim(strings.TrimLeft(params, " ="), " \"';")
}

func indexFold(s, lower string) int {
	for i := 0; i+len(lower) <= len(s); i++ {
		if (s[i] == 'c' || s[i] == 'C') && strings.EqualFold(s[i:i+len(lower)], lower) {
			return i
		}
	}
	return -1
}
