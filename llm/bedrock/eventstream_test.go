package bedrock

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go/eventstream"
)

// wire encodes messages with AWS's own encoder.
func wire(t testing.TB, messages ...eventstream.Message) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, m := range messages {
		if err := eventstream.NewEncoder().Encode(&out, m); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// textMessage is a message with headers that are text, given in pairs.
func textMessage(payload string, headers ...string) eventstream.Message {
	m := eventstream.Message{Payload: []byte(payload)}
	for i := 0; i < len(headers); i += 2 {
		m.Headers.Set(headers[i], eventstream.StringValue(headers[i+1]))
	}
	return m
}

func TestReadMessages(t *testing.T) {
	all := textMessage(`{"a":1}`, ":message-type", "event", ":event-type", "messageStart")
	for name, v := range map[string]eventstream.Value{
		"true": eventstream.BoolValue(true), "false": eventstream.BoolValue(false), "8": eventstream.Int8Value(1),
		"16": eventstream.Int16Value(2), "32": eventstream.Int32Value(3), "64": eventstream.Int64Value(4), "bytes": eventstream.BytesValue("xyz"),
		"time": eventstream.TimestampValue(time.Unix(1, 0)), "uuid": eventstream.UUIDValue{1, 2}, ":event-type-not": eventstream.StringValue(""),
	} {
		all.Headers.Set(name, v)
	}
	body := wire(t, all,
		textMessage("", ":message-type", "exception", ":exception-type", "throttlingException"),
		textMessage("p", ":message-type", "error", ":error-code", "c", ":error-message", "m"))
	r := newEventReader(bytes.NewReader(body))
	for _, want := range []message{
		{kind: "event", event: "messageStart", payload: []byte(`{"a":1}`)},
		{kind: "exception", exception: "throttlingException"},
		{kind: "error", exception: "c", text: "m", payload: []byte("p")},
	} {
		m, err := r.next()
		if err != nil || m.kind != want.kind || m.event != want.event || m.exception != want.exception || m.text != want.text || string(m.payload) != string(want.payload) {
			t.Fatalf("%+v, %v; want %+v", m, err, want)
		}
	}
	if _, err := r.next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

// The example of AWS's description of the format: no headers, no payload.
func TestEmptyMessage(t *testing.T) {
	raw, err := hex.DecodeString("000000100000000005c248eb7d98c8ff")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := newEventReader(bytes.NewReader(raw)).next(); err != nil || len(m.payload) != 0 {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestDamagedMessages(t *testing.T) {
	whole := wire(t, textMessage(`{"delta":{"text":"hello"}}`, ":message-type", "event", ":event-type", "contentBlockDelta"))
	for n := range whole {
		if _, err := newEventReader(bytes.NewReader(whole[:n])).next(); n == 0 && !errors.Is(err, io.EOF) || n > 0 && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut after %d bytes: %v", n, err)
		}
		damaged := bytes.Clone(whole)
		damaged[n] ^= 0x10
		if _, err := newEventReader(bytes.NewReader(damaged)).next(); !errors.Is(err, errCorrupt) {
			t.Errorf("byte %d is wrong: %v", n, err)
		}
	}
	for name, c := range map[string]struct{ raw, want string }{
		"too large":                  {"7fffffff 00000000 9ca38c12", "too large"},
		"too large headers":          {"00ffffff 00ffffff 00000000", "too large"},
		"shorter than its own frame": {"0000000f 00000000 00000000", "cannot have"},
		"headers beyond the end":     {"00000011 00000002 00000000", "cannot have"},
	} {
		raw, err := hex.DecodeString(strings.ReplaceAll(c.raw, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newEventReader(bytes.NewReader(sum(raw, 8))).next(); !errors.Is(err, errCorrupt) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, headers := range map[string]string{
		"name is cut": "\x05ab", "no type": "\x01a", "unknown type": "\x01a\x0a", "length is cut": "\x01a\x07\x00",
		"text is cut": "\x01a\x07\x00\x05ab", "number is cut": "\x01a\x04\x00",
	} {
		raw := []byte{0, 0, 0, byte(16 + len(headers)), 0, 0, 0, byte(len(headers)), 0, 0, 0, 0}
		raw = append(append(sum(raw, 8), headers...), 0, 0, 0, 0)
		if _, err := newEventReader(bytes.NewReader(sum(raw, len(raw)-4))).next(); !errors.Is(err, errCorrupt) || !strings.Contains(err.Error(), "header") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// sum writes the checksum of the bytes before an offset at that offset.
func sum(raw []byte, at int) []byte {
	binary.BigEndian.PutUint32(raw[at:], crc32.ChecksumIEEE(raw[:at]))
	return raw
}

// The reader reserves little memory for a message whose header announces a large size until the bytes
// have arrived.
func TestClaimedLength(t *testing.T) {
	raw := sum([]byte{0, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0}, 8)
	r := newEventReader(bytes.NewReader(append(raw, "little"...)))
	if _, err := r.next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if n := r.buf.Cap(); n > 64<<10 {
		t.Errorf("%d bytes were reserved", n)
	}
}

// AWS's own decoder accepts each message that we accept; it takes more, such
// as a header that is cut.
func FuzzMessages(f *testing.F) {
	f.Add([]byte("\x0b:event-type\x07\x00\x01x\x01a\x02\x00"), []byte("{}"))
	f.Add([]byte("\x05a"), []byte(nil))
	f.Fuzz(func(t *testing.T, headers, payload []byte) {
		raw := binary.BigEndian.AppendUint32(nil, uint32(16+len(headers)+len(payload)))
		raw = binary.BigEndian.AppendUint32(raw, uint32(len(headers)))
		raw = append(append(sum(append(raw, 0, 0, 0, 0), 8), headers...), payload...)
		raw = append(raw, 0, 0, 0, 0)
		m, err := newEventReader(bytes.NewReader(sum(raw, len(raw)-4))).next()
		if err == nil {
			want, err := eventstream.NewDecoder().Decode(bytes.NewReader(raw), nil)
			if err != nil || !bytes.Equal(m.payload, want.Payload) {
				t.Fatalf("payload %q, want %q, %v", m.payload, want.Payload, err)
			}
		}
		_, _ = newEventReader(bytes.NewReader(payload)).next() // garbage
	})
}
