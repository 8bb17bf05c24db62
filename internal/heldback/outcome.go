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

// Outcome is the result of a search.
type Outcome struct {
	Moved  []Item
	Failed []Failure
	Missed string // why there may be more; empty if the search was complete

	Resumed bool      // it is about an earlier command: eca was stopped, or could not finish the search
	Damaged time.Time // start of a command whose record cannot be read; otherwise zero
}

// Failure is a protected file that could not be moved away.
type Failure struct {
	Path string
	Err  error
}

// Whole reports whether the search was complete and everything was moved.
func (o Outcome) Whole() bool { return o.Missed == "" && len(o.Failed) == 0 }

// maxNamed is how many paths a note names.
const maxNamed = 20

// Lines describes the outcome for the model and the user.
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
		lines = append(lines, fmt.Sprintf("%s made %s, which other programs use or run; it was moved to %s", subject, Quote(item.Path()), Quote(item.at)))
	}
	for i, f := range o.Failed {
		if i == maxNamed {
			lines = append(lines, fmt.Sprintf("%s made %d more such places, which could not be moved either", subject, len(o.Failed)-maxNamed))
			break
		}
		lines = append(lines, fmt.Sprintf("WARNING: %s made %s, which other programs use or run; it could not be moved away: %s. Look at it before you use another program in this folder", subject, Quote(f.Path), Quote(f.Err.Error())))
	}
	if o.Missed != "" {
		lines = append(lines, fmt.Sprintf("WARNING: %s may have made files that other programs use or run, such as git hooks or .envrc, which eca did not find: %s. Remove what the command made before you use another program in this folder", subject, Quote(o.Missed)))
	}
	if !o.Damaged.IsZero() {
		lines = append(lines, "WARNING: eca was ended while a command ran that began at "+o.Damaged.Format(time.RFC3339)+
			", and the record of it is damaged. If it ran in this folder, look for files that it made and that other programs use or run, such as git hooks or .envrc")
	}
	if !o.Whole() {
		lines = append(lines, "until this is settled, eca asks in this workspace even about commands that its own rules would allow")
	}
	return lines
}

// Paths lists the former paths of the moved files.
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

// Quote formats a path on one line and shows all its characters, since a command chose the name.
func Quote(path string) string {
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	if !utf8.ValidString(path) || strings.ContainsFunc(path, hidden) {
		return strconv.Quote(path)
	}
	return path
}

// Path returns the former path.
func (i Item) Path() string { return filepath.Join(i.root, i.name) }
