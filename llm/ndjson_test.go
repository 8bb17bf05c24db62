package llm

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func documents(r io.Reader) (out []string, err error) {
	n := NewNDJSONReader(r)
	for {
		line, err := n.Next()
		if err != nil {
			return out, err
		}
		out = append(out, string(line))
	}
}

func TestNDJSON(t *testing.T) {
	long := `"` + strings.Repeat("x", 100_000) + `"`
	for _, c := range []struct{ name, in, want string }{
		{"plain", "{}\n[1]\n", "{}|[1]"},
		{"blank lines, CRLF", "\r\n{}\r\n \n[]\n", "{}|[]"},
		{"no last newline", "{}\n[1]", "{}|[1]"},
		{"cut", "{}\n[1", "{}"},
		{"no JSON", "x\ny", "x"},
		{"long", long + "\n", long},
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(c.in), "bytes": iotest.OneByteReader(strings.NewReader(c.in))} {
			got, err := documents(r)
			if !errors.Is(err, io.EOF) || strings.Join(got, "|") != c.want {
				t.Errorf("%s (%s): %.80q, %v", c.name, name, got, err)
			}
		}
	}
	if _, err := documents(strings.NewReader(strings.Repeat("x", maxEvent+1<<16))); !errors.Is(err, ErrEventTooLarge) {
		t.Errorf("an endless line: %v", err)
	}
	broken := errors.New("broken")
	if got, err := documents(io.MultiReader(strings.NewReader("{}\n{"), iotest.ErrReader(broken))); !errors.Is(err, broken) || len(got) != 1 {
		t.Errorf("a broken connection: %q, %v", got, err)
	}
}

// The reader's result does not depend on how the bytes arrive.
func FuzzNDJSON(f *testing.F) {
	f.Add([]byte("{}\r\n\n[1]\n{"))
	f.Fuzz(func(t *testing.T, in []byte) {
		a, errA := documents(strings.NewReader(string(in)))
		b, errB := documents(iotest.HalfReader(strings.NewReader(string(in))))
		if fmt.Sprint(a, errA) != fmt.Sprint(b, errB) {
			t.Errorf("%q: %q %v, in pieces %q %v", in, a, errA, b, errB)
		}
	})
}
