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

// images decides which images the model of a turn is sent.
type images struct {
	*turnContext
	trial   bool   // the current request leaves all images out, to find out whether they are the problem
	tried   bool   // such a request was made in this turn
	failure string // the provider's error about the request with images
}

// visible returns messages without the images that the model does not accept or that its provider
// refused; a text replaces each of them. It does not modify its argument, because another model may
// answer next.
func (i *images) visible(messages []llm.Message) []llm.Message {
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

// wouldSend reports whether the next request would contain images.
func (i *images) wouldSend() bool {
	messages := read(i.rec, (*history.History).Messages)
	return hasImages(i.visible(messages))
}

// leaveOut removes all images so far from what this model is sent, because providers do not say which
// image they refuse. ok is false if the requests had no images.
func (i *images) leaveOut(err error) (ok bool) {
	if !i.wouldSend() {
		return false
	}
	i.refuse(sentence(err))
	return true
}

// refuse emits the event that removes the images so far from what the model is sent.
func (i *images) refuse(cause string) {
	i.rec.emit(event.ImagesRefused{Model: i.model.ID, Text: "\n\nThe provider rejected an image: " + cause + " The turn continues without the images so far.\n\n"})
}

// retryWithout reports whether to retry a request once without its images: it was refused as invalid
// for an unknown reason, and an image that the provider refuses would block the chat forever. The
// images are removed for good only if the retry succeeds; see confirmRefusal.
func (i *images) retryWithout(a *answer, err error) bool {
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.ErrBadRequest || a.hasOutput || i.trial || i.tried || !i.wouldSend() {
		return false
	}
	i.trial, i.tried, i.failure = true, true, sentence(err)
	i.rec.emit(event.Notice{Text: "\n\n" + i.failure + " Retrying once without the images, in case one of them is the cause.\n\n"})
	return true
}

// confirmRefusal removes the images for good once a request without them is answered.
func (i *images) confirmRefusal() {
	if i.trial {
		i.trial = false
		i.refuse("the request succeeded without its images. With them, it failed: " + i.failure)
	}
}
