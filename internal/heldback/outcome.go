package heldback

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Outcome is what a search found.
type Outcome struct {
	Moved  []Item
	Failed []Failure
	Missed string // why there may be more; empty if there are not

	Resumed bool      // the command is an earlier one: eca was ended, or could not settle it
	Damaged time.Time // when a command began whose record cannot be read; zero if it was read
}

// Failure is a place that could not be moved away.
type Failure struct {
	Path string
	Err  error
}

// Whole reports whether everything was looked at, and moved.
func (o Outcome) Whole() bool { return o.Missed == "" && len(o.Failed) == 0 }

// maxNamed bounds how many places a note names.
const maxNamed = 20

// Lines say what was found, for the model and the user.
func (o Outcome) Lines() (lines []string) {
	subject := "the command"
	if o.Resumed {
		subject = "an earlier command"
	}
	for i, item := range o.Moved {
		if i == maxNamed {
			lines = append(lines, fmt.Sprintf("%s made %d more such places, which were moved as well", subject, len(o.Moved)-maxNamed))
			break
		}
		lines = append(lines, fmt.Sprintf("%s made %s, which other programs obey or run; it was moved to %s", subject, Quote(item.Path()), Quote(item.at)))
	}
	for i, f := range o.Failed {
		if i == maxNamed {
			lines = append(lines, fmt.Sprintf("%s made %d more such places, which could not be moved either", subject, len(o.Failed)-maxNamed))
			break
		}
		lines = append(lines, fmt.Sprintf("WARNING: %s made %s, which other programs obey or run; it could not be moved away: %s. Look at it before you use another program in this folder", subject, Quote(f.Path), Quote(f.Err.Error())))
	}
	if o.Missed != "" {
		lines = append(lines, fmt.Sprintf("WARNING: %s may have made files that other programs obey or run, such as git hooks or .envrc, which eca did not find: %s. Remove what the command made before you use another program in this folder", subject, Quote(o.Missed)))
	}
	if !o.Damaged.IsZero() {
		lines = append(lines, "WARNING: eca was ended while a command ran that began at "+o.Damaged.Format(time.RFC3339)+
			", and the record of it is damaged. If it ran in this folder, look for files that it made and that other programs obey or run, such as git hooks or .envrc")
	}
	if !o.Whole() {
		lines = append(lines, "until this is settled, eca asks in this workspace also about commands that it would run without a question by its own rules")
	}
	return lines
}

// Paths lists where the places were that were moved.
func (o Outcome) Paths() string {
	var names []string
	for i, item := range o.Moved {
		if i == maxNamed {
			names = append(names, fmt.Sprintf("%d others", len(o.Moved)-maxNamed))
			break
		}
		names = append(names, Quote(item.Path()))
	}
	return strings.Join(names, ", ")
}

// Quote writes a path as one line that shows all that is in it: a command chose the name.
func Quote(path string) string {
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	if !utf8.ValidString(path) || strings.ContainsFunc(path, hidden) {
		return strconv.Quote(path)
	}
	return path
}

// Path is where a place was.
func (i Item) Path() string { return filepath.Join(i.root, i.name) }
