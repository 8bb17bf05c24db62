package lines

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

var errLong = errors.New("too long")

func read(r io.Reader, limit int) string {
	var out []string
	for in := NewReader(r, limit, errLong); ; {
		line, err := in.Next()
		switch {
		case errors.Is(err, errLong):
			out = append(out, "!")
			continue
		case err == nil || len(line) > 0:
			out = append(out, string(line))
		}
		if err != nil {
			return strings.Join(out, "|")
		}
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for in, want := range map[string]string{
		"":                            "",
		"a\nb\r\n\nc":                 "a|b||c",
		"1234567\n12345678\n1\n":      "1234567|!|1",
		"1234567\r\n" + long + "\nok": "1234567|!|ok",
		long:                          "!",
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(in), "bytes": iotest.OneByteReader(strings.NewReader(in))} {
			if got := read(r, 7); got != want {
				t.Errorf("%.20q (%s): %.80q, want %q", in, name, got, want)
			}
		}
	}
	in := NewReader(strings.NewReader("\r\n  \n a \n12345678\nb"), 7, errLong)
	for _, want := range []string{"a", "!", "b", "."} {
		got, err := in.NextMessage()
		if err == nil && string(got) != want || errors.Is(err, errLong) != (want == "!") || errors.Is(err, io.EOF) != (want == ".") {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	if got := read(strings.NewReader(long+"\n"+long), len(long)); got != long+"|"+long {
		t.Errorf("long lines: %.80q", got)
	}
}

// The lines do not depend on how they arrive, and no line is longer than allowed.
func FuzzLines(f *testing.F) {
	f.Add("a\nbc\r\n\nd", 3)
	f.Add(strings.Repeat("x", 40_000)+"\ny", 39_999)
	f.Fuzz(func(t *testing.T, in string, limit int) {
		limit = max(limit, 0)
		whole, pieces := read(strings.NewReader(in), limit), read(iotest.HalfReader(strings.NewReader(in)), limit)
		if whole != pieces {
			t.Fatalf("%q, in pieces %q", whole, pieces)
		}
	})
}
