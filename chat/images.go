package chat

import (
	"slices"

	"github.com/seed-dec29ce4/eca/llm"
)

// noImage stands where an image was that the model does not take.
const noImage = "[Here is an image. This model is not known to take images, so it is not shown.]"

// visible returns the messages as the model can take them: images that it does not are
// replaced by a text that says so. The messages given stay as they are, since another
// model may answer next.
func (m Model) visible(messages []llm.Message) []llm.Message {
	if !m.NoImages {
		return messages
	}
	out := slices.Clone(messages)
	for i := range out {
		parts := slices.Clone(out[i].Parts)
		for j, p := range parts {
			switch p := p.(type) {
			case llm.Image:
				parts[j] = llm.Text{Text: noImage}
			case llm.ToolResult:
				for range p.Images {
					p.Text += "\n" + noImage
				}
				p.Images = nil
				parts[j] = p
			}
		}
		out[i].Parts = parts
	}
	return out
}
