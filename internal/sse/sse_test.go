package sse

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

const maxEvent = 1 << 20

var errLong = errors.New("too long")

func events(r io.Reader) (out []string, err error) {
	s := NewReader(r, maxEvent, errLong)
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
		{"a byte order mark", "\uFEFFdata: a\n\n", "=a"},
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
	if _, err := events(strings.NewReader("data: " + strings.Repeat("x", maxEvent+1<<16) + "\n\n")); !errors.Is(err, errLong) {
		t.Errorf("oversized event: %v", err)
	}
	if _, err := events(strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", 1<<16)+"\n", maxEvent>>16+1) + "\n")); !errors.Is(err, errLong) {
		t.Errorf("an oversized event of many lines: %v", err)
	}
	if _, err := events(strings.NewReader(": " + strings.Repeat("x", maxEvent+1<<16) + "\n\n")); !errors.Is(err, errLong) {
		t.Errorf("an oversized comment: %v", err)
	}
}

// The reader knows the id of the last complete event, and returns an event that the end of the
// stream cut off, so that a caller can continue after it.
func TestPosition(t *testing.T) {
	s := NewReader(strings.NewReader("id: 1\ndata: a\n\nid: 2\nretry: 1500\n\nid: x\x00y\ndata: b\n\nretry: -1\nid: 3\nevent: e\ndata: cut"), maxEvent, errLong)
	s.ID = "0"
	for _, want := range []string{"=a 1 -1ns <nil>", "=b 2 1.5s <nil>", "e=cut 2 1.5s EOF", "= 2 1.5s EOF"} {
		e, err := s.Next()
		if got := fmt.Sprintf("%s=%s %s %s %v", e.Name, e.Data, s.ID, s.Retry, err); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A written event is read unchanged.
func TestWriter(t *testing.T) {
	answer := httptest.NewRecorder()
	w := NewWriter(answer)
	if err := errors.Join(w.Event("7", "x", []byte("{}")), w.Comment("alive"), w.Event("", "", []byte("a")), w.Flush()); err != nil {
		t.Fatal(err)
	}
	if got, want := answer.Body.String(), "id: 7\nevent: x\ndata: {}\n\n: alive\n\ndata: a\n\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, err := events(answer.Body); !errors.Is(err, io.EOF) || strings.Join(got, "|") != "x={}|=a" {
		t.Errorf("%q, %v", got, err)
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
