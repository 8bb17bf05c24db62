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

// Models get a description of binary data, never the data as text. Servers send binary data in more
// ways than the protocol defines.

// decodeBase64 reads base64 as servers write it: with line breaks, without padding, or in the URL
// alphabet.
func decodeBase64(text string) ([]byte, error) {
	text = strings.NewReplacer("\n", "", "\r", "", " ", "", "-", "+", "_", "/").Replace(text)
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
}

// isBinary reports whether data of a media type is binary.
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

// minEncoded is the minimum number of bytes of a text that counts as base64. A shorter text could be an
// ordinary word.
const minEncoded = 16

// isBase64Data reports whether a text is base64 data of a binary media type. The media type alone does
// not prove it, because some servers send the extracted text of a PDF with the type of the PDF.
func isBase64Data(media, text string) bool {
	if !isBinary(media) || len(text) < minEncoded || strings.ContainsAny(strings.TrimSpace(text), " \t") {
		return false
	}
	_, err := decodeBase64(text)
	return err == nil
}

// dataURL is a data URL found in a text.
type dataURL struct{ media, data string }

// maxDataURLs limits how many data URLs of one text are decoded; the text only mentions the others.
const maxDataURLs = 20

// cutDataURLs replaces binary data URLs in a text with descriptions. If the text consists of one data
// URL only, rest is empty: the caller shows its data, so a description would repeat it.
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

// withoutBinary returns structured content for display: a description replaces data that the
// content declares as binary.
func withoutBinary(structured json.RawMessage) string {
	text := string(structured)
	if bytes.Contains(structured, []byte("ype")) /* mimeType, media_type, ... */ || strings.Contains(text, ";base64,") {
		d := json.NewDecoder(bytes.NewReader(structured))
		d.UseNumber()
		var value any
		if d.Decode(&value) == nil && describeBinary(value) {
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

// describeBinary replaces binary data with descriptions, in objects that declare a media type.
// changed reports whether it replaced anything.
func describeBinary(value any) (changed bool) {
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			changed = describeBinary(one) || changed
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
				changed = describeBinary(one) || changed
			} else if isBase64Data(media, text) {
				v[key], changed = fmt.Sprintf("[%s, %d bytes]", media, base64.RawStdEncoding.DecodedLen(len(text))), true
			}
		}
	}
	return changed
}
