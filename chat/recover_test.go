package chat

import (
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
)

func TestOpenCode(t *testing.T) {
	for _, c := range []struct {
		text string
		want bool
	}{
		{"", false},
		{"no code", false},
		{"a ``` in a line", false},
		{"```", true},
		{"```go\nx", true},
		{"text\n```go\nx\n```\n", false},
		{"```\nx\n```\nmore\n~~~\ny", true},
		{"~~~\n```\n~~~", false},
		{"````md\n```\nx\n```\n", true},
		{"````md\n```\nx\n````", false},
		{"- item\n    ```sh\n    ls\n    ```", false},
		{"```\nx\r\n```\r\n", false},
		{"```not a ``` fence", false},
		{"~~~may ` hold\nx", true},
		{"```\nx\n``` go\n", true}, // an end has no language
	} {
		if got := openCode(c.text); got != c.want {
			t.Errorf("%q: %v", c.text, got)
		}
	}
}

// Images that a provider refused stay away from the model that they were refused for,
// also when what was said is compacted.
func TestBlind(t *testing.T) {
	image := event.UserMessage{Text: "look", Context: []event.Block{{Label: "i", MediaType: "image/png", Data: []byte("x")}}}
	h := newHistory()
	for _, b := range []event.Body{image, event.ImagesRefused{Model: "p/m"}} {
		h.add(b)
	}
	if h.blind["p/m"] != 1 || h.blind["p/other"] != 0 {
		t.Errorf("%v", h.blind)
	}
	// The prompt is not answered yet, so it stays behind the summary.
	h.add(event.Compacted{Summary: "S", Auto: true})
	if h.blind["p/m"] != 2 || hasImages(withoutImages(h.messages(), h.blind["p/m"], "")) {
		t.Errorf("compacted: %v of %s", h.blind, renderMessages(h.messages()))
	}
	for _, b := range []event.Body{event.TextDelta{Text: "I see"}, event.TurnFinished{}, event.Compacted{Summary: "S"}, image} {
		h.add(b)
	}
	if h.blind["p/m"] != 1 || !hasImages(withoutImages(h.messages(), h.blind["p/m"], "")) {
		t.Errorf("a new image is not shown: %v of %s", h.blind, renderMessages(h.messages()))
	}
}
