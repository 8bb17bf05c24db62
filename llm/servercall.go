package llm

import (
	"encoding/base64"
	"encoding/json"
	"slices"
)

// Names, shown to users, of tools that providers run themselves.
const (
	WebSearch       = "web_search"
	ImageGeneration = "image_generation"
)

// ServerTools are the provider's own tools that a model may use. An API ignores
// tools that it does not have.
type ServerTools struct {
	WebSearch       bool
	ImageGeneration bool
}

// ServerCall is a call of a tool that the provider has run itself, as part of the answer.
// It is sent back to the API that made it; see Portable for others.
type ServerCall struct {
	ID     string
	Name   string // WebSearch or ImageGeneration
	API    string // see Reasoning
	Opaque json.RawMessage
	Images []Image // generated images; Opaque does not contain them
}

// ServerResult is the result of a server call, for the user.
type ServerResult struct {
	Outputs []string `json:"outputs,omitempty"`
	Images  []Image  `json:"images,omitempty"`
	Failed  bool     `json:"failed,omitempty"`
}

// GeneratedImage returns the result of a call that generated an image, from the image in base64.
func GeneratedImage(mediaType, encoded string) *ServerResult {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(data) == 0 {
		return &ServerResult{Failed: true, Outputs: []string{"[The image is left out: the provider sent damaged data.]"}}
	}
	return &ServerResult{Images: []Image{{MediaType: mediaType, Data: data}}}
}

// Texts for a model that gets an image that was generated through another API.
const (
	generatedImageText  = "[I made an image here. It is shown in the next message.]"
	generatedImagesText = "Images that you made in your last message:"
)

// Portable returns messages for an API that accepts only its own server calls, those with the
// origin api. Searches through other APIs are omitted, because the answer contains their findings.
// Images from other APIs are moved to the user's next message. The argument is not changed.
func Portable(messages []Message, api string) []Message {
	foreign := func(p Part) bool {
		c, ok := p.(ServerCall)
		return ok && (c.API != api || len(c.Opaque) == 0)
	}
	if !slices.ContainsFunc(messages, func(m Message) bool { return slices.ContainsFunc(m.Parts, foreign) }) {
		return messages
	}
	var out []Message
	var images []Part // generated in the last message
	for _, m := range messages {
		var parts []Part
		if m.Role == User && len(images) > 0 {
			parts = append(slices.Clone(m.Parts), images...)
			images = nil
		} else {
			for _, p := range m.Parts {
				if !foreign(p) {
					parts = append(parts, p)
					continue
				}
				for _, i := range p.(ServerCall).Images {
					if len(images) == 0 {
						images = append(images, Text{generatedImagesText})
					}
					parts, images = append(parts, Text{generatedImageText}), append(images, i)
				}
			}
		}
		if len(parts) > 0 {
			out = append(out, Message{m.Role, parts})
		}
	}
	return out
}
