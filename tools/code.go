package tools

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/shorten"
)

// Position is a position in a file. Line and Character count from 1; Character counts UTF-16 code
// units, as editors and language servers do.
type Position struct {
	Path      string // absolute
	Line      int
	Character int
}

func (p Position) String() string { return fmt.Sprintf("%s:%d:%d", p.Path, p.Line, p.Character) }

// Compare orders positions by file, then by line and character.
func (p Position) Compare(o Position) int {
	return cmp.Or(cmp.Compare(p.Path, o.Path), cmp.Compare(p.Line, o.Line), cmp.Compare(p.Character, o.Character))
}

// Diagnostic is a diagnostic of an editor or a language server.
type Diagnostic struct {
	At       Position // Line 0 means the whole file
	Severity Severity
	Message  string
	Source   string // the program that reports it, e.g. gopls; may be empty
	Code     string // the program's code for it; may be empty
}

// MaxMessage is the number of bytes of a message that String shows.
const MaxMessage = 500

// String formats the diagnostic on one line for the model.
func (d Diagnostic) String() string {
	place := d.At.Path
	if d.At.Line > 0 {
		place = d.At.String()
	}
	message := shorten.Bytes(strings.Join(strings.Fields(d.Message), " "), MaxMessage)
	line := place + ": " + d.Severity.String() + ": " + message
	if reporter := shorten.Bytes(strings.Join(strings.Fields(d.Source+" "+d.Code), " "), MaxMessage); reporter != "" {
		line += " [" + reporter + "]"
	}
	return line
}

// Compare orders diagnostics by severity, worst first, then by position.
func (d Diagnostic) Compare(o Diagnostic) int {
	return cmp.Or(cmp.Compare(d.Severity, o.Severity), d.At.Compare(o.At), cmp.Compare(d.Message, o.Message))
}

// Severity of a diagnostic.
type Severity int

// Severities, the worst first.
const (
	Error Severity = iota
	Warning
	Info
	Hint
	Unknown
)

func (s Severity) String() string {
	return [...]string{"error", "warning", "info", "hint", "unknown"}[s]
}
