package chat

import (
	"errors"
	"slices"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/llm"
)

// Texts that replace images that the model is not sent.
const (
	noImage      = "[Here is an image. This model is not known to take images, so it is not shown.]"
	refusedImage = "[image removed: rejected by the LLM provider]"
)

// imageFilter decides which images the model of a turn is sent.
type imageFilter struct {
	*turnContext
	trial     bool   // the current request leaves all images out, to find out whether they are the problem
	trialDone bool   // a trial was made in this turn
	failure   string // the provider's error about the request with images
}

// visible returns messages without the images that the model does not accept or that its provider
// refused; a text replaces each of them. It does not modify its argument, because another model may
// answer next.
func (i *imageFilter) visible(messages []llm.Message) []llm.Message {
	if i.model.NoImages {
		return withoutImages(messages, len(messages), noImage)
	}
	refused := read(i.rec, func(h *history.History) int { return h.ImagesWithheld(i.model.ID) })
	if i.trial {
		refused = len(messages)
	}
	return withoutImages(messages, refused, refusedImage)
}

// withoutImages returns a copy of messages in which a text replaces each image of the first n.
func withoutImages(messages []llm.Message, n int, text string) []llm.Message {
	if n == 0 {
		return messages
	}
	out := slices.Clone(messages)
	for i := range out[:min(n, len(out))] {
		parts := slices.Clone(out[i].Parts)
		for j, p := range parts {
			switch p := p.(type) {
			case llm.Image:
				parts[j] = llm.Text{Text: text}
			case llm.ServerCall:
				if len(p.Images) > 0 {
					parts[j] = llm.Text{Text: text}
				}
			case llm.ToolResult:
				for range p.Images {
					p.Text += "\n" + text
				}
				p.Images = nil
				parts[j] = p
			}
		}
		out[i].Parts = parts
	}
	return out
}

// hasImages reports whether messages contain images.
func hasImages(messages []llm.Message) bool {
	return slices.ContainsFunc(messages, func(m llm.Message) bool {
		return slices.ContainsFunc(m.Parts, func(p llm.Part) bool {
			r, _ := p.(llm.ToolResult)
			call, _ := p.(llm.ServerCall)
			_, image := p.(llm.Image)
			return image || len(r.Images)+len(call.Images) > 0
		})
	})
}

// isImageRefusal reports whether a request was refused because of an image.
func isImageRefusal(err error) bool {
	var e *llm.Error
	return errors.As(err, &e) && e.Kind == llm.ErrInvalidImage
}

// wouldSendImages reports whether the next request would contain images.
func (i *imageFilter) wouldSendImages() bool {
	messages := read(i.rec, (*history.History).Messages)
	return hasImages(i.visible(messages))
}

// withholdAfterRefusal removes all images so far from what this model is sent, because providers do not
// say which image they refuse. ok is false if the requests had no images.
func (i *imageFilter) withholdAfterRefusal(err error) (ok bool) {
	if !i.wouldSendImages() {
		return false
	}
	i.withhold(sentence(err))
	return true
}

// withhold emits the event that removes the images so far from what the model is sent.
func (i *imageFilter) withhold(cause string) {
	i.rec.emit(event.ImagesRefused{Model: i.model.ID, Text: "\n\nThe provider rejected an image: " + cause + " The turn continues without the images so far.\n\n"})
}

// startTrial prepares one retry without images of a request that was refused as invalid for an unknown
// reason: an image that the provider refuses would block the chat forever. It returns false if there
// is no reason for a retry. The images are removed for good only if the retry succeeds; see
// confirmRefusal.
func (i *imageFilter) startTrial(a *answer, err error) bool {
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.ErrBadRequest || a.hasOutput || i.trial || i.trialDone || !i.wouldSendImages() {
		return false
	}
	i.trial, i.trialDone, i.failure = true, true, sentence(err)
	i.rec.emit(event.Notice{Text: "\n\n" + i.failure + " Retrying once without the images, in case one of them is the cause.\n\n"})
	return true
}

// confirmRefusal removes the images for good once a request without them is answered.
func (i *imageFilter) confirmRefusal() {
	if i.trial {
		i.trial = false
		i.withhold("the request succeeded without its images. With them, it failed: " + i.failure)
	}
}
