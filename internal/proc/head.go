package proc

import "bytes"

// Head is a writer that keeps the beginning of a child's output and discards the rest. Writes never
// fail, so the child is not interrupted. Head is not safe for concurrent use.
type Head struct {
	Limit int  // in bytes
	Cut   bool // more was written

	kept bytes.Buffer
}

// Write implements io.Writer.
func (h *Head) Write(p []byte) (int, error) {
	keep := min(len(p), h.Limit-h.kept.Len())
	h.kept.Write(p[:keep])
	h.Cut = h.Cut || keep < len(p)
	return len(p), nil
}

// Bytes returns the beginning of the output.
func (h *Head) Bytes() []byte { return h.kept.Bytes() }

// String returns the beginning of the output.
func (h *Head) String() string { return h.kept.String() }
