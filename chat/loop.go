package chat

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/tools"
)

// errLoop ends a turn whose model repeats the same calls.
var errLoop = errors.New("the model repeats the same calls")

// loopRounds is the number of rounds after which a repeating pattern ends the turn. A round is a
// response of the model with its calls and their results.
const loopRounds = 12

// maxPeriod is the maximum length of a repeating pattern, in rounds.
const maxPeriod = 3

const noticeLoop = "\n\nThe model has done the same for the last %d rounds, with the same results each time, so this turn ends here. Should it continue, or what should it do differently?\n"

type digest = [sha256.Size]byte

// loopGuard detects a turn that repeats the same calls with the same results. Calls that are repeated
// until their result changes (a build, a running job) are not a loop.
type loopGuard struct {
	mu      sync.Mutex        // guards the fields below
	results map[string]digest // results in the current round, by call
	rounds  []digest          // the last loopRounds rounds
}

// addResult adds the result of a call, if b is one.
func (g *loopGuard) addResult(b event.Body) {
	h := sha256.New()
	var id string
	switch b := b.(type) {
	case event.ToolFinished:
		id = b.CallID
		fmt.Fprintf(h, "%t\n", b.Failed)
		for _, o := range b.Outputs {
			o, _, _ = strings.Cut(o, tools.CutMark) // the name of the file with the full output differs each time
			fmt.Fprintf(h, "%d:%s", len(o), o)
		}
		for _, i := range b.Images {
			fmt.Fprintf(h, "%d:%s", len(i.Data), i.Data)
		}
	case event.ToolRejected:
		id = b.CallID
		fmt.Fprintf(h, "%s\n%s", b.Reason, b.Message)
	default:
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.results == nil {
		g.results = map[string]digest{}
	}
	g.results[id] = digest(h.Sum(nil))
}

// reset forgets all rounds.
func (g *loopGuard) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.results, g.rounds = nil, nil
}

// addRound adds the calls of a finished round, and reports whether the last rounds are a loop.
func (g *loopGuard) addRound(calls []call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := sha256.New()
	for _, c := range calls {
		result := g.results[c.CallID]
		fmt.Fprintf(h, "%s\n%s\n%x\n", history.ModelName(c.Tool), canonical(c.arguments), result)
	}
	g.results = nil
	g.rounds = append(g.rounds, digest(h.Sum(nil)))
	if excess := len(g.rounds) - loopRounds; excess > 0 {
		g.rounds = slices.Delete(g.rounds, 0, excess)
	}
	if len(g.rounds) < loopRounds {
		return false
	}
	for period := 1; period <= maxPeriod; period++ {
		if slices.Equal(g.rounds[period:], g.rounds[:loopRounds-period]) {
			return true
		}
	}
	return false
}

// canonical returns arguments as JSON with sorted keys and without white space.
func canonical(arguments string) string {
	var v any
	if json.Unmarshal([]byte(arguments), &v) != nil {
		return arguments
	}
	out, err := json.Marshal(v)
	if err != nil {
		return arguments
	}
	return string(out)
}
