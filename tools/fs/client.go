package fs

import (
	"strings"

	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/tools"
)

// Editors work with lines rather than line endings. Some report and accept a file with CRLF as one
// with LF, and some append a line ending to a text that already has one.

const crlf = "\r\n"

// withDiskLineEndings gives the client's text of a file the line endings of the text on disk, if the
// client ignores line endings.
func withDiskLineEndings(text, disk string) string {
	switch {
	case !lacksCR(text, disk):
		return text
	case text == toLF(disk): // there are no unsaved changes; line endings may be mixed
		return disk
	case allCRLF(disk):
		return toCRLF(text)
	}
	return text
}

// lacksCR reports whether the client's text of a file lacks the carriage returns of the text on
// disk.
func lacksCR(text, disk string) bool {
	return strings.Contains(disk, crlf) && !strings.Contains(text, "\r")
}

func allCRLF(s string) bool { return strings.Count(s, "\n") == strings.Count(s, crlf) }

func toLF(s string) string { return strings.ReplaceAll(s, crlf, "\n") }

func toCRLF(s string) string { return strings.ReplaceAll(toLF(s), "\n", crlf) }

// save makes the client replace a file, and retries with adjusted line endings if the text on disk
// shows that the client interpreted the content differently. The client is responsible for text
// that is not on the disk yet. ok is false if the client did not replace the file.
func save(call tools.Call, p safeio.Entry, content string) (ok bool) {
	before := readOrEmpty(p)
	sent := content
	if call.Unsaved != nil && strings.Contains(content, crlf) && allCRLF(content) {
		if text, ok := call.Unsaved(p.Path()); ok && lacksCR(text, before) {
			sent = toLF(content)
		}
	}
	if !call.Save(p.Path(), sent) {
		return false
	}
	const tries = 2 // to correct the line endings, and then the end of the file
	for range tries {
		now := readOrEmpty(p)
		if now == content || now == before {
			break
		}
		next, ok := nextText(sent, content, now)
		if !ok || !call.Save(p.Path(), next) {
			break // the client did what it could
		}
		sent = next
	}
	return true
}

// nextText returns the text to send to the client in the next try. In the last try, the client got the
// text sent, but wrote the text written to the disk instead of content. ok is false if there is no text
// to try.
func nextText(sent, content, written string) (next string, ok bool) {
	switch {
	case sent != content && written == sent: // the client writes text literally after all
		return content, true
	case strings.HasSuffix(sent, "\n") && (written == content+"\n" || written == content+crlf):
		return strings.TrimSuffix(strings.TrimSuffix(sent, "\n"), "\r"), true
	}
	return "", false
}

// readOrEmpty returns a file's content; empty if it cannot be read.
func readOrEmpty(p safeio.Entry) string {
	data, err := p.Read(maxFile)
	if err != nil {
		return ""
	}
	return string(data)
}
