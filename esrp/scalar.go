package esrp

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

// UUID is an identifier of a record. It is parsed in the forms of ParseUUID, and formatted in lower
// case with hyphens (esrp.md 1.5).
type UUID [16]byte

// ParseUUID parses a UUID: hyphenated, as 32 hexadecimal digits, with urn:uuid:, or in braces.
func ParseUUID(s string) (UUID, error) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) == 38 && (s[0] != '{' || s[37] != '}') { // the uuid module accepts any two surrounding characters
		return UUID{}, fmt.Errorf("%q is not a UUID", s)
	}
	return UUID(id), nil
}

// DerivedUUID returns the version 5 UUID of a name in eca's name space, which is always the same for
// the same name (esrp.md 12, rule 1).
func DerivedUUID(name string) UUID {
	space := uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://eca.dev/esrp"))
	return UUID(uuid.NewSHA1(space, []byte(name)))
}

func (u UUID) String() string { return uuid.UUID(u).String() }

// Instant is a moment in UTC. It preserves leap seconds, which time.Time does not support.
type Instant struct {
	time.Time
	leap bool
}

// At converts a time to an Instant.
func At(t time.Time) Instant { return Instant{Time: t.UTC()} }

// ParseInstant parses an RFC 3339 time with any offset. It accepts a space instead of the T, but no
// lower-case letters (esrp.md 1.5).
func ParseInstant(s string) (Instant, error) {
	bad := fmt.Errorf("%q is not an RFC 3339 time", s)
	if len(s) < len("2006-01-02T15:04:05Z") || strings.ContainsAny(s, "tz,") {
		return Instant{}, bad
	}
	text := []byte(s)
	if text[10] == ' ' {
		text[10] = 'T'
	}
	leap := string(text[17:19]) == "60"
	if leap { // parse it as second 59
		text[17], text[18] = '5', '9'
	}
	t, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return Instant{}, bad
	}
	if t = t.UTC(); t.Year() < 0 || t.Year() > 9999 {
		return Instant{}, errors.Join(bad, errors.New("the year is out of range"))
	}
	return Instant{t, leap}, nil
}

// String formats the time with 0, 3, 6 or 9 fractional digits, as many as necessary.
func (i Instant) String() string {
	layout := "2006-01-02T15:04:05"
	switch ns := i.Nanosecond(); {
	case ns == 0:
	case ns%1e6 == 0:
		layout += ".000"
	case ns%1e3 == 0:
		layout += ".000000"
	default:
		layout += ".000000000"
	}
	text := i.UTC().Format(layout)
	if i.leap {
		text = text[:17] + "60" + text[19:]
	}
	return text + "Z"
}
