package chat

import (
	"errors"
	"slices"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/llm"
)

// Texts in place of images that the model does not get.
const (
	noImage      = "[Here is an image. This model is not known to take images, so it is not shown.]"
	refusedImage = "[image removed: rejected by the LLM provider]"
)

// images knows which images the model of a turn is sent.
type images struct {
	*setting
	trial bool   // the request goes without, to see whether they are refused
	tried bool   // that was done in this turn
	fault string // what the provider said of the request with them
}

// visible returns the messages as the model can take them: images that it does not, and
// those that its provider refused, are replaced by a text that says so. The messages
// given stay as they are, since another model may answer next.
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

// withoutImages returns messages with a text in place of each image in the first n.
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

// hasImages says whether the model would be sent images.
func hasImages(messages []llm.Message) bool {
	return slices.ContainsFunc(messages, func(m llm.Message) bool {
		return slices.ContainsFunc(m.Parts, func(p llm.Part) bool {
			r, _ := p.(llm.ToolResult)
			made, _ := p.(llm.ServerCall)
			_, image := p.(llm.Image)
			return image || len(r.Images)+len(made.Images) > 0
		})
	})
}

// refusesImage says whether a request was refused because of an image in it.
func refusesImage(err error) bool {
	var e *llm.Error
	return errors.As(err, &e) && e.Kind == llm.ErrInvalidImage
}

// sent says whether the model would be sent images now.
func (i *images) sent() bool {
	messages := read(i.rec, (*history.History).Messages)
	return hasImages(i.visible(messages))
}

// leaveOut lets the conversation go on without the images so far, for this model;
// which of them it was, providers do not say. ok is false if none was sent.
func (i *images) leaveOut(err error) (ok bool) {
	if !i.sent() {
		return false
	}
	i.refuse(sentence(err))
	return true
}

// refuse records that the model is not sent the images so far any more.
func (i *images) refuse(cause string) {
	i.rec.emit(event.ImagesRefused{Model: i.model.ID, Text: "\n\nThe provider rejected an image: " + cause + " Going on without the images so far.\n\n"})
}

// retryWithout says whether to repeat a request once without its images: it was refused
// as invalid for a reason that nobody knows, and a refused image would block the chat for
// good. Only if that succeeds, the images stay away; see wereIt.
func (i *images) retryWithout(a *answer, err error) bool {
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.ErrBadRequest || a.any || i.trial || i.tried || !i.sent() {
		return false
	}
	i.trial, i.tried, i.fault = true, true, sentence(err)
	i.rec.emit(event.Notice{Text: "\n\n" + i.fault + " Trying once without the images, in case it is one of them.\n\n"})
	return true
}

// confirmRefusal records that the images were the cause, once a trial without them is answered.
func (i *images) confirmRefusal() {
	if i.trial {
		i.trial = false
		i.refuse("without its images, the request is taken. It was refused with: " + i.fault)
	}
}
