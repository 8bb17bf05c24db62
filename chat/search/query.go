package search

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// Role is the speaker of a message.
type Role string

// Roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	Reasoning Role = "reasoning"
	Tool      Role = "tool"    // a tool call: its name, arguments and result
	Summary   Role = "summary" // of a conversation that was compacted
)

// roles lists all roles. The index stores a role as its position in this list.
func roles() []Role { return []Role{User, Assistant, Reasoning, Tool, Summary} }

// Here is the value of the filter workspace that stands for the caller's folders.
const Here = "here"

// Limits of a query. Text beyond them is ignored.
const (
	maxQuery = 16 << 10 // bytes
	maxTerms = 32
)

// maxShown is how much of a user's text a message quotes, in bytes.
const maxShown = 60

// Query selects the messages that have all terms and pass all filters.
type Query struct {
	terms      []term
	Ignored    int       // terms beyond the limit
	Roles      []Role    // any of these; empty: all roles
	Workspaces []string  // any of these folders, as the user wrote them; may include Here
	Since      time.Time // zero: no limit
	Until      time.Time // exclusive
	Problems   []string  // ignored filters, with the reasons
}

// Empty reports whether there are no terms to search for.
func (q Query) Empty() bool { return len(q.terms) == 0 }

// term is a word or phrase.
type term struct {
	text   string
	prefix bool // the last word is a prefix
}

// Parse parses a user's query: words, "quoted phrases", prefixes (words that end with an asterisk),
// and the filters role:, workspace:, since: and until:. There is no other syntax, and every text is a
// valid query.
func Parse(text string, now time.Time) Query {
	var q Query
	if len(text) > maxQuery {
		text = text[:maxQuery]
		q.Problems = append(q.Problems, fmt.Sprintf("only the first %d KB of the query are used", maxQuery>>10))
	}
	for rest := plainText(text); ; {
		var w string
		var quoted bool
		if w, quoted, rest = cutTerm(rest); w == "" && rest == "" {
			break
		}
		if !quoted {
			name, value, found := strings.Cut(w, ":")
			if found && slices.Contains(filters(), name) {
				if value == "" && strings.HasPrefix(rest, `"`) {
					value, _, rest = cutTerm(rest)
				}
				q.addFilter(name, value, now)
				continue
			}
		}
		t := term{text: w}
		if quoted && strings.HasPrefix(rest, "*") {
			rest, t.prefix = strings.TrimLeft(rest, "*"), true
		}
		if trimmed := strings.TrimRight(w, "*"); !quoted && trimmed != w {
			t = term{trimmed, true}
		}
		if t.text = normalizeTerm(t.text); t.text == "" {
			continue
		}
		if len(q.terms) == maxTerms {
			q.Ignored++
			continue
		}
		q.terms = append(q.terms, t)
	}
	if !q.Since.IsZero() && !q.Until.IsZero() && !q.Since.Before(q.Until) {
		q.Problems = append(q.Problems, "since: is not before until:, so no message can be found")
	}
	if q.Empty() && len(q.Problems) == 0 && strings.TrimSpace(text) != "" {
		q.Problems = append(q.Problems, "the query has no word to search for: write letters or digits")
	}
	if q.Ignored > 0 {
		q.Problems = append(q.Problems, fmt.Sprintf("only the first %d words are used", maxTerms))
	}
	return q
}

// filters lists the names of the filters.
func filters() []string { return []string{"role", "workspace", "since", "until"} }

// MisspelledFilter returns a hint about a word of a query that looks like a misspelled filter, for a
// search that found nothing. It is empty if each filter is known.
func MisspelledFilter(query string) string {
	for _, word := range strings.Fields(query) {
		name, _, found := strings.Cut(word, ":")
		if near := suggest.Nearest(name, filters()); found && near != "" && near != name {
			return fmt.Sprintf("there is no filter %s:, so it was searched for as text; did you mean %s:?", name, near)
		}
	}
	return ""
}

// cutTerm returns the first word or phrase of a text, and the rest. An unclosed quote extends to the end.
func cutTerm(text string) (word string, quoted bool, rest string) {
	text = strings.TrimLeftFunc(text, unicode.IsSpace)
	if after, ok := strings.CutPrefix(text, `"`); ok {
		word, rest, _ = strings.Cut(after, `"`)
		return word, true, rest
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r == '"' || unicode.IsSpace(r) }); i >= 0 {
		return text[:i], false, text[i:]
	}
	return text, false, ""
}

// normalizeTerm replaces each run of characters that separate words in the index with a space.
func normalizeTerm(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Co)
	}), " ")
}

// addFilter adds a filter, or a problem if the filter is invalid.
func (q *Query) addFilter(name, value string, now time.Time) {
	switch name {
	case "role":
		role := Role(strings.ToLower(value))
		if !slices.Contains(roles(), role) {
			q.Problems = append(q.Problems, fmt.Sprintf("unknown role:%s; roles are user, assistant, reasoning, tool and summary", shorten.Bytes(value, maxShown)))
			return
		}
		q.Roles = append(q.Roles, role)
	case "workspace":
		if value == "" {
			q.Problems = append(q.Problems, "workspace: needs a folder, or "+Here)
			return
		}
		q.Workspaces = append(q.Workspaces, value)
	case "since", "until":
		at, err := ParseDate(value, now)
		if err != nil {
			q.Problems = append(q.Problems, name+": "+err.Error())
			return
		}
		if name == "since" {
			q.Since = at
		} else {
			q.Until = at
		}
	}
}

// match returns the query in the syntax of FTS5. Each term is a quoted string, in which only quotes
// are special, and terms do not contain quotes.
func (q Query) match() string {
	parts := make([]string, len(q.terms))
	for i, t := range q.terms {
		parts[i] = `"` + t.text + `"`
		if t.prefix {
			parts[i] += " *"
		}
	}
	return strings.Join(parts, " AND ")
}

// plainText replaces invalid UTF-8 and control characters, except line breaks and tabs, with spaces.
func plainText(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, " ")
	}
	if strings.IndexFunc(text, isControl) < 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		if isControl(r) {
			return ' '
		}
		return r
	}, text)
}

func isControl(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }

// cutText shortens a text to at most the given number of bytes, without cutting a character.
func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// ParseDate parses a date: a time before now (30m, 2h, 1d), a day (2025-01-01, which means midnight
// UTC) or an instant (2025-01-01T14:30:00Z).
func ParseDate(s string, now time.Time) (time.Time, error) {
	if m := regexp.MustCompile(`^(\d+)([mhd])$`).FindStringSubmatch(s); m != nil {
		unit := map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[m[2]]
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err == nil && n <= int64(1<<63-1)/int64(unit) {
			return now.Add(-time.Duration(n) * unit), nil
		}
		return time.Time{}, fmt.Errorf("%s is too long ago", shorten.Bytes(s, maxShown))
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t, err = time.Parse(time.DateOnly, s)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("invalid date %q: use a time ago (30m, 2h, 1d), a day (2025-01-01) or an instant (2025-01-01T14:30:00Z)", shorten.Bytes(s, maxShown))
	}
	return t, nil
}
