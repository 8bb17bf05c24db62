package cassette

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"github.com/seed-dec29ce4/eca/llm"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Recorder writes one cassette per chat from live traffic. A response is recorded when it is
// complete; failed responses are not. Secrets are removed from texts before they are written.
type Recorder struct {
	dir     string
	folders Folders
	clean   func(string) string
	warn    func(error)

	mu        sync.Mutex // guards cassettes and the files
	cassettes map[string]*Cassette
}

// NewRecorder records into dir, and adds dir to folders. clean removes secrets from a text; warn
// reports recordings that could not be written.
func NewRecorder(dir string, folders Folders, clean func(string) string, warn func(error)) *Recorder {
	return &Recorder{dir: dir, folders: folders, clean: clean, warn: warn, cassettes: map[string]*Cassette{}}
}

// Delete deletes the recordings of a chat. A new chat with the same id begins a new recording.
func (r *Recorder) Delete(chat string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.cassettes, chat)
	return r.folders.Delete(chat)
}

// Wrap returns m with its traffic recorded.
func (r *Recorder) Wrap(m llm.Model) llm.Model { return &recording{r, m} }

type recording struct {
	r     *Recorder
	model llm.Model
}

func (rec *recording) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		var step Step
		var text, reasoning strings.Builder
		complete := false
		workspace := readRequest(req).workspace
		for d, err := range rec.model.Stream(ctx, req) {
			switch d.Kind {
			case llm.TextDelta:
				text.WriteString(d.Text)
			case llm.ReasoningDelta:
				reasoning.WriteString(d.Text)
			case llm.ToolStart:
				step.Calls = append(step.Calls, Call{ID: d.ID, Tool: d.Name})
			case llm.ToolEnd:
				rec.r.arguments(&step, d, workspace)
			case llm.UsageDelta:
				u := Usage(d.Usage)
				step.Usage = &u
			case llm.StopDelta:
				complete = true
				if d.Stop != step.stop() {
					step.Stop = string(d.Stop)
				}
			}
			if !yield(d, err) {
				return
			}
		}
		if complete {
			step.Text, step.Reasoning = rec.r.clean(text.String()), rec.r.clean(reasoning.String())
			if err := rec.r.add(req, step); err != nil {
				rec.r.warn(fmt.Errorf("record cassette: %w", err))
			}
		}
	}
}

// arguments stores the arguments of a finished call, as an object if they are valid JSON. It
// replaces the workspace path with a variable, so that the cassette can be played in another
// folder.
func (r *Recorder) arguments(step *Step, d llm.Delta, workspace string) {
	for i := range step.Calls {
		c := &step.Calls[i]
		if c.ID != d.ID {
			continue
		}
		clean := r.clean(d.Text)
		if workspace != "" {
			clean = strings.ReplaceAll(clean, workspace, "${workspace}")
		}
		if json.Unmarshal([]byte(clean), &c.Arguments) != nil {
			c.RawArguments = clean
		}
	}
}

// add adds a step at the index where the player looks for it, and writes the file.
func (r *Recorder) add(req llm.Request, step Step) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	name, isTitle := strings.CutSuffix(req.CacheKey, "/title")
	tape := r.cassettes[name]
	if tape == nil {
		if err := r.folders.add(r.dir); err != nil {
			return err
		}
		tape = &Cassette{Version: version}
		r.cassettes[name] = tape
	}
	if isTitle {
		tape.Title = step.Text
	} else {
		v := readRequest(req)
		for len(tape.Turns) <= v.userIndex {
			// Turns before the recording began cannot be played, but keep their index.
			tape.Turns = append(tape.Turns, Turn{Steps: []Step{}})
		}
		turn := &tape.Turns[v.userIndex]
		turn.Said = r.clean(v.user)
		for len(turn.Steps) <= v.step {
			turn.Steps = append(turn.Steps, Step{})
		}
		turn.Steps[v.step] = step
	}
	return r.write(name, tape)
}

func (r *Recorder) write(name string, tape *Cassette) error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	complete := *tape
	complete.Turns = nil
	for _, t := range tape.Turns {
		if len(t.Steps) == 0 {
			t.Steps = []Step{{Text: "(not recorded)"}}
		}
		complete.Turns = append(complete.Turns, t)
	}
	data, err := yaml.Marshal(complete)
	if err != nil {
		return err
	}
	return safeio.Write(filepath.Join(r.dir, fileName(name)), data, 0o600)
}
