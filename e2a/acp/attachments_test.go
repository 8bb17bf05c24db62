package acp_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// onePagePDF is a PDF that contains a text.
func onePagePDF(text string) string {
	var b strings.Builder
	var offsets []int
	object := func(body string) {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(offsets), body)
	}
	b.WriteString("%PDF-1.4\n")
	stream := "BT /F1 12 Tf 10 100 Td (" + text + ") Tj ET"
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object("<< /Type /Pages /Kids [4 0 R] /Count 1 >>")
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
	object("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>")
	object(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(stream), stream))
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, start)
	return b.String()
}

// An attachment of a prompt reaches the model as text, or is reported to the user and to the model.
// No attachment is silently dropped.
func TestAttachments(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString
	blob := func(uri, media, data string) object {
		return object{"type": "resource", "resource": object{"uri": uri, "mimeType": media, "blob": encoded([]byte(data))}}
	}
	dir := t.TempDir()
	link := func(name, content string) object {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return object{"type": "resource_link", "name": name, "uri": "file://" + filepath.ToSlash(path)}
	}
	for name, v := range map[string]struct {
		block object
		model string // what the model must get
		user  string // what the user must see if the attachment is left out; without other content the prompt is refused with it, except for links
	}{
		"PDF":             {blob("file:///spec.pdf", "application/pdf", onePagePDF("the secret word is plum")), "the secret word is plum", ""},
		"PDF by content":  {blob("file:///spec", "", onePagePDF("the secret word is pear")), "the secret word is pear", ""},
		"broken PDF":      {blob("file:///broken.pdf", "application/pdf", "%PDF-1.4 nothing"), "broken.pdf", "broken.pdf"},
		"text as blob":    {blob("file:///notes.txt", "text/plain", "remember the milk"), "remember the milk", ""},
		"SVG":             {blob("file:///x.svg", "image/svg+xml", "<svg>circle</svg>"), "circle", ""},
		"empty text":      {object{"type": "resource", "resource": object{"uri": "file:///empty.go", "text": ""}}, "file:///empty.go", ""},
		"binary":          {blob("file:///a.zip", "application/zip", "PK\x03\x04\x00\x00"), "a.zip", "a.zip"},
		"audio":           {object{"type": "audio", "mimeType": "audio/wav", "data": encoded([]byte("RIFF"))}, "audio/wav", "audio"},
		"image of a kind": {object{"type": "image", "mimeType": "image/bmp", "data": encoded([]byte("BM\x00\x00"))}, "image/bmp", "image/bmp"},
		"unknown block":   {object{"type": "hologram", "uri": "x:1"}, "hologram", "hologram"},
		"no base64":       {object{"type": "resource", "resource": object{"uri": "file:///b.bin", "blob": "***"}}, "resource.blob", "resource.blob"},
		"no content":      {object{"type": "resource", "resource": object{"uri": "file:///c"}}, "resource.blob", "resource.blob"},
		"link to a PDF":   {link("linked.pdf", onePagePDF("the secret word is fig")), "the secret word is fig", ""},
		"link to no PDF":  {link("bad.pdf", "%PDF-1.4\x00 nothing"), "bad.pdf is a PDF without a text", "bad.pdf"},
		"link to binary":  {link("tool.bin", "\x7fELF\x00\x00"), "tool.bin is a binary file", "tool.bin"},
		"link to no file": {object{"type": "resource_link", "name": "x", "uri": "file:///none/at/all"}, "does not exist", "does not exist"},
		"link to nothing": {object{"type": "resource_link", "name": "x"}, "uri is missing", "uri is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "turns: []\ndefault: {steps: [{text: Fine.}]}")
			c := r.connect()
			id := c.start(r, object{"session": object{"notices": object{}}})
			c.call("session/prompt", object{"sessionId": id, "prompt": []any{object{"type": "text", "text": "Look."}, v.block}})
			if sent := strings.Join(r.Requests(), "\n"); !strings.Contains(sent, v.model) {
				t.Errorf("the model was sent %s", sent)
			}
			told := ""
			for _, u := range c.updates(0) {
				if u["sessionUpdate"] == "notice" {
					told += fmt.Sprint(u["title"], u["description"])
				}
			}
			if v.user != "" != strings.Contains(told, "Left out") || !strings.Contains(told, v.user) {
				t.Errorf("the user was told %q", told)
			}
			if uri, _ := v.block["uri"].(string); v.user == "" || strings.HasPrefix(uri, "file://") {
				return
			}
			code, message := c.fails("session/prompt", object{"sessionId": id, "prompt": []any{v.block}})
			if code != -32602 || !strings.Contains(message, v.user) {
				t.Errorf("alone: %d %s", code, message)
			}
		})
	}
}
