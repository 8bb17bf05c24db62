package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

// What a server writes to stdout is read line by line, whatever the sizes of the pieces:
// nothing is lost, nothing is longer than the limit, and what follows noise is read.
func FuzzLines(f *testing.F) {
	for _, seed := range []string{"", "\n", "a\nb", "a\r\n\r\nb\r", "\x00\xff\n{}\n", strings.Repeat("x", 40) + "\ny\n", strings.Repeat("x", 17)} {
		f.Add([]byte(seed), uint8(16))
	}
	f.Fuzz(func(t *testing.T, data []byte, limit uint8) {
		most := int(limit) + 1
		r := bufio.NewReaderSize(bytes.NewReader(data), 16)
		var got [][]byte
		var err error
		for err == nil {
			var line []byte
			if line, err = readLine(r, most); err == nil {
				if len(line) > most+1 || bytes.ContainsRune(line, '\n') {
					t.Fatalf("a line of %d bytes: %q", len(line), line)
				}
				got = append(got, line)
			}
		}
		if !errors.Is(err, io.EOF) && !errors.Is(err, errTooLong) {
			t.Fatal(err)
		}
		all := bytes.Split(data, []byte("\n"))
		if n := len(all); len(all[n-1]) == 0 {
			all = all[:n-1]
		}
		if errors.Is(err, io.EOF) && len(got) != len(all) {
			t.Fatalf("%d lines of %d", len(got), len(all))
		}
		for i, line := range got {
			if want := bytes.TrimRight(all[i], "\r"); !bytes.Equal(line, want) {
				t.Fatalf("line %d is %q, want %q", i, line, want)
			}
		}
		if errors.Is(err, errTooLong) && len(all[len(got)]) < most {
			t.Fatalf("a line of %d bytes is too long for %d", len(all[len(got)]), most)
		}
	})
}

// A message is a request, a notification or an answer, and can be sent on as it came.
func FuzzEnvelopes(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[]`, `null`, `{"id":1,"result":{}}`, `{"id":"1","error":{"code":-32601,"message":"no"}}`, `{"id":null,"error":{"code":1,"message":""}}`,
		`{"method":"ping","id":7}`, `{"method":"x","params":[1]}`, `[{"method":"x"},{"id":1,"result":null}]`, `[[]]`, `{"id":1,"error":"text"}`, `{"jsonrpc":"2.0","id":{},"result":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := readEnvelopes(data)
		if err != nil {
			if !errors.Is(err, errNoMessage) || list != nil {
				t.Fatalf("%v, %v", list, err)
			}
			return
		}
		for _, e := range list {
			kinds := 0
			for _, is := range []bool{e.isRequest(), e.isNotification(), e.Method == "" && (e.Result != nil || e.Error != nil)} {
				if is {
					kinds++
				}
			}
			if kinds != 1 {
				t.Fatalf("%+v is %d things", e, kinds)
			}
			raw, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			again, err := readEnvelopes(raw)
			if err != nil || len(again) != 1 || again[0].key() != e.key() || again[0].Method != e.Method {
				t.Fatalf("%s came back as %+v, %v", raw, again, err)
			}
		}
	})
}

// A stream of events ends, and what it says does not depend on the sizes of its pieces.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{
		"", "\n\n", "data: a\n\n", "data:a\ndata: b\n\n", "\uFEFFdata: x\n\n", "id: 1\nretry: 500\ndata: \n\n", ": comment\n\nevent: endpoint\ndata: /x\n\n",
		"id: a\x00b\ndata: x\n\n", "retry: -1\n\n", "data: the end", "id: 5\n", "event: x\r\ndata: y\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		read := func(r io.Reader) []streamEvent {
			var out []streamEvent
			for events := newEventReader(r); ; {
				e, err := events.next()
				if err != nil {
					if !errors.Is(err, io.EOF) {
						t.Fatal(err)
					}
					return out
				}
				if len(e.data) == 0 && !e.hasID && !e.hasRetry {
					t.Fatalf("an event that says nothing: %+v", e)
				}
				out = append(out, e)
			}
		}
		whole, pieces := read(bytes.NewReader(data)), read(&drops{data: data})
		if len(whole) != len(pieces) {
			t.Fatalf("%d events, in pieces %d", len(whole), len(pieces))
		}
		for i := range whole {
			if !bytes.Equal(whole[i].data, pieces[i].data) || whole[i].id != pieces[i].id || whole[i].name != pieces[i].name || whole[i].retry != pieces[i].retry {
				t.Fatalf("%+v, in pieces %+v", whole[i], pieces[i])
			}
		}
	})
}

// drops hands over a byte at a time.
type drops struct{ data []byte }

func (d *drops) Read(p []byte) (int, error) {
	if len(d.data) == 0 {
		return 0, io.EOF
	}
	p[0] = d.data[0]
	d.data = d.data[1:]
	return 1, nil
}
