// Package pdftext reads the text of PDF files.
//
// It guarantees that a broken or hostile file is an error, not a panic, and that reading
// ends (the parser bounds how deep objects nest, which a test holds it to): in time, after a number of pages and bytes of text, and when the file was read
// several times over. It does not see what is drawn: text in images has to be recognised
// by somebody else, and the order of words is that of the file.
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
	// A file is read again for each object that is looked up: this often its size, at most.
	maxReads = 50
	least    = 16 << 20 // bytes that may be read of any file
)

// Is reports whether a file is a PDF.
func Is(data []byte) bool { return bytes.HasPrefix(data, []byte("%PDF-")) }

// Text returns the text of a PDF, with a line before each page.
func Text(ctx context.Context, data []byte) (text string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime, fmt.Errorf("it takes longer than %s", maxTime))
	defer cancel()
	source := &bounded{ctx: ctx, data: data, left: max(int64(len(data))*maxReads, least)}
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
	list := collect(r.Trailer().Key("Root").Key("Pages"), nil)
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
	if left := pages - len(list); left > 0 && len(list) == maxPages {
		fmt.Fprintf(&out, "[%d pages are left out]\n", left)
	}
	if empty {
		return "", errors.New("the PDF has no text that can be read; it may consist of images")
	}
	return out.String(), nil
}

// collect adds the pages below a node of a file's tree, in one walk: looked up one by one,
// each would be found by reading those before it. A tree that leads back to itself ends
// with what may be read.
func collect(node pdf.Value, pages []pdf.Page) []pdf.Page {
	kids := node.Key("Kids")
	if kids.IsNull() && node.Kind() == pdf.Dict && node.Key("Type").Name() != "Pages" {
		return append(pages, pdf.Page{V: node})
	}
	for i := 0; i < kids.Len() && len(pages) < maxPages; i++ {
		pages = collect(kids.Index(i), pages)
	}
	return pages
}

// bounded fails when enough was read. A caller that goes on all the same gets nothing new.
type bounded struct {
	ctx  context.Context
	data []byte
	left int64
	err  error
}

// ReadAt implements io.ReaderAt.
func (b *bounded) ReadAt(p []byte, off int64) (int, error) {
	switch {
	case b.err != nil:
		return 0, b.err
	case b.ctx.Err() != nil:
		b.err = context.Cause(b.ctx)
		return 0, b.err
	case b.left <= 0:
		b.err = errors.New("it leads round in circles")
		return 0, b.err
	case off < 0 || off >= int64(len(b.data)):
		return 0, io.EOF
	}
	n := copy(p, b.data[off:])
	b.left -= int64(n)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
