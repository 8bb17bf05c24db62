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

// MatchID returns the ids for which a user's text can stand: the one that equals it, or else all that
// begin with it.
func MatchID(text string, ids []string) []string {
	if slices.Contains(ids, text) {
		return []string{text}
	}
	if ShortID(text) != "" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !strings.HasPrefix(id, text) })
}

// ShortID returns the part of a message that a text is too short for the beginning of an id, or "" if
// it is long enough.
func ShortID(text string) string {
	if len(text) >= minIDPrefix {
		return ""
	}
	return fmt.Sprintf("; the beginning of an id needs at least %d characters", minIDPrefix)
}
