package chat

import (
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
)

func TestEndsInCodeBlock(t *testing.T) {
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
		if got := endsInCodeBlock(c.text); got != c.want {
			t.Errorf("%q: %v", c.text, got)
		}
	}
}

// Images that a provider refused are withheld from the model that got them, also after a compaction.
// Other models get them, and the same model gets later images.
func TestImagesWithheld(t *testing.T) {
	image := event.UserMessage{Text: "look", Context: []event.Block{{Label: "i", MediaType: "image/png", Data: []byte("x")}}}
	h := history.New()
	for _, b := range []event.Body{image, event.ImagesRefused{Model: "p/m"}} {
		h.Add(b)
	}
	if h.ImagesWithheld("p/m") != 1 || h.ImagesWithheld("p/other") != 0 {
		t.Errorf("%v", h.ImagesWithheld("p/m"))
	}
	// The prompt is not answered yet, so it stays after the summary.
	h.Add(event.Compacted{Summary: "S", Auto: true})
	if h.ImagesWithheld("p/m") != 2 || hasImages(withoutImages(h.Messages(), h.ImagesWithheld("p/m"), "")) {
		t.Errorf("compacted: %d of %v", h.ImagesWithheld("p/m"), h.Messages())
	}
	for _, b := range []event.Body{event.TextDelta{Text: "I see"}, event.TurnFinished{}, event.Compacted{Summary: "S"}, image} {
		h.Add(b)
	}
	if h.ImagesWithheld("p/m") != 1 || !hasImages(withoutImages(h.Messages(), h.ImagesWithheld("p/m"), "")) {
		t.Errorf("a new image is not shown: %d of %v", h.ImagesWithheld("p/m"), h.Messages())
	}
}
