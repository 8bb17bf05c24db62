package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/visible"
)

// Data that are no text are named to models, never shown to them as letters. Servers send
// them in more ways than the protocol has.

// decodeBase64 reads base64 as servers write it: with line ends, without padding, or in the
// letters of URLs.
func decodeBase64(text string) ([]byte, error) {
	text = strings.NewReplacer("\n", "", "\r", "", " ", "", "-", "+", "_", "/").Replace(text)
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
}

// isBinary says whether data of a type are no text.
func isBinary(media string) bool {
	media, _, _ = strings.Cut(strings.ToLower(media), ";")
	media = strings.TrimSpace(media)
	kind, name, _ := strings.Cut(media, "/")
	switch kind {
	case "image", "audio", "video", "font", "model":
		return !isText(media)
	case "application":
		texts := []string{"javascript", "ecmascript", "typescript", "sql", "graphql", "toml", "x-sh", "x-www-form-urlencoded", "x-ndjson", "jsonl"}
		return !slices.Contains(texts, name) && !isText(media)
	}
	return false
}

// leastEncoded is how much of what could be base64 is taken for that, in bytes: words can.
const leastEncoded = 16

// isEncoded says whether a text is base64 of what its type says is no text. Servers also
// send the text of a PDF under its type.
func isEncoded(media, text string) bool {
	if !isBinary(media) || len(text) < leastEncoded || strings.ContainsAny(strings.TrimSpace(text), " \t") {
		return false
	}
	_, err := decodeBase64(text)
	return err == nil
}

// dataURL is what stands in a text as the address of itself.
type dataURL struct{ media, data string }

// maxDataURLs bounds those of one text that are shown; the rest is named.
const maxDataURLs = 20

// cutDataURLs takes binary data out of a text, and names them where they were.
func cutDataURLs(text string) (rest string, urls []dataURL) {
	if !strings.Contains(text, ";base64,") {
		return text, nil
	}
	pattern := regexp.MustCompile(`(?i)data:([a-z0-9.+-]+/[a-z0-9.+-]+)(?:;[a-z0-9=._-]+)*;base64,([A-Za-z0-9+/_=-]{16,})`)
	whole := pattern.FindString(text) == strings.TrimSpace(text)
	rest = pattern.ReplaceAllStringFunc(text, func(found string) string {
		parts := pattern.FindStringSubmatch(found)
		media := strings.ToLower(parts[1])
		if !isBinary(media) {
			return found
		}
		if len(urls) < maxDataURLs {
			urls = append(urls, dataURL{media, parts[2]})
		}
		if whole {
			return ""
		}
		return fmt.Sprintf("[data %s, %d bytes]", media, base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(parts[2], "="))))
	})
	return rest, urls
}

// withoutBinary is structured content as it is shown: data that it declares as no text are
// named.
func withoutBinary(structured json.RawMessage) string {
	text := string(structured)
	if bytes.Contains(structured, []byte("ype")) || strings.Contains(text, ";base64,") {
		d := json.NewDecoder(bytes.NewReader(structured))
		d.UseNumber()
		var value any
		if d.Decode(&value) == nil && nameBinary(value) {
			var out bytes.Buffer
			e := json.NewEncoder(&out)
			e.SetEscapeHTML(false)
			if e.Encode(value) == nil {
				text = strings.TrimSpace(out.String())
			}
		}
		text, _ = cutDataURLs(text)
	}
	return visible.Text(text)
}

// nameBinary replaces, in objects that say of themselves what type their data are, those
// that are no text. changed says that there were some.
func nameBinary(value any) (changed bool) {
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			changed = nameBinary(one) || changed
		}
	case map[string]any:
		media := ""
		for _, key := range []string{"mimeType", "mime_type", "mediaType", "media_type", "contentType", "content_type"} {
			if text, ok := v[key].(string); ok {
				media = text
			}
		}
		for key, one := range v {
			text, ok := one.(string)
			if !ok {
				changed = nameBinary(one) || changed
			} else if isEncoded(media, text) {
				v[key], changed = fmt.Sprintf("[%s, %d bytes]", media, base64.RawStdEncoding.DecodedLen(len(text))), true
			}
		}
	}
	return changed
}
