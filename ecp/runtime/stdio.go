package runtime

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/internal/proc"
)

const (
	// maxLine bounds an answer, in bytes.
	maxLine = 64 << 20
	// maxNoise bounds what an agent may print beside its answers, in bytes.
	maxNoise = 256 << 20
	// stopGrace is how long an agent may take to end when its input ends.
	stopGrace = 2 * time.Second
	// exitGrace is how long the end of an agent's output and its own may be apart. On a busy
	// machine that is long: what it said last must not be missed.
	exitGrace = 3 * time.Second
)

// stdio is a conn to a child process: one JSON object in a line, both ways.
type stdio struct {
	child proc.Child
	in    *os.File // ours to write to
	out   io.ReadCloser
	errs  *os.File
	tail  *tail
	noise noise

	frames  chan []byte // to the writer
	answers chan []byte // objects that may be answers
	ended   chan struct{}
	told    chan struct{} // closed when stderr has ended
	quit    chan struct{} // closed by close
	work    sync.WaitGroup

	mu    sync.Mutex // guards cause
	cause error      // why nothing more comes; set before ended is closed
}

// shell returns how a command line is run.
func shell(line string) proc.Spec {
	if goruntime.GOOS == "windows" {
		return proc.Spec{Path: "cmd.exe", Args: []string{"/c", line}}
	}
	return proc.Spec{Path: "/bin/sh", Args: []string{"-c", line}}
}

// startStdio starts an agent; its streams are added to spec.
func startStdio(spec proc.Spec, pool *proc.Pool) (*stdio, error) {
	var theirs, ours [3]*os.File
	for i := range theirs {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(theirs[:i], ours[:i])
			return nil, callError(kindStart, "start", "%v", err)
		}
		if theirs[i], ours[i] = w, r; i == 0 {
			theirs[i], ours[i] = r, w
		}
	}
	c := &stdio{in: ours[0], out: ours[1], errs: ours[2], tail: &tail{}, frames: make(chan []byte), answers: make(chan []byte), ended: make(chan struct{}), told: make(chan struct{}), quit: make(chan struct{})}
	spec.Stdin, spec.Stdout, spec.Stderr = theirs[0], theirs[1], theirs[2]
	var err error
	c.child, err = pool.Start(spec)
	closeAll(theirs[:])
	if err != nil {
		closeAll(ours[:])
		return nil, callError(kindStart, "start", "the agent could not be started: %v", err)
	}
	c.work.Go(func() {
		defer close(c.told)
		_, _ = io.Copy(c.tail, c.errs)
	})
	c.work.Go(c.write)
	c.work.Go(c.read)
	return c, nil
}

func closeAll(lists ...[]*os.File) {
	for _, f := range slices.Concat(lists...) {
		_ = f.Close()
	}
}

func (c *stdio) notes() []string { return c.noise.list() }

func (c *stdio) stderr() string { return c.tail.String() }

// write is the only one to write to the agent, so that one that does not read holds up
// nobody who waits with a limit.
func (c *stdio) write() {
	for {
		select {
		case frame := <-c.frames:
			if _, err := c.in.Write(frame); err != nil {
				return // the reader knows better why
			}
		case <-c.quit:
			return
		}
	}
}

// read sorts what the agent prints until it ends.
func (c *stdio) read() {
	err := c.readLines()
	if err == nil {
		err = c.farewell()
	}
	c.mu.Lock()
	c.cause = err
	c.mu.Unlock()
	close(c.ended)
}

func (c *stdio) readLines() error {
	r := bufio.NewReaderSize(c.out, 64<<10)
	junk := 0
	for {
		line, err := readLine(r)
		if errors.Is(err, errLongLine) {
			return fmt.Errorf("the agent sent a line of more than %d MiB", maxLine>>20)
		}
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
		case err != nil: // a line without its end is none
			c.noise.add("output without a line's end", line)
		case line[0] != '{' || !json.Valid(line) && !meantAsAnswer(line):
			c.noise.add("output that is no JSON object", line)
			junk += len(line)
		default:
			select {
			case c.answers <- line:
			case <-c.quit:
				return nil
			}
			junk += len(line)
		}
		if err != nil {
			return nil //nolint:nilerr // the end of its output, in whatever way
		}
		if junk > maxNoise {
			return fmt.Errorf("the agent printed more than %d MiB that answer nothing", maxNoise>>20)
		}
	}
}

