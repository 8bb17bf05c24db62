package chat

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/llm"
)

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"\"A  title\"\n": "A title", "# Head": "Head", "": "", "äöüäöüäöüäöü": "äöüäöüäöüä", "one two three": "one two th",
	} {
		if got := oneLine(in, 10); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestEstimate(t *testing.T) {
	req := llm.Request{
		System: strings.Repeat("x", 400), Tools: []llm.ToolSpec{{Name: strings.Repeat("x", 200)}},
		Messages: []llm.Message{{Parts: []llm.Part{llm.Text{Text: strings.Repeat("x", 200)}}}},
	}
	picture := llm.Request{Messages: []llm.Message{{Parts: []llm.Part{llm.Image{Data: make([]byte, 1<<20)}}}}}
	if n := estimate(picture).total(); n != history.ImageBytes/4 {
		t.Errorf("an image of 1 MB counts as %d tokens", n)
	}
	got := estimate(req).scaled(1000)
	if fmt.Sprint(got) != "[{System prompt 500} {Tool definitions 250} {Conversation 250}]" {
		t.Errorf("%v", got)
	}
	if got := (shares{}).scaled(7); len(got) > 0 {
		t.Errorf("%v", got)
	}
}
