package redact

import (
	"io"
	"slices"
)

// Writer applies clean to each write before it passes the text to w; a log record is one write. A
// secret that is split between two writes is not found.
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

// Known returns a redactor for the given values only, without the patterns for secrets.
func Known(secrets ...string) *Redactor {
	return newRedactor(secrets, func() []look { return nil })
}

// Credentials is Known without values that are too short to be a credential: replacing an ordinary
// word in a model's input would make it useless.
func Credentials(secrets ...string) *Redactor {
	const least = 8
	return Known(slices.DeleteFunc(slices.Clone(secrets), func(s string) bool {
		return len(s) < least || s == "undefined" || s[0] == '/'
	})...)
}
