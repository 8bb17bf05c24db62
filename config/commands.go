package config

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// CommandTime is how long a ${cmd:...} may run (eca-features 3.2).
const CommandTime = 30 * time.Second

// Commands runs the ${cmd:...} of configurations, each once until the text it stands in
// changes, whatever else is loaded again meanwhile. One that failed runs again with the
// next load: whoever unlocks a password store should not have to edit a file.
//
// Loading waits for commands only for a moment. What takes longer goes on, for at most
// CommandTime, and Finished tells when to load again; until then its value is the one from
// before, or empty.
type Commands struct {
	run      func(ctx context.Context, command string) (string, error)
	ctx      context.Context
	cancel   context.CancelFunc
	finished chan struct{}
	running  sync.WaitGroup

	mu      sync.Mutex // guards what follows
	sources map[string]*commandSource
}

// commandSource is a text with commands.
type commandSource struct {
	text     string
	commands map[string]*commandRun
	before   map[string]string // what commands of the text before this one printed
}

// commandRun is a command that runs or ran.
type commandRun struct {
	done  chan struct{}
	value string // valid when done is closed, as err is
	err   error
	late  bool // a load did not wait for it; guarded by Commands.mu
}

// NewCommands returns a memory of commands that has them run by a function, which must end
// when its context does. Close must be called.
func NewCommands(run func(ctx context.Context, command string) (string, error)) *Commands {
	ctx, cancel := context.WithCancel(context.Background())
	return &Commands{run: run, ctx: ctx, cancel: cancel, finished: make(chan struct{}, 1), sources: map[string]*commandSource{}}
}

// Close stops what runs and waits for its end.
func (c *Commands) Close() {
	c.cancel()
	c.running.Wait()
}

// Finished delivers a value when a command ended that a load did not wait for.
func (c *Commands) Finished() <-chan struct{} { return c.finished }

// Wait waits until nothing runs, or ctx ends.
func (c *Commands) Wait(ctx context.Context) {
	for _, r := range c.unfinished() {
		select {
		case <-r.done:
		case <-ctx.Done():
			return
		}
	}
}

// settle waits for what runs, but for at most the given time.
func (c *Commands) settle(patience time.Duration) {
	ctx, cancel := context.WithTimeout(c.ctx, patience)
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

// begin tells that a text is being loaded: what failed in it may run again.
func (c *Commands) begin(source, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sources[source]
	if s == nil || s.text != text {
		before := map[string]string{}
		if s != nil {
			before = s.values()
		}
		c.sources[source] = &commandSource{text: text, commands: map[string]*commandRun{}, before: before}
		return
	}
	for command, r := range s.commands {
		if r.ended() && r.err != nil {
			delete(s.commands, command)
		}
	}
}

// values returns what is known of commands, by command.
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

// get returns what a command in a text printed; it is started if it has not run for that
// text. While it runs, the value is that of before, and if the caller will not ask again,
// Finished tells of its end.
func (c *Commands) get(source, command string, last bool) (value string, runs bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sources[source]
	if s == nil || c.ctx.Err() != nil {
		return "", false, errors.New("commands are not run any more")
	}
	r := s.commands[command]
	if r == nil {
		r = &commandRun{done: make(chan struct{})}
		s.commands[command] = r
		c.running.Go(func() { c.do(r, command) })
	}
	if r.ended() {
		return r.value, false, r.err
	}
	r.late = r.late || last
	return s.before[command], true, nil
}

func (c *Commands) do(r *commandRun, command string) {
	ctx, cancel := context.WithTimeout(c.ctx, CommandTime)
	defer cancel()
	r.value, r.err = c.run(ctx, command)
	if ctx.Err() == context.DeadlineExceeded { //nolint:errorlint // never wrapped
		r.value, r.err = "", errors.New("the command did not end within "+CommandTime.String())
	}
	close(r.done)
	c.mu.Lock()
	late := r.late
	c.mu.Unlock()
	if late {
		select {
		case c.finished <- struct{}{}:
		default:
		}
	}
}

// secrets lists what commands printed.
func (c *Commands) secrets() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, s := range c.sources {
		for _, values := range []map[string]string{s.before, s.values()} {
			for _, v := range values {
				out = append(out, v)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
