package remote_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/remote"
)

// contents returns what events show of the chat c, in order. Neighbouring pieces of one text are one.
func contents(t *testing.T, list []event) (out []string) {
	t.Helper()
	last := "" // the role and type of the text that grows
	for _, e := range list {
		var p struct {
			ChatID, Role string
			Content      struct{ Type, Text, ArgumentsText string }
		}
		if e.name != "chat:content-received" {
			continue
		}
		if err := json.Unmarshal([]byte(e.data), &p); err != nil {
			t.Fatal(err)
		}
		kind := p.Role + " " + p.Content.Type
		switch {
		case p.ChatID != "c":
		case !slices.Contains([]string{"assistant text", "assistant reasonText", "assistant toolCallPrepare"}, kind):
			out, last = append(out, e.data), ""
		case kind == last:
			out[len(out)-1] += p.Content.Text + p.Content.ArgumentsText
		default:
			out, last = append(out, kind+": "+p.Content.Text+p.Content.ArgumentsText), kind
		}
	}
	return out
}

func isFinished(e event) bool { return strings.Contains(e.data, `"state":"finished"`) }

// words is a text of n numbered words.
func words(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "w%d ", i)
	}
	return b.String()
}

// A client that is cut off again and again after random events, and comes back with the id of its
// last event each time, receives the same in total as a client that was never cut off.
func TestManyCuts(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	const cuts, seed = 1000, 24
	r := newRig(t, `turns: []
default:
  steps:
    - {reasoning: '`+words(50)+`', text: '`+words(100)+`', delay: 1ms, calls: [{id: call, tool: eca__directory_tree, arguments: {path: "${workspace}"}}]}
    - {text: '`+words(100)+`', delay: 1ms}
`, nil, nil)
	whole := r.events(r.token, "")
	whole.await(0, "session:connected")
	second, _ := r.pair(remote.Watch)
	var shown []event
	last, turns := "", 0
	random := rand.New(rand.NewPCG(seed, seed))
	prompt := func() {
		turns++
		if status, result := r.do("POST", "/chats/c/prompt", object{"message": fmt.Sprint("go ", turns)}); status != 200 {
			t.Fatal(status, result)
		}
	}
	prompt()
	first, said := whole.await(0, "chat:content-received", `"role":"user"`)
	last = said.id
	began := time.Now()
	n := 0
	for ; n < cuts && time.Since(began) < 30*time.Second; n++ {
		page := r.events(second, last)
		want := 1 + random.IntN(12)
		var list []event
		for over := false; len(list) < want && !over; {
			changed := page.next()
			list = page.all()
			over = slices.ContainsFunc(list, isFinished)
			if len(list) < want && !over {
				select {
				case <-changed:
				case <-page.over:
					t.Fatalf("cut %d: the stream ended after %v", n, list)
				case <-time.After(time.Minute):
					t.Fatalf("cut %d: after %q comes only %v", n, last, list)
				}
			}
		}
		page.close()
		list = list[:min(want, len(list))]
		if list[0].name != "session:connected" || !strings.Contains(list[0].data, `"resumedChats":["c"]`) {
			t.Fatalf("cut %d: after %q comes %v", n, last, list[0])
		}
		shown, last = append(shown, list...), list[len(list)-1].id
		if slices.ContainsFunc(list, isFinished) {
			prompt()
		}
	}
	end := func(of *events) []event {
		for i, from := 0, 0; ; i++ {
			if i == turns {
				return of.all()
			}
			from, _ = of.await(from, "chat:content-received", `"state":"finished"`)
			from++
		}
	}
	want := contents(t, end(whole)[first+1:])
	page := r.events(second, last)
	page.await(0, "chat:content-received", `"state":"finished"`)
	got := contents(t, append(shown, page.all()...))
	t.Logf("%d cuts in %d turns, %d pieces", n, turns, len(want))
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Fatalf("piece %d of %d and %d:\n%.300s\nand with cuts\n%.300s", i, len(want), len(got), slices.Concat(want, []string{"", ""})[i:][0], slices.Concat(got, []string{""})[i:][0])
		}
	}
}
