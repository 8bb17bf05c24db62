package chat

import (
	"testing"

	"github.com/seed-dec29ce4/eca/llm"
)

// A model that takes no images gets a note in their place; the history keeps them.
func TestWithoutImages(t *testing.T) {
	image := llm.Image{MediaType: "image/png", Data: []byte("x")}
	messages := []llm.Message{
		{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "look"}, image}},
		{Role: llm.User, Parts: []llm.Part{llm.ToolResult{ID: "c", Text: "done", Images: []llm.Image{image, image}}}},
	}
	out := withoutImages(messages, 2, noImage)
	if out[0].Parts[0] != (llm.Text{Text: "look"}) || out[0].Parts[1] != (llm.Text{Text: noImage}) {
		t.Errorf("%+v", out[0])
	}
	if r := out[1].Parts[0].(llm.ToolResult); r.Text != "done\n"+noImage+"\n"+noImage || r.Images != nil {
		t.Errorf("%+v", r)
	}
	if first := withoutImages(messages, 1, noImage); hasImages(first[:1]) || !hasImages(first[1:]) {
		t.Errorf("of the first message: %+v", first)
	}
	if _, kept := messages[0].Parts[1].(llm.Image); !kept || len(messages[1].Parts[0].(llm.ToolResult).Images) != 2 {
		t.Error("the history has lost its images")
	}
}
