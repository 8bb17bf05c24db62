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

// errLoop ends a turn whose model does the same again and again.
var errLoop = errors.New("the same again and again")

// loopRounds is how many rounds in a row may repeat what came before: the same calls with
// the same results, or two or three rounds that take turns.
const loopRounds = 12

// maxPeriod is how many different rounds a loop may consist of.
const maxPeriod = 3

const noticeLoop = "\n\nThe model has done the same for the last %d rounds, with the same results each time, so this turn ends here. Shall it go on, or what should it do differently?\n"

type digest = [sha256.Size]byte

// loopGuard notices a turn that goes round in circles. A call that is repeated until its
// result is another (a build, a job that runs) does not count as a loop.
type loopGuard struct {
	mu      sync.Mutex        // guards what follows
	results map[string]digest // by call, of the round that goes on
	rounds  []digest          // the last ones
}

// note takes the result of a call.
func (g *loopGuard) note(b event.Body) {
	h := sha256.New()
	var id string
	switch b := b.(type) {
	case event.ToolFinished:
		id = b.CallID
		fmt.Fprintf(h, "%t\n", b.Failed)
		for _, o := range b.Outputs {
			o, _, _ = strings.Cut(o, tools.CutMark) // the file with the whole is another each time
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

// reset starts over.
func (g *loopGuard) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.results, g.rounds = nil, nil
}

// round says whether the round that has ended closes a circle.
func (g *loopGuard) round(calls []call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := sha256.New()
	for _, c := range calls {
		result := g.results[c.CallID]
		fmt.Fprintf(h, "%s\n%s\n%x\n", history.ModelName(c.Tool), canonical(c.arguments), result)
	}
	g.results = nil
	g.rounds = append(g.rounds, digest(h.Sum(nil)))
	if over := len(g.rounds) - loopRounds; over > 0 {
		g.rounds = slices.Delete(g.rounds, 0, over)
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

// canonical brings arguments into one form, whatever their order and spaces.
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
