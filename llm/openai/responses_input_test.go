package openai

import (
	"encoding/json"
	"testing"

	"github.com/seed-dec29ce4/eca/llm"
)

// TestItemsAreEncodedByTheirTags: the encoder by hand writes what encoding/json would.
func TestItemsAreEncodedByTheirTags(t *testing.T) {
	empty, text := "", "say \"<ä>\"\n\x00"
	for _, item := range []inputItem{
		{},
		{Role: llm.User, Content: []inputContent{{Type: "input_text", Text: &text}, {Type: "input_image", Detail: "auto", ImageURL: "data:image/png;base64,AA=="}}},
		{Role: llm.Assistant, Content: []inputContent{{Type: "output_text", Text: &empty}}},
		{Type: "function_call", CallID: "c1", Name: "eca__grep", Arguments: &text},
		{Type: "function_call_output", CallID: "c1", Output: &empty},
	} {
		want, err := json.Marshal(item)
		if err != nil {
			t.Fatal(err)
		}
		got, err := item.append([]byte("["))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != "["+string(want) {
			t.Errorf("got  %s\nwant [%s", got, want)
		}
	}
}
