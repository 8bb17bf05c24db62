package config

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// CommandTime is how long a ${cmd:...} may run (eca-features.md 3.2).
const CommandTime = 30 * time.Second

// retryCommands is how long after its end a failed command may run again.
const retryCommands = 10 * time.Second

// Commands runs ${cmd:...} of configurations. Each command runs once until the text that contains
// it changes, even if other files are loaded again in the meantime. A failed command runs again
// with a load after retryCommands, so that a user who unlocks a password store does not have to edit
// a file. A command that exceeded its time limit does not.
//
// Loading waits only briefly for commands. A slower command keeps running up to the time limit, and
// Finished signals when to load again. Until then its value is the previous one, or empty.
type Commands struct {
	run      func(ctx context.Context, command string) (string, error)
	limit    time.Duration // of each command
	ctx      context.Context
	cancel   context.CancelFunc
	finished chan struct{}
	running  sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	sources map[string]*commandSource
}

// commandSource is a text that contains commands.
type commandSource struct {
	text            string
	commands        map[string]*commandRun
	previousOutputs map[string]string // the output of commands of the previous text
}

// commandRun is a command that is running or has run.
type commandRun struct {
	done      chan struct{}
	value     string // like err, valid when done is closed
	err       error
	timedOut  bool      // it exceeded the time limit and does not run again
	end       time.Time // when it ended
	signalEnd bool      // a load ended before the command did, so Finished must signal its end; guarded by Commands.mu
}

// NewCommands returns a Commands that runs commands with the given function, each for at most limit.
// The function must end when its context does. Close must be called.
func NewCommands(run func(ctx context.Context, command string) (string, error), limit time.Duration) *Commands {
	ctx, cancel := context.WithCancel(context.Background())
	return &Commands{run: run, limit: limit, ctx: ctx, cancel: cancel, finished: make(chan struct{}, 1), sources: map[string]*commandSource{}}
}

// Close stops the running commands and waits until they have ended.
func (c *Commands) Close() {
	c.cancel()
	c.running.Wait()
}

// Finished delivers a value when a command ends that was still running at the end of a load.
func (c *Commands) Finished() <-chan struct{} { return c.finished }

// Wait waits until no command is running, or ctx ends.
func (c *Commands) Wait(ctx context.Context) {
	for _, r := range c.unfinished() {
		select {
		case <-r.done:
		case <-ctx.Done():
			return
		}
	}
}

// waitAtMost waits for running commands, but at most for limit.
func (c *Commands) waitAtMost(limit time.Duration) {
	ctx, cancel := context.WithTimeout(c.ctx, limit)
	defer cancel()
	c.Wait(ctx)
}

func (c *Commands) unfinished() []*commandRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*commandRun
	for _, s := range c.sources {
		for _, r := range s.commands {
			if !r.ended() {
				out = append(out, r)
			}
		}
	}
	return out
}

// begin is called when the load of a text begins. If the text has changed, all its commands run again;
// otherwise those that failed do so after retryCommands.
func (c *Commands) begin(source, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sources[source]
	if s == nil || s.text != text {
		previous := map[string]string{}
		if s != nil {
			previous = s.values()
		}
		c.sources[source] = &commandSource{text: text, commands: map[string]*commandRun{}, previousOutputs: previous}
		return
	}
	for command, r := range s.commands {
		if r.ended() && r.err != nil && !r.timedOut && time.Since(r.end) >= retryCommands {
			delete(s.commands, command)
		}
	}
}

// values returns the known outputs, by command.
func (s *commandSource) values() map[string]string {
	out := map[string]string{}
	for command, r := range s.commands {
		if r.ended() && r.err == nil {
			out[command] = r.value
		}
	}
	return out
}

func (r *commandRun) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// get returns the output of a command in a text, and starts the command if it has not run for that
// text. While the command runs, running is true and value is the output of the same command in the
// previous text. last means that the load will not ask again; Finished then signals the end of the
// command.
func (c *Commands) get(source, command string, last bool) (value string, running bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sources[source]
	if s == nil || c.ctx.Err() != nil {
		return "", false, errors.New("eca no longer runs commands")
	}
	r := s.commands[command]
	if r == nil {
		r = &commandRun{done: make(chan struct{})}
		s.commands[command] = r
		c.running.Go(func() { c.execute(r, command) })
	}
	if r.ended() {
		return r.value, false, r.err
	}
	r.signalEnd = r.signalEnd || last
	return s.previousOutputs[command], true, nil
}

func (c *Commands) execute(r *commandRun, command string) {
	ctx, cancel := context.WithTimeout(c.ctx, c.limit)
	defer cancel()
	r.value, r.err = c.run(ctx, command)
	if ctx.Err() == context.DeadlineExceeded { //nolint:errorlint // never wrapped
		r.value, r.timedOut = "", true
		r.err = fmt.Errorf("the command did not end within %s; run it in a terminal to see what it waits for. If it needs longer, run it before eca, and use ${env:NAME} with a variable that has its output", c.limit)
	}
	r.end = time.Now()
	close(r.done)
	c.mu.Lock()
	signalEnd := r.signalEnd
	c.mu.Unlock()
	if signalEnd {
		select {
		case c.finished <- struct{}{}:
		default:
		}
	}
}

// secrets lists the outputs of commands.
func (c *Commands) secrets() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, s := range c.sources {
		for _, values := range []map[string]string{s.previousOutputs, s.values()} {
			for _, v := range values {
				out = append(out, v)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
