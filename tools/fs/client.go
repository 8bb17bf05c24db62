package fs

import (
	"strings"

	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/tools"
)

// Editors have lines, not line ends: some tell and take a file with CRLF as one with LF, and
// some add a line end to a text that has one.

const crlf = "\r\n"

// asOnDisk gives the text that the client has of a file the line ends that the disk has,
// if the client knows nothing of those.
func asOnDisk(text, disk string) string {
	switch {
	case !withoutCR(text, disk):
		return text
	case text == toLF(disk): // nothing is unsaved; its line ends may be of both kinds
		return disk
	case allCRLF(disk):
		return toCRLF(text)
	}
	return text
}

// withoutCR says whether the client's text of a file lacks the carriage returns of the disk's.
func withoutCR(text, disk string) bool {
	return strings.Contains(disk, crlf) && !strings.Contains(text, "\r")
}

func allCRLF(s string) bool { return strings.Count(s, "\n") == strings.Count(s, crlf) }

func toLF(s string) string { return strings.ReplaceAll(s, crlf, "\n") }

func toCRLF(s string) string { return strings.ReplaceAll(toLF(s), "\n", crlf) }

// save has the client replace a file, and says it in other words if the disk shows that the
// client took it differently. Text that is not on the disk yet belongs to the client. false
// says that the client did not do it.
func save(call tools.Call, p safeio.Entry, content string) (ok bool) {
	before := onDisk(p)
	say := content
	if call.Unsaved != nil && strings.Contains(content, crlf) && allCRLF(content) {
		if text, ok := call.Unsaved(p.Path()); ok && withoutCR(text, before) {
			say = toLF(content)
		}
	}
	if !call.Save(p.Path(), say) {
		return false
	}
	const tries = 2 // line ends, and the last of them
	for range tries {
		now := onDisk(p)
		if now == content || now == before {
			break
		}
		next, ok := otherWords(say, content, now)
		if !ok || !call.Save(p.Path(), next) {
			break // it did what it could
		}
		say = next
	}
	return true
}

// otherWords is what to say instead, where saying something led to what is on the disk now
// and not to the content that was meant; ok is false if that is not known.
func otherWords(said, content, now string) (next string, ok bool) {
	switch {
	case said != content && now == said: // taken literally after all
		return content, true
	case strings.HasSuffix(said, "\n") && (now == content+"\n" || now == content+crlf):
		return strings.TrimSuffix(strings.TrimSuffix(said, "\n"), "\r"), true
	}
	return "", false
}

// onDisk is a file's content; nothing if it cannot be read.
func onDisk(p safeio.Entry) string {
	data, err := p.Read(maxFile)
	if err != nil {
		return ""
	}
	return string(data)
}
