package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-dec29ce4/eca/internal/regular"
	"github.com/seed-dec29ce4/eca/internal/usage"
	"github.com/seed-dec29ce4/eca/workspace"
)

// execInput is what `eca exec` was given besides its flags.
type execInput struct {
	folder   string
	prompt   string
	contexts []map[string]string
	schema   *answerSchema // nil: any answer will do
}

// newExecInput reads what the command line points at.
func newExecInput(f execFlags, args []string, stdin io.Reader, stderr io.Writer) (*execInput, error) {
	notice := noticeLater(stderr, "Reading stdin until it ends; without text for it, run with < /dev/null")
	piped, err := pipedInput(stdin)
	notice.Stop()
	if err != nil {
		return nil, fmt.Errorf("cannot read stdin: %w", err)
	}
	in := &execInput{prompt: piped}
	if len(args) > 0 && args[0] != "-" {
		in.prompt = args[0]
		if piped != "" {
			in.contexts = append(in.contexts, map[string]string{"type": "text", "label": "stdin", "content": piped})
		}
	}
	if strings.TrimSpace(in.prompt) == "" {
		return nil, errNoPrompt()
	}
	if in.folder, err = execFolder(f.folder); err != nil {
		return nil, err
	}
	for _, path := range f.images {
		data, err := readImage(path)
		if err != nil {
			return nil, fmt.Errorf("--image: %w", err)
		}
		in.contexts = append(in.contexts, map[string]string{"type": "image", "base64": base64.StdEncoding.EncodeToString(data)})
	}
	if f.schema != "" {
		if in.schema, err = readSchema(f.schema); err != nil {
			return nil, fmt.Errorf("--output-schema: %w", err)
		}
		in.prompt += in.schema.request()
	}
	if f.output != "" { // what cannot be written must not cost a turn
		if info, err := os.Stat(filepath.Dir(f.output)); err != nil {
			return nil, fmt.Errorf("--output: cannot write %s: %w", f.output, err)
		} else if target, err := os.Stat(f.output); err == nil && target.IsDir() {
			return nil, fmt.Errorf("--output: cannot write %s: it is a directory; name a file", f.output)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("--output: cannot write %s: %s is not a directory", f.output, filepath.Dir(f.output))
		}
	}
	return in, nil
}

func errNoPrompt() error {
	return usage.Errorf("the prompt is empty; give it as an argument, or on stdin")
}

// pipedInput reads stdin when something is piped into it.
func pipedInput(stdin io.Reader) (string, error) {
	if file, ok := stdin.(*os.File); ok {
		info, err := file.Stat()
		if err != nil || info.Mode()&os.ModeCharDevice != 0 {
			return "", nil //nolint:nilerr // no usable stdin is no input
		}
	}
	const limit = 256 << 10
	data, err := io.ReadAll(io.LimitReader(stdin, limit+1))
	switch {
	case len(data) > limit:
		return "", fmt.Errorf("it has more than %d KiB; save it to a file, and name the file in the prompt", limit>>10)
	case bytes.IndexByte(data, 0) >= 0:
		return "", errors.New("it is binary data, not text; an image is given with --image FILE")
	}
	return strings.ToValidUTF8(string(data), "�"), err
}

// readImage reads a file that models take as an image.
func readImage(path string) ([]byte, error) {
	data, err := regular.Read(path, workspace.MaxImage)
	if err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, http.DetectContentType(data)) {
		return nil, fmt.Errorf("%s is not an image that models take: PNG, JPEG, GIF or WebP", path)
	}
	return data, nil
}

// maxSchema bounds a schema: it is part of the prompt.
const maxSchema = 256 << 10

// answerSchema is what an answer has to match.
type answerSchema struct {
	path     string
	text     string
	resolved *jsonschema.Resolved
}

func readSchema(path string) (*answerSchema, error) {
	data, err := regular.Read(path, maxSchema)
	if err != nil {
		return nil, err
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(data, &schema); err != nil {
		return nil, fmt.Errorf("%s is an invalid JSON Schema: %w", path, err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("%s is an invalid JSON Schema: %w", path, err)
	}
	return &answerSchema{path, string(bytes.TrimSpace(data)), resolved}, nil
}

// request asks for an answer that matches.
func (s *answerSchema) request() string {
	return "\n\nWhen you are done, answer with one JSON document that matches this JSON Schema, and with nothing else: no explanation, no code fence.\n\n" + s.text
}

// repair asks for another answer.
func (s *answerSchema) repair(wrong error) string {
	return fmt.Sprintf("Your answer does not match the JSON Schema: %v.\nAnswer again, with the corrected JSON document and nothing else.", wrong)
}

// check returns the document in an answer; the error says why it does not match.
func (s *answerSchema) check(answer string) (string, error) {
	doc := strings.TrimSpace(answer)
	if rest, fenced := strings.CutPrefix(doc, "```"); fenced { // models put it there all the same
		_, rest, _ = strings.Cut(rest, "\n")
		doc = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "```"))
	}
	dec := json.NewDecoder(strings.NewReader(doc))
	var value any
	if err := dec.Decode(&value); err != nil {
		return "", fmt.Errorf("it is invalid JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return "", errors.New("something follows the JSON document")
	}
	if err := s.resolved.Validate(value); err != nil {
		return "", err
	}
	return doc, nil
}
