package chat

import (
	"errors"
	"slices"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/llm"
)

// What stands where an image was that the model is not sent.
const (
	noImage      = "[Here is an image. This model is not known to take images, so it is not shown.]"
	refusedImage = "[image removed: rejected by the LLM provider]"
)

// visible returns the messages as the model can take them: images that it does not, and
// those that its provider refused, are replaced by a text that says so. The messages
// given stay as they are, since another model may answer next.
func (t *turn) visible(messages []llm.Message) []llm.Message {
	if t.model.NoImages {
		return withoutImages(messages, len(messages), noImage)
	}
	t.mu.Lock()
	refused := t.history.blind[t.model.ID]
	t.mu.Unlock()
	if t.imageTrial {
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
			_, image := p.(llm.Image)
			return image || len(r.Images) > 0
		})
	})
}

// refusesImage says whether a request was refused because of an image in it.
func refusesImage(err error) bool {
	var e *llm.Error
	return errors.As(err, &e) && e.Kind == llm.ErrInvalidImage
}

// sendsImages says whether the model would be sent images now.
func (t *turn) sendsImages() bool {
	t.mu.Lock()
	messages := t.history.messages()
	t.mu.Unlock()
	return hasImages(t.visible(messages))
}

// leaveImagesOut lets the conversation go on without the images so far, for this model;
// which of them it was, providers do not say. ok is false if none was sent.
func (t *turn) leaveImagesOut(err error) (ok bool) {
	if !t.sendsImages() {
		return false
	}
	t.refuseImages(sentence(err))
	return true
}

// refuseImages records that the model is not sent the images so far any more.
func (t *turn) refuseImages(cause string) {
	t.emit(event.ImagesRefused{Model: t.model.ID, Text: "\n\nThe provider rejected an image: " + cause + " Going on without the images so far.\n\n"})
}

// tryWithoutImages says whether to repeat a request once without its images: it was refused
// as invalid for a reason that nobody knows, and a refused image would block the chat for
// good. Only if that succeeds, the images stay away; see imagesWereIt.
func (t *turn) tryWithoutImages(a *answer, err error) bool {
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.ErrBadRequest || a.any || t.imageTrial || t.imagesTried || !t.sendsImages() {
		return false
	}
	t.imageTrial, t.imagesTried, t.imageFault = true, true, sentence(err)
	t.emit(event.Notice{Text: "\n\n" + t.imageFault + " Trying once without the images, in case it is one of them.\n\n"})
	return true
}

// imagesWereIt ends a successful trial without images when its answer begins.
func (t *turn) imagesWereIt() {
	if t.imageTrial {
		t.imageTrial = false
		t.refuseImages("without its images, the request is taken. It was refused with: " + t.imageFault)
	}
}
