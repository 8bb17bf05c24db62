package llm

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func events(r io.Reader) (out []string, err error) {
	s := NewSSEReader(r)
	for {
		e, err := s.Next()
		if err != nil {
			return out, err
		}
		out = append(out, e.Name+"="+string(e.Data))
	}
}

func TestSSE(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "data: a\n\ndata:b\n\n", "=a|=b"},
		{"named, CRLF", "event: x\r\ndata: a\r\n\r\n", "x=a"},
		{"several lines", "data: a\ndata: b\n\n", "=a\nb"},
		{"comments and ids", ": keep-alive\n\nid: 7\nretry: 10\ndata: a\n\n", "=a"},
		{"no data", "event: x\n\ndata: a\n\n", "=a"},
		{"empty data", "data:\n\n", "="},
		{"cut", "data: a\n\ndata: b\n", "=a"},
		{"long", "data: " + strings.Repeat("x", 100_000) + "\n\n", "=" + strings.Repeat("x", 100_000)},
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(c.in), "bytes": iotest.OneByteReader(strings.NewReader(c.in))} {
			got, err := events(r)
			if !errors.Is(err, io.EOF) || strings.Join(got, "|") != c.want {
				t.Errorf("%s (%s): %.80q, %v", c.name, name, got, err)
			}
		}
	}
	if _, err := events(strings.NewReader("data: " + strings.Repeat("x", maxEvent+1<<16) + "\n\n")); !errors.Is(err, ErrEventTooLarge) {
		t.Errorf("oversized event: %v", err)
	}
	if _, err := events(strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", maxEvent>>20+1) + "\n")); !errors.Is(err, ErrEventTooLarge) {
		t.Errorf("an oversized event of many lines: %v", err)
	}
	if _, err := events(strings.NewReader(": " + strings.Repeat("x", maxEvent+1<<16) + "\n\n")); !errors.Is(err, ErrEventTooLarge) {
		t.Errorf("an oversized comment: %v", err)
	}
}

// The reader's result does not depend on how the bytes arrive.
func FuzzSSE(f *testing.F) {
	f.Add([]byte("event: a\ndata: b\n\n: c\ndata: d\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		a, errA := events(strings.NewReader(string(in)))
		b, errB := events(iotest.HalfReader(strings.NewReader(string(in))))
		if fmt.Sprint(a, errA) != fmt.Sprint(b, errB) {
			t.Errorf("%q: %q %v, in pieces %q %v", in, a, errA, b, errB)
		}
	})
}
