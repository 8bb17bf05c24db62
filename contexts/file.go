package contexts

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/seed-dec29ce4/eca/workspace"
)

// maxRanged bounds a file of which a range is wanted: it may be a small part of a large
// file, but not of an absurd one.
const maxRanged = 16 << 20

// path adds a file or a folder, whatever the client took it for.
func (r *resolver) path(ref Ref) error {
	if ref.Path == "" {
		return fmt.Errorf("a %s without a path", ref.Type)
	}
	path := workspace.Abs(r.roots, ref.Path)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist", path)
	case err != nil:
		return fmt.Errorf("%s can not be read", path)
	case info.IsDir():
		return r.directory(path)
	case r.seen[fileKey(path)]:
		return nil
	}
	b, err := readFile(path, info, ref.FirstLine, ref.LastLine)
	if err != nil {
		return fmt.Errorf("%s %w", path, err)
	}
	key := fileKey(path)
	if b.Label != path {
		key += b.Label // a range is not the whole
	}
	return r.put(key, b)
}

func fileKey(path string) string { return "file " + path }

// readFile reads a file, or a range of its lines, or an image. The error completes a
// sentence that begins with the file's name.
func readFile(path string, info fs.FileInfo, first, last int) (Block, error) {
	if !info.Mode().IsRegular() {
		return Block{}, errors.New("is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return Block{}, errors.New("can not be read")
	}
	defer f.Close()
	const head = 8000 // enough to tell what it is
	data, err := io.ReadAll(io.LimitReader(f, head))
	if err != nil {
		return Block{}, errors.New("can not be read")
	}
	image, limit := workspace.ImageType(data), int64(maxBlock)
	switch {
	case image != "":
		limit = maxImage
	case workspace.IsBinary(data):
		return Block{}, errors.New("is a binary file")
	case first > 0:
		limit = maxRanged
	}
	if info.Size() > limit {
		return Block{}, fmt.Errorf("has %d bytes, which is too much", info.Size())
	}
	rest, err := io.ReadAll(io.LimitReader(f, limit-int64(len(data))+1))
	if err != nil {
		return Block{}, errors.New("can not be read")
	}
	if data = append(data, rest...); int64(len(data)) > limit {
		return Block{}, fmt.Errorf("has more than %d bytes, which is too much", limit)
	}
	if image != "" {
		return Block{Label: path, Text: "The image that follows.", MediaType: image, Data: data}, nil
	}
	if first <= 0 {
		return Block{Label: path, Text: string(data)}, nil
	}
	lines := bytes.SplitAfter(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	from := min(first-1, len(lines))
	to := min(max(last, first), len(lines))
	if from >= to {
		return Block{}, fmt.Errorf("has no line %d", first)
	}
	return Block{Label: fmt.Sprintf("%s:L%d-L%d", path, first, to), Text: string(bytes.Join(lines[from:to], nil))}, nil
}

// decodeImage reads an image that the client sends, as plain base64 or a data URL.
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
		return Block{}, errors.New("an image is no PNG, JPEG, GIF or WebP")
	}
	return Block{Label: "image", Text: "The image that follows.", MediaType: t, Data: data}, nil
}
