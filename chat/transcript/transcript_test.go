package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/transcript"
)

// foldEvents returns the changes of a list of events, numbered from 1.
func foldEvents(bodies ...event.Body) []transcript.Change {
	var out []transcript.Change
	f := transcript.New()
	for i, b := range bodies {
		if c, ok := f.Add(event.Event{Seq: event.Seq(i + 1), Turn: "t", Body: b}); ok {
			out = append(out, c)
		}
	}
	return out
}

// line shows a change for tests.
func line(c transcript.Change) string {
	at := fmt.Sprintf("%d.%d", c.ID, c.Revision)
	switch i := c.Item.(type) {
	case transcript.Answer:
		return fmt.Sprintf("%s answer %q + %q", at, i.Text, i.Piece)
	case transcript.Reasoning:
		return fmt.Sprintf("%s reasoning %s %q + %q ended %t", at, i.ID, i.Text, i.Piece, i.Ended)
	case transcript.Call:
		return fmt.Sprintf("%s call %s %s stage %d started %t", at, i.CallID, i.Name, i.Stage, i.Started)
	default:
		return fmt.Sprintf("%s %T", at, i)
	}
}

func lines(changes []transcript.Change) string {
	var out []string
	for _, c := range changes {
		out = append(out, line(c))
	}
	return strings.Join(out, "\n")
}

func TestFold(t *testing.T) {
	tool := event.Tool{CallID: "c", Name: "grep", Server: "eca"}
	for _, c := range []struct {
		name   string
		bodies []event.Body
		want   string
	}{
		{
			"a text goes on over what may stand inside it",
			[]event.Body{event.TextDelta{Text: "a"}, event.TitleChanged{Title: "t"}, event.TextDelta{Text: "b"}, event.Notice{Text: "n"}, event.TextDelta{Text: "c"}},
			"1.1 answer \"a\" + \"a\"\n2.2 transcript.Title\n1.3 answer \"ab\" + \"b\"\n4.4 transcript.Notice\n5.5 answer \"c\" + \"c\"",
		},
		{
			"blocks of reasoning may overlap",
			[]event.Body{
				event.ReasoningStarted{ID: "x"},
				event.ReasoningDelta{ID: "x", Text: "1"},
				event.ReasoningStarted{ID: "y"},
				event.ReasoningDelta{ID: "x", Text: "2"},
				event.ReasoningFinished{ID: "x"},
			},
			"1.1 reasoning x \"\" + \"\" ended false\n1.2 reasoning x \"1\" + \"1\" ended false\n3.3 reasoning y \"\" + \"\" ended false\n" +
				"1.4 reasoning x \"12\" + \"2\" ended false\n1.5 reasoning x \"12\" + \"\" ended true",
		},
		{
			"a call is one item through all its stages",
			[]event.Body{event.ToolProposed{Tool: tool}, event.ToolJudged{Tool: tool}, event.ToolStarted{CallID: "c"}, event.ToolFinished{CallID: "c"}},
			"1.1 call c grep stage 1 started false\n1.2 call c grep stage 2 started false\n1.3 call c grep stage 3 started true\n1.4 call c grep stage 4 started true",
		},
		{
			"a call of an earlier turn is another one",
			[]event.Body{event.ToolProposed{Tool: tool}, event.TurnFinished{}, event.ToolProposed{Tool: tool}},
			"1.1 call c grep stage 1 started false\n2.2 transcript.Turn\n3.3 call c grep stage 1 started false",
		},
		{"what users do not see shows nothing", []event.Body{event.SystemPrompt{}, event.Pruned{}, event.FileChanged{}, event.Continued{}, event.Unknown{Name: "new"}}, ""},
	} {
		if got := lines(foldEvents(c.bodies...)); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// Each kind of event is folded without a panic, and its item differs from no item.
func TestEveryKindIsFolded(t *testing.T) {
	for _, b := range event.All() {
		for _, c := range foldEvents(b) {
			if c.Item == nil || c.ID != 1 {
				t.Errorf("%T: %+v", b, c)
			}
		}
	}
}

// A merger returns the same texts to a reader that keeps up and to one that has fallen behind, although
// the second gets the texts in other pieces.
func TestMergerIsTheSameForAllPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var whole, cut []event.Event
		n := rapid.IntRange(0, 12).Draw(t, "events")
		for i := range n {
			seq := event.Seq(i + 1)
			text := rapid.StringMatching(`[ab]{1,6}`).Draw(t, "text")
			var body event.Body
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				body = event.TextDelta{Text: text}
			case 1:
				body = event.ReasoningDelta{ID: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "id"), Text: text}
			case 2:
				body = event.TitleChanged{Title: text}
			default:
				body = event.Notice{Text: text}
			}
			whole = append(whole, event.Event{Seq: seq, Body: body})
			d, grows := body.(event.Delta)
			if !grows {
				cut = append(cut, event.Event{Seq: seq, Body: body})
				continue
			}
			at := rapid.IntRange(0, len(text)).Draw(t, "at")
			for _, piece := range []string{text[:at], text[at:]} {
				if piece != "" { // readers return none that are empty
					cut = append(cut, event.Event{Seq: seq, Body: d.WithPiece(piece)})
				}
			}
		}
		if a, b := mergeItems(whole), mergeItems(cut); a != b {
			t.Fatalf("whole:\n%s\nin pieces:\n%s", a, b)
		}
	})
}

// Changes that may occur inside a run of text do not divide it.
func TestMergerJoinsTextAroundOtherChanges(t *testing.T) {
	flag := event.Flag{ContentID: "f", Text: "here"}
	for _, between := range []event.Body{event.TitleChanged{Title: "t"}, event.UsageReported{Purpose: "title"}, event.ToolUpdated{CallID: "c"}, flag} {
		got := mergeItems([]event.Event{
			{Seq: 1, Body: event.ToolProposed{Tool: event.Tool{CallID: "c"}}},
			{Seq: 2, Body: event.TextDelta{Text: "a"}},
			{Seq: 3, Body: between},
			{Seq: 4, Body: event.TextDelta{Text: "b"}},
		})
		if !strings.Contains(got, `answer "ab" + "ab"`) {
			t.Errorf("%T: %s", between, got)
		}
	}
}

func mergeItems(events []event.Event) string {
	var out []transcript.Change
	var m transcript.Merger
	f := transcript.New()
	for _, e := range events {
		if c, ok := f.Add(e); ok {
			out = append(out, m.Add(c)...)
		}
	}
	return lines(append(out, m.Flush()...))
}
