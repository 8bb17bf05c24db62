package tools

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Limits bound the outputs of a tool. The whole text of a cut output is kept in a
// file that the model can read; images stay whatever happens to the text.
type Limits struct {
	Lines int      // lines of one output; 0 means unlimited
	Bytes int      // bytes of one output; 0 means unlimited
	Whole *Outputs // where whole outputs are kept
}

// CutMark begins what is at the end of an output that was cut.
const CutMark = "\n\n[cut: "

// Limit decorates a tool with limits.
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
		where := "The whole output is in " + path + "; search or read that file for the rest."
		if saveErr != nil {
			where = "The whole output could not be kept: " + saveErr.Error()
		}
		res.Outputs[i] = fmt.Sprintf("%s"+CutMark+"%d of %d bytes are shown. %s]", short, len(short), len(text), where)
	}
	return Showable(res, workspace.MaxImage), err
}

// separateOutputs is how many outputs of one result are cut each on its own.
const separateOutputs = 4

// gather makes one output of those after the first ones, if together they would be cut: the
// limits are for each, and servers may send thousands.
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

// maxImages bounds the images of one result.
const maxImages = 20

// Showable leaves out, and names, the images of a result that no provider takes: one
// would make the whole conversation unusable. Types are what the content says; limit is the most
// bytes of an image.
func Showable(res Result, limit int) Result {
	var shown []event.Image
	left := 0
	for _, i := range res.Images {
		real := workspace.ImageType(i.Data)
		why := ""
		switch {
		case real == "":
			why = "it is not a PNG, JPEG, GIF or WebP"
		case len(i.Data) > limit:
			why = fmt.Sprintf("it has %d bytes, and %d can be shown", len(i.Data), limit)
		case len(shown) == maxImages:
			why = fmt.Sprintf("%d can be shown at once", maxImages)
		}
		if why == "" {
			shown = append(shown, event.Image{MediaType: real, Data: i.Data})
			continue
		}
		if left++; left <= maxImages {
			res.Outputs = append(res.Outputs, fmt.Sprintf("[An image (%.50s) is left out: %s.]", i.MediaType, why))
		}
	}
	if left > maxImages {
		res.Outputs = append(res.Outputs, fmt.Sprintf("[%d more images are left out.]", left-maxImages))
	}
	res.Images = shown
	return res
}

// cut shortens a text to whole lines and valid UTF-8.
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
