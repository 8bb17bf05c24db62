package redact

import (
	"io"
	"slices"
)

// Writer writes to w what clean leaves of each piece: a log record is one. A secret that
// is split between two pieces passes.
func Writer(w io.Writer, clean func(string) string) io.Writer { return &writer{w, clean} }

type writer struct {
	w     io.Writer
	clean func(string) string
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.w, w.clean(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Known returns a redactor for the given values alone: what only looks like a secret stays.
func Known(secrets ...string) *Redactor {
	return newRedactor(secrets, func() []look { return nil })
}

// Credentials is Known without what is too short to be a credential: replaced in what a model
// works with, an ordinary word would make it useless.
func Credentials(secrets ...string) *Redactor {
	const least = 8
	return Known(slices.DeleteFunc(slices.Clone(secrets), func(s string) bool {
		return len(s) < least || s == "undefined" || s[0] == '/'
	})...)
}
