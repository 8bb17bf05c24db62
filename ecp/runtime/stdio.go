package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/internal/lineproc"
	"github.com/seed-dec29ce4/eca/internal/proc"
)

const (
	// maxLine limits the size of an answer, in bytes.
	maxLine = 64 << 20
	// maxOutput limits what an agent prints to stdout in total, in bytes, without blank lines and the
	// blanks around lines.
	maxOutput = 256 << 20
	// stopGrace is how long an agent may take to end after its input ended.
	stopGrace = 2 * time.Second
)

// stdio is a conn to a child process: one JSON object per line, both ways.
type stdio struct {
	proc        *lineproc.Process
	tail        lineproc.Tail
	strayOutput strayOutput
	outputBytes int         // what counts toward maxOutput; owned by the reader
	answers     chan []byte // objects that may be answers
}

// shell returns the command that runs a command line.
func shell(line string) proc.Spec {
	if goruntime.GOOS == "windows" {
		return proc.Spec{Path: "cmd.exe", Args: []string{"/c", line}}
	}
	return proc.Spec{Path: "/bin/sh", Args: []string{"-c", line}}
}

// startStdio starts an agent.
func startStdio(spec proc.Spec, pool *proc.Pool) (*stdio, error) {
	c := &stdio{answers: make(chan []byte)}
	spec.Stderr = &c.tail
	var err error
	if c.proc, err = lineproc.Start(pool, spec, c.options()); err != nil {
		return nil, callError(kindStart, "start", "the agent could not be started: %v", err)
	}
	return c, nil
}

func (c *stdio) options() lineproc.Options {
	return lineproc.Options{
		Limit: maxLine, TooLong: fmt.Errorf("the agent sent a line of more than %d MiB", maxLine>>20),
		Grace: stopGrace, Line: c.handleLine, ExitError: c.exitError,
	}
}

func (c *stdio) notes() []string { return c.strayOutput.list() }

func (c *stdio) stderr() string { return c.tail.String() }

// handleLine handles a line that the agent printed: it passes on objects that may be answers, records other
// output as stray, and enforces maxOutput.
func (c *stdio) handleLine(ended <-chan struct{}, line []byte, incomplete bool) error {
	c.outputBytes += len(line)
	switch {
	case incomplete:
		c.strayOutput.add("output without a line end", line)
	case line[0] != '{' || !json.Valid(line) && !meantAsAnswer(line):
		c.strayOutput.add("output that is not a JSON object", line)
	default:
		select {
		case c.answers <- bytes.Clone(line):
		case <-ended:
		}
	}
	if c.outputBytes > maxOutput {
		return fmt.Errorf("the agent printed more than %d MiB", maxOutput>>20)
	}
	return nil
}

// meantAsAnswer reports whether a line looks like an answer although it is invalid JSON, so that the
// caller need not wait for another one. Python, for example, writes NaN, which JSON does not have.
func meantAsAnswer(line []byte) bool {
	return bytes.HasSuffix(line, []byte("}")) && bytes.Contains(line, []byte(`"jsonrpc"`)) &&
		(bytes.Contains(line, []byte(`"result"`)) || bytes.Contains(line, []byte(`"error"`)))
}

// exitError describes how the agent ended.
func (c *stdio) exitError(exit *proc.Exit) error {
	text := "the agent " + lineproc.Describe(exit)
	if last := c.lastLines(); exit != nil && last != "" {
		text += ": " + last
	}
	return errors.New(text)
}

// exchange implements conn.
func (c *stdio) exchange(ctx context.Context, method string, message, id []byte) (ecp.Response, error) {
	frame := append(message[:len(message):len(message)], '\n')
	frames := c.proc.Frames()
	for {
		select {
		case frames <- frame:
			frames = nil
			if id == nil {
				return ecp.Response{}, nil
			}
		case raw := <-c.answers:
			r, isAnswer, err := c.parseAnswer(raw, id)
			if !isAnswer {
				continue
			}
			if err != nil {
				return r, callError(kindProtocol, method, "%v", err)
			}
			return r, nil
		case <-c.proc.Ended():
			return ecp.Response{}, callError(kindExit, method, "%v%s", c.proc.Cause(), c.strayOutput.suffix())
		case <-ctx.Done():
			return ecp.Response{}, c.timeoutError(ctx, method)
		}
	}
}

// parseAnswer checks an object that may be the answer.
func (c *stdio) parseAnswer(raw, id []byte) (r ecp.Response, isAnswer bool, err error) {
	if !json.Valid(raw) {
		return r, true, fmt.Errorf("the answer is invalid JSON: %s", describeJSONError(raw))
	}
	return matchAnswer(raw, id, &c.strayOutput)
}

// describeJSONError describes a JSON error, with the text around it.
func describeJSONError(raw []byte) string {
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

// timeoutError returns the error of a call whose ctx ended.
func (c *stdio) timeoutError(ctx context.Context, method string) error {
	text := "no answer within the time limit" + c.strayOutput.suffix()
	if last := c.lastLines(); last != "" {
		text += "; its stderr ends: " + last
	}
	return stoppedError(ctx, method, text)
}

// close implements conn.
func (c *stdio) close(now bool) { c.proc.Close(now) }

// lastLines returns the last lines of stderr, for a message.
func (c *stdio) lastLines() string {
	lines := strings.Split(c.tail.String(), "\n")
	return clip(strings.Join(lines[max(0, len(lines)-3):], " "), maxShown)
}
