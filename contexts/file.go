package contexts

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/pdftext"
	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/workspace"
)

// maxRead is the largest file that is read, in bytes. It exceeds the limit of a block, since only
// some lines may be requested.
const maxRead = 16 << 20

// addPath adds a file or a folder, regardless of the type that the client sent.
func (r *resolver) addPath(ref Ref) error {
	if ref.Path == "" {
		return fmt.Errorf("a %s without a path", ref.Type)
	}
	path := workspace.Abs(r.roots, ref.Path)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist", path)
	case err != nil:
		return fmt.Errorf("%s cannot be read", path)
	case info.IsDir():
		return r.addDirectory(path)
	}
	key := fileKey(workspace.Resolve(path))
	if r.existing[key] {
		return nil
	}
	b, err := readFile(path, info)
	if errors.Is(err, errPDF) {
		b, err = readPDF(r.ctx, path)
	}
	if err != nil {
		return fmt.Errorf("%s %w", path, err)
	}
	if ref.FirstLine <= 0 || b.Data != nil {
		if len(b.Text) > maxBlock {
			return fmt.Errorf("%s has %d bytes, which is too much", path, info.Size())
		}
		return r.addBlock(key, b)
	}
	return r.addLines(key, b, ref.FirstLine, ref.LastLine)
}

// addLines adds a range of a file's lines, 1-based and inclusive, without the lines that are already
// included.
func (r *resolver) addLines(key string, b Block, first, last int) error {
	lines := strings.SplitAfter(strings.TrimSuffix(b.Text, "\n"), "\n")
	last = min(max(last, first), len(lines))
	if first > last {
		return fmt.Errorf("%s has no line %d", b.Label, first)
	}
	for _, part := range subtract(span{first, last}, r.partialLines[key]) {
		piece := Block{Label: fmt.Sprintf("%s:L%d-L%d", b.Label, part.first, part.last), Text: strings.Join(lines[part.first-1:part.last], "")}
		if err := r.addBlock(key+piece.Label, piece); err != nil {
			return err
		}
		r.partialLines[key] = append(r.partialLines[key], part)
	}
	return nil
}

// span is a range of lines.
type span struct{ first, last int }

// subtract returns the parts of a range that are outside others.
func subtract(s span, others []span) []span {
	out := []span{s}
	for _, o := range others {
		var left []span
		for _, p := range out {
			if o.last < p.first || o.first > p.last {
				left = append(left, p)
				continue
			}
			if p.first < o.first {
				left = append(left, span{p.first, o.first - 1})
			}
			if p.last > o.last {
				left = append(left, span{o.last + 1, p.last})
			}
		}
		out = left
	}
	return out
}

func fileKey(path string) string { return "file " + path }

// errPDF is the error of readFile for a PDF, whose text takes longer to extract.
var errPDF = errors.New("is a PDF")

// readPDF extracts the text of a PDF, up to the limit of one prompt.
func readPDF(ctx context.Context, path string) (Block, error) {
	data, err := safeio.Read(path, maxRead)
	if err != nil {
		return Block{}, fmt.Errorf("cannot be read: %w", safeio.Cause(err))
	}
	text, err := pdftext.Text(ctx, data)
	if err != nil {
		return Block{}, fmt.Errorf("is a PDF without a text that can be used: %w", err)
	}
	if len(text) > maxBlock {
		const cut = "\n[the rest is left out]\n"
		text = strings.ToValidUTF8(text[:maxBlock-len(cut)], "") + cut
	}
	return Block{Label: path, Text: text}, nil
}

// readFile reads the text of a file, or an image. It may be larger than the limit of a block,
// because the caller may use only a part of it. The error completes a sentence that begins with the
// file's name.
func readFile(path string, info fs.FileInfo) (Block, error) {
	if !info.Mode().IsRegular() {
		return Block{}, errors.New("is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return Block{}, errors.New("cannot be read")
	}
	defer f.Close()
	const head = 8000 // enough to recognise the type
	data, err := io.ReadAll(io.LimitReader(f, head))
	if err != nil {
		return Block{}, errors.New("cannot be read")
	}
	image, limit := workspace.ImageType(data), int64(maxRead)
	if image != "" {
		limit = maxImage
	} else if pdftext.Is(data) {
		return Block{}, errPDF
	} else if _, text := decode(data); !text {
		return Block{}, errors.New("is a binary file")
	}
	if info.Size() > limit {
		return Block{}, fmt.Errorf("has %d bytes, which is too much", info.Size())
	}
	rest, err := io.ReadAll(io.LimitReader(f, limit-int64(len(data))+1))
	if err != nil {
		return Block{}, errors.New("cannot be read")
	}
	if data = append(data, rest...); int64(len(data)) > limit {
		return Block{}, fmt.Errorf("has more than %d bytes, which is too much", limit)
	}
	if image != "" {
		if err := workspace.CheckImage(data, image); err != nil {
			return Block{}, err
		}
		return Block{Label: path, Text: "The image that follows.", MediaType: image, Data: data}, nil
	}
	text, ok := decode(data)
	if !ok {
		return Block{}, errors.New("is a binary file")
	}
	return Block{Label: path, Text: text}, nil
}

// decodeImage decodes an image that the client sends, as plain base64 or a data URL.
func decodeImage(text string) (Block, error) {
	if strings.HasPrefix(text, "data:") {
		_, text, _ = strings.Cut(text, ",")
	}
	text = strings.TrimRight(text, "=\r\n ")
	if len(text) > base64.RawStdEncoding.EncodedLen(maxImage) {
		return Block{}, fmt.Errorf("an image has more than %d bytes", maxImage)
	}
	data, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return Block{}, fmt.Errorf("an image is not valid base64: %w", err)
	}
	t := workspace.ImageType(data)
	if t == "" {
		return Block{}, errors.New("an image is not a PNG, JPEG, GIF or WebP")
	}
	if err := workspace.CheckImage(data, t); err != nil {
		return Block{}, fmt.Errorf("an attachment %w", err)
	}
	return Block{Label: "image", Text: "The image that follows.", MediaType: t, Data: data}, nil
}
