package jsonrpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

func frame(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }

// readAll reads all frames and renders bodies and errors.
func readAll(t testing.TB, in string, limit int) []string {
	t.Helper()
	r := ContentLength(strings.NewReader(in), limit)
	var out []string
	for {
		body, err := r.Next()
		var bad *Error
		switch {
		case errors.As(err, &bad):
			out = append(out, fmt.Sprintf("%d %s", bad.Code, bad.Message))
		case err != nil:
			if err != io.EOF { //nolint:errorlint // next returns it bare
				out = append(out, err.Error())
			}
			return out
		default:
			out = append(out, string(body))
		}
	}
}

func TestFrames(t *testing.T) {
	ok := frame(`{"ok":1}`)
	for _, c := range []struct {
		name, in string
		want     string // joined by |
	}{
		{"two", ok + ok, `{"ok":1}|{"ok":1}`},
		{"bare newlines", "Content-Length: 8\n\n{\"ok\":1}", `{"ok":1}`},
		{"counted trailing newline", "Content-Length: 9\r\n\r\n{\"ok\":1}\n" + ok, `{"ok":1}|{"ok":1}`},
		{"other headers and cases", "content-TYPE: application/vscode-jsonrpc; charset=utf-8\r\nCONTENT-length:8 \r\nX: y\r\n\r\n{\"ok\":1}", `{"ok":1}`},
		{"charset utf8", "Content-Length: 8\r\nContent-Type: x; charset=\"utf8\"\r\n\r\n{\"ok\":1}", `{"ok":1}`},
		{"multi-byte", frame(`{"x":"👋é"}`), `{"x":"👋é"}`},
		{"garbage before", "hello\r\n\r\nworld\r\n" + ok, `{"ok":1}`},
		{"glued garbage", "garbage" + ok, `{"ok":1}`},
		{"too short", "Content-Length: 3\r\n\r\n{\"ok\":1}" + ok, `-32700 message is not valid JSON, or nested too deeply|{"ok":1}`},
		{"too long", "Content-Length: 20\r\n\r\n{\"ok\":1}" + ok, `-32700 message is not valid JSON, or nested too deeply|{"ok":1}`},
		{"invalid JSON", frame(`{"ok":`) + ok, `-32700 message is not valid JSON, or nested too deeply|{"ok":1}`},
		{"not UTF-8", frame("{\"x\":\"\xff\xfe\"}") + ok, `-32700 message is not valid UTF-8|{"ok":1}`},
		{"a number", frame(`42`) + ok, `-32600 message is neither a JSON object nor a batch|{"ok":1}`},
		{"empty", "Content-Length: 0\r\n\r\n" + ok, `-32600 empty message|{"ok":1}`},
		{"bad length", "Content-Length: many\r\n\r\n" + ok, `-32600 bad Content-Length "many"|{"ok":1}`},
		{"negative length", "Content-Length: -5\r\n\r\n" + ok, `-32600 bad Content-Length "-5"|{"ok":1}`},
		{"absurd length", "Content-Length: 99999999999\r\n\r\n{\"x\":2}" + ok, `-32600 Content-Length 99999999999 cannot be meant|{"ok":1}`},
		{"bad charset", "Content-Length: 8\r\nContent-Type: x; charset=latin-1\r\n\r\n{\"ok\":1}" + ok, `-32600 unsupported charset "latin-1"|{"ok":1}`},
		{"truncated body", "Content-Length: 50\r\n\r\n{\"ok\"", `unexpected EOF after 5 of the 50 bytes of a message`},
		{"no body", "Content-Length: 50\r\n\r\n", `unexpected EOF after 0 of the 50 bytes of a message`},
		{"truncated header", "Content-Len", `unexpected EOF in the header of a message`},
		{"header without an end", ok + "Content-Length: 8\r\n", `{"ok":1}|unexpected EOF in the header of a message`},
		{"no frame", "{\"ok\":1}", ``},
		{"oversized", frame(strings.Repeat(" ", 2000)) + ok, `-32600 message of 2000 bytes is over the limit of 1000|{"ok":1}`},
		{"endless header line", strings.Repeat("x", 100_000) + "\n" + ok, `{"ok":1}`},
	} {
		if got := strings.Join(readAll(t, c.in, 1000), "|"); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// A declared length alone must not cost memory.
func TestHugeDeclaredLength(t *testing.T) {
	in := "Content-Length: 60000000\r\n\r\n{"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	readAll(t, in, DefaultMaxFrame)
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<20 {
		t.Errorf("%d bytes were allocated for a frame that never came", allocated)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte(frame(`{"jsonrpc":"2.0","id":1,"method":"x"}`)))
	f.Add([]byte("Content-Length: 3\r\n\r\n{\"ok\":1}" + frame(`{"ok":1}`)))
	f.Add([]byte("Content-Length: 99999999999999999999\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 1 << 16
		for _, out := range readAll(t, string(in), limit) {
			if len(out) > limit+200 {
				t.Fatalf("a body of %d bytes passed the limit", len(out))
			}
		}
		// After any input, a blank line and a good frame are found again, unless the input
		// swallowed them as its declared body.
		r := ContentLength(bytes.NewReader(in), limit)
		for {
			if _, err := r.Next(); err != nil {
				var bad *Error
				if !errors.As(err, &bad) {
					return
				}
			}
		}
	})
}
