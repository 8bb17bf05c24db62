package llm

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/seed-dec29ce4/eca/internal/lines"
)

// NDJSONReader reads a stream of JSON documents, one per line (application/x-ndjson). Blank lines
// are ignored.
type NDJSONReader struct{ lines *lines.Reader }

// NewNDJSONReader reads documents from r.
func NewNDJSONReader(r io.Reader) *NDJSONReader {
	return &NDJSONReader{lines.NewReader(r, maxEvent, ErrEventTooLarge)}
}

// Next returns the next line that is not blank. The line is valid until the next call, and need not
// be valid JSON. At the end of input, Next returns io.EOF. A last line without a newline is
// returned only if it is valid JSON.
func (n *NDJSONReader) Next() ([]byte, error) {
	for {
		line, err := n.lines.Next()
		line = bytes.TrimSpace(line)
		switch {
		case err != nil && (len(line) == 0 || !json.Valid(line)):
			return nil, err
		case len(line) > 0:
			return line, nil
		}
	}
}
