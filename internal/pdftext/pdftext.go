// Package pdftext reads the text of PDF files.
//
// A broken or hostile file causes an error, not a panic. Reading is limited in time, in the number
// of pages and bytes of text, and in how often the file is read (the parser limits the nesting of
// objects, which a test checks). The package does not recognize text in images, and words are in
// the order of the file.
package pdftext

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ledongthuc/pdf"
)

const (
	maxPages = 2000
	maxText  = 4 << 20          // bytes
	maxTime  = 20 * time.Second // for a file
	// The parser reads parts of the file again for each object. The limit is this multiple of the file's
	// size, but at least minLimit bytes.
	maxReads = 50
	minLimit = 16 << 20
)

// Is reports whether a file is a PDF.
func Is(data []byte) bool { return bytes.HasPrefix(data, []byte("%PDF-")) }

// Text returns the text of a PDF, with a separator line before each page.
func Text(ctx context.Context, data []byte) (text string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime, fmt.Errorf("it takes longer than %s", maxTime))
	defer cancel()
	source := &boundedReader{ctx: ctx, data: data, remaining: max(int64(len(data))*maxReads, minLimit)}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the PDF cannot be read: %v", p)
		}
		if cause := source.err; cause != nil {
			err = fmt.Errorf("the PDF cannot be read: %w", cause)
		}
	}()
	r, err := pdf.NewReader(source, int64(len(data)))
	if err != nil {
		return "", fmt.Errorf("the PDF cannot be read: %w", err)
	}
	var out strings.Builder
	list := collectPages(r.Trailer().Key("Root").Key("Pages"), nil)
	pages := max(r.NumPage(), len(list))
	empty := true
	for i, page := range list {
		body, err := page.GetPlainText(nil)
		if err != nil {
			body = "[this page cannot be read: " + err.Error() + "]"
		}
		body = strings.TrimSpace(strings.ToValidUTF8(body, "�"))
		empty = empty && body == ""
		fmt.Fprintf(&out, "--- page %d of %d ---\n%s\n", i+1, pages, body)
		if out.Len() > maxText {
			return strings.ToValidUTF8(out.String()[:maxText], "") + "\n[the rest of the PDF is left out]\n", nil
		}
	}
	if remaining := pages - len(list); remaining > 0 && len(list) == maxPages {
		fmt.Fprintf(&out, "[%d pages are left out]\n", remaining)
	}
	if empty {
		return "", errors.New("the PDF has no text that can be read; it may consist of images")
	}
	return out.String(), nil
}

// collectPages appends the pages below a node of the page tree in one walk: looking them up one by one
// would read all pages before each of them. A cyclic tree ends with the read limit.
func collectPages(node pdf.Value, pages []pdf.Page) []pdf.Page {
	kids := node.Key("Kids")
	if kids.IsNull() && node.Kind() == pdf.Dict && node.Key("Type").Name() != "Pages" {
		return append(pages, pdf.Page{V: node})
	}
	for i := 0; i < kids.Len() && len(pages) < maxPages; i++ {
		pages = collectPages(kids.Index(i), pages)
	}
	return pages
}

// boundedReader reads a file until ctx ends or the limit is reached. After that, each read fails.
type boundedReader struct {
	ctx       context.Context
	data      []byte
	remaining int64 // bytes that may still be read
	err       error
}

// ReadAt implements io.ReaderAt.
func (b *boundedReader) ReadAt(p []byte, off int64) (int, error) {
	switch {
	case b.err != nil:
		return 0, b.err
	case b.ctx.Err() != nil:
		b.err = context.Cause(b.ctx)
		return 0, b.err
	case b.remaining <= 0:
		b.err = errors.New("its objects are read too often")
		return 0, b.err
	case off < 0 || off >= int64(len(b.data)):
		return 0, io.EOF
	}
	n := copy(p, b.data[off:])
	b.remaining -= int64(n)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
