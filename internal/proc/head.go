package proc

import "bytes"

// Head takes what a child writes and keeps the beginning. It never fails, so that the child goes
// on. It is not safe for concurrent use.
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

// Bytes returns what is kept.
func (h *Head) Bytes() []byte { return h.kept.Bytes() }

// String returns what is kept.
func (h *Head) String() string { return h.kept.String() }