// meantAsAnswer says whether a line that is no JSON is an answer all the same, so that
// nobody need wait for another: Python, for one, writes NaN, which JSON does not have.
func meantAsAnswer(line []byte) bool {
	return bytes.HasSuffix(line, []byte("}")) && bytes.Contains(line, []byte(`"jsonrpc"`)) &&
		(bytes.Contains(line, []byte(`"result"`)) || bytes.Contains(line, []byte(`"error"`)))
}

var errLongLine = errors.New("line too long")

// readLine reads a line of at most maxLine; it is the caller's to keep.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, errLongLine
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// farewell says how the agent ended, when its output has.
func (c *stdio) farewell() error {
	if !within(c.child.Done(), exitGrace) {
		return errors.New("the agent closed its output")
	}
	within(c.told, exitGrace) // its last words
	text := fmt.Sprintf("the agent ended with exit code %d", c.child.Wait().Code)
	if c.child.Wait().Code < 0 {
		text = "the agent was killed"
	}
	if last := c.tail.last(); last != "" {
		text += ": " + last
	}
	return errors.New(text)
}

// within waits a while for something to end.
func within(end <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-end:
		return true
	case <-timer.C:
		return false
	}
}

// exchange implements conn.
func (c *stdio) exchange(ctx context.Context, method string, message, id []byte) (ecp.Response, error) {
	frame := append(message[:len(message):len(message)], '\n')
	frames, gone := c.frames, c.child.Done()
	var late <-chan time.Time
	for {
		select {
		case frames <- frame:
			frames = nil
			if id == nil {
				return ecp.Response{}, nil
			}
		case raw := <-c.answers:
			r, mine, err := c.answer(raw, id)
			if !mine {
				continue
			}
			if err != nil {
				return r, callError(kindProtocol, method, "%v", err)
			}
			return r, nil
		case <-c.ended:
			c.mu.Lock()
			defer c.mu.Unlock()
			return ecp.Response{}, callError(kindExit, method, "%v%s", c.cause, c.noise.said())
		case <-gone: // somebody else may have its output open
			gone, late = nil, time.After(exitGrace)
		case <-late:
			return ecp.Response{}, callError(kindExit, method, "%v%s", c.farewell(), c.noise.said())
		case <-ctx.Done():
			return ecp.Response{}, c.expired(ctx, method)
		}
	}
}

// answer sorts an object out.
func (c *stdio) answer(raw, id []byte) (r ecp.Response, mine bool, err error) {
	if !json.Valid(raw) {
		return r, true, fmt.Errorf("the answer is invalid JSON: %s", whyNoJSON(raw))
	}
	return c.noise.match(raw, id)
}

// whyNoJSON says what is wrong, and shows the place.
func whyNoJSON(raw []byte) string {
	var v any
	err := json.Unmarshal(raw, &v)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return fmt.Sprint(err)
	}
	const around = 40
	at := int(syntax.Offset)
	part := raw[max(0, at-around):min(len(raw), at+around)]
	return fmt.Sprintf("%v, in %s", err, clip(string(part), maxShown))
}

// expired says that time is up.
func (c *stdio) expired(ctx context.Context, method string) error {
	text := "no answer within the time limit" + c.noise.said()
	if last := c.tail.last(); last != "" {
		text += "; its stderr ends: " + last
	}
	return stopped(ctx, method, text)
}

// close implements conn: the agent's input ends, then it is asked to end, then killed, with
// all that it started.
func (c *stdio) close(now bool) {
	close(c.quit)
	_ = c.in.Close()
	if now || !within(c.child.Done(), stopGrace) {
		c.child.Kill()
	}
	_, _ = c.out.Close(), c.errs.Close() // somebody else may still hold their other ends
	c.work.Wait()
}

// tailSize bounds what is kept of an agent's stderr, in bytes.
const tailSize = 16 << 10

// tail takes whatever is written and keeps the end.
type tail struct {
	mu   sync.Mutex // guards data
	data []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	if n > tailSize {
		p = p[n-tailSize:]
	}
	t.data = append(t.data, p...)
	if len(t.data) > 2*tailSize {
		t.data = append(t.data[:0], t.data[len(t.data)-tailSize:]...)
	}
	return n, nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	data := t.data
	if len(data) > tailSize {
		data = data[len(data)-tailSize:]
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(data), "\uFFFD"))
}

// last returns the last lines, for a message.
func (t *tail) last() string {
	lines := strings.Split(t.String(), "\n")
	return clip(strings.Join(lines[max(0, len(lines)-3):], " "), maxShown)
}
