package chat

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// maxIDLength is the maximum length, in bytes, of chat ids that clients choose (eca-protocol.md 2.3).
const maxIDLength = 256

// ValidID reports whether a client may use an id for a chat.
func ValidID(id string) bool {
	if id == "" || len(id) > maxIDLength || IsSubagent(id) {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

// minIDPrefix is the minimum length of the beginning of an id that can stand for the id.
const minIDPrefix = 4

// MatchID returns the ids that a user's text can mean: the id that equals the text, or else all ids
// that begin with it. A text shorter than minIDPrefix matches only an equal id.
func MatchID(text string, ids []string) []string {
	if slices.Contains(ids, text) {
		return []string{text}
	}
	if ShortID(text) != "" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !strings.HasPrefix(id, text) })
}

// ShortID returns a hint to append to an error message if a text is too short to match ids by their
// beginning, or "" if it is long enough.
func ShortID(text string) string {
	if len(text) >= minIDPrefix {
		return ""
	}
	return fmt.Sprintf("; the beginning of an id needs at least %d characters", minIDPrefix)
}
