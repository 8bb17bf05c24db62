package tools

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Limits are the limits of a tool's outputs. If an output is cut, the whole text is saved in a file
// that the model can read. Images are not affected.
type Limits struct {
	Lines int      // lines of one output; 0 means unlimited
	Bytes int      // bytes of one output; 0 means unlimited
	Whole *Outputs // where whole outputs are saved
}

// BeginningLost replaces the beginning of an output of which only the end was kept.
const BeginningLost = "[the beginning of the output was too long and is left out]"

// CutMark precedes the note at the end of an output that was cut.
const CutMark = "\n\n[cut: "

// Limit wraps a tool with limits.
func Limit(t Tool, l Limits) Tool { return &limited{t, l} }

type limited struct {
	Tool
	limits Limits
}

func (t *limited) Run(ctx context.Context, call Call, out Sink) (Result, error) {
	res, err := t.Tool.Run(ctx, call, out)
	res.Outputs = t.limits.gather(res.Outputs)
	for i, text := range res.Outputs {
		short, cut := t.limits.cut(text)
		if !cut {
			continue
		}
		path, saveErr := t.limits.Whole.save(call.ID, i, text)
		where, ofWhat := "The whole output is in "+path+"; search or read that file for the rest.", "of"
		if strings.Contains(text[:min(len(text), 1000)], BeginningLost) {
			where, ofWhat = "They are in "+path+"; search or read that file for the rest.", "of the last"
		}
		if saveErr != nil {
			where = "The whole output could not be saved: " + saveErr.Error()
		}
		res.Outputs[i] = fmt.Sprintf("%s"+CutMark+"%d %s %d bytes are shown. %s]", short, len(short), ofWhat, len(text), where)
	}
	return Showable(res, workspace.MaxImage), err
}

// separateOutputs is how many outputs of one result are cut individually.
const separateOutputs = 4

// gather joins all outputs after the first few if together they exceed the limits. Otherwise, a server
// could evade the limits, which apply to each output, by sending thousands of outputs.
func (l Limits) gather(outputs []string) []string {
	if len(outputs) <= separateOutputs {
		return outputs
	}
	rest := strings.Join(outputs[separateOutputs-1:], "\n\n")
	if _, cut := l.cut(rest); !cut {
		return outputs
	}
	return append(outputs[:separateOutputs-1:separateOutputs-1], rest)
}

// maxImages is the maximum number of images in one result.
const maxImages = 20

// Showable replaces images that no provider accepts with a note, because one of them would make the
// whole conversation unusable. It determines types from the content. limit is the maximum size of
// an image in bytes.
func Showable(res Result, limit int) Result {
	var shown []event.Image
	omitted := 0
	for _, i := range res.Images {
		mediaType := workspace.ImageType(i.Data)
		reason := ""
		switch {
		case mediaType == "":
			reason = "it is not a PNG, JPEG, GIF or WebP"
		case len(i.Data) > limit:
			reason = fmt.Sprintf("it has %d bytes, and the limit is %d", len(i.Data), limit)
		case len(shown) == maxImages:
			reason = fmt.Sprintf("the limit is %d images for one result", maxImages)
		}
		if reason == "" {
			shown = append(shown, event.Image{MediaType: mediaType, Data: i.Data})
			continue
		}
		if omitted++; omitted <= maxImages {
			res.Outputs = append(res.Outputs, fmt.Sprintf("[An image (%.50s) is left out: %s.]", i.MediaType, reason))
		}
	}
	if omitted > maxImages {
		res.Outputs = append(res.Outputs, fmt.Sprintf("[%d more images are left out.]", omitted-maxImages))
	}
	res.Images = shown
	return res
}

// cut shortens a text to whole lines of valid UTF-8.
func (l Limits) cut(text string) (string, bool) {
	short := text
	if l.Lines > 0 {
		at := 0
		for range l.Lines {
			i := strings.IndexByte(short[at:], '\n')
			if i < 0 {
				at = len(short)
				break
			}
			at += i + 1
		}
		short = short[:at]
	}
	if l.Bytes > 0 && len(short) > l.Bytes {
		end := l.Bytes
		for end > 0 && !utf8.RuneStart(short[end]) {
			end--
		}
		short = short[:end]
	}
	return strings.TrimRight(short, "\n"), len(short) < len(text)
}
