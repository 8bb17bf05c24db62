package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/internal/usage"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// execInput is the input of `eca exec`: the prompt, its contexts, and the answer's schema.
type execInput struct {
	folder   string
	prompt   string
	contexts []map[string]string
	schema   *answerSchema // nil: any answer is accepted
}

// newExecInput reads stdin and the files that the command line names.
func newExecInput(ctx context.Context, f execFlags, args []string, stdin io.Reader, stderr io.Writer) (*execInput, error) {
	typed := (len(args) == 0 || args[0] == "-") && isTerminal(stdin)
	if typed {
		fmt.Fprintln(stderr, "Type the prompt; Ctrl-D in a line of its own ends it")
	}
	notice := noticeIfSlow(stderr, "Reading stdin until it ends; without text for it, run with < /dev/null")
	if typed {
		notice.Stop()
	}
	piped, err := pipedInput(ctx, stdin, typed)
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
		return nil, errNoPrompt(f.promptHints...)
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
		if in.schema, err = readSchema(ctx, f.schema); err != nil {
			return nil, fmt.Errorf("--output-schema: %w", err)
		}
		in.prompt += in.schema.request()
	}
	if f.output == "-" {
		return nil, usage.Errorf("--output is for a file; the answer goes to stdout without it (write ./- for a file of that name)")
	}
	if f.output != "" {
		if err := safeio.CheckOutput(f.output); err != nil {
			return nil, fmt.Errorf("--output: %w", err)
		}
	}
	return in, nil
}

// errNoPrompt returns the error of an empty prompt. hints describe the flags whose
// value may have been meant as the prompt.
func errNoPrompt(hints ...string) error {
	return usage.Errorf("the prompt is empty; give it as an argument, or on stdin%s", strings.Join(hints, ""))
}

// describeTextFlags describes the flags that are set to a text, which may have been meant as the prompt.
func describeTextFlags(flags *pflag.FlagSet) (out []string) {
	flags.Visit(func(f *pflag.Flag) {
		text := f.Value.String()
		if list, ok := f.Value.(pflag.SliceValue); ok {
			text = list.GetSlice()[len(list.GetSlice())-1]
		} else if f.Value.Type() != "string" {
			return
		}
		out = append(out, fmt.Sprintf("; --%s has taken %q as its value", f.Name, text))
	})
	return out
}

func isTerminal(stdin io.Reader) bool {
	file, ok := stdin.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// pipedInput reads stdin if it is a pipe or a file, or if the user types the prompt.
func pipedInput(ctx context.Context, stdin io.Reader, typed bool) (string, error) {
	if file, ok := stdin.(*os.File); ok && !typed {
		info, err := file.Stat()
		if err != nil || info.Mode()&os.ModeCharDevice != 0 {
			return "", nil //nolint:nilerr // an unusable stdin counts as empty
		}
	}
	const limit = 256 << 10
	var data []byte
	var err error
	read := make(chan struct{})
	go func() {
		defer close(read)
		data, err = io.ReadAll(io.LimitReader(stdin, limit+1))
	}()
	select {
	case <-read:
	case <-ctx.Done(): // the signal does not interrupt a read from a terminal
		return "", ctx.Err()
	}
	switch {
	case len(data) > limit:
		return "", fmt.Errorf("it has more than %d KiB; save it to a file, and name the file in the prompt", limit>>10)
	case bytes.IndexByte(data, 0) >= 0:
		return "", errors.New("it is binary data, not text; an image is given with --image FILE")
	}
	return strings.ToValidUTF8(string(data), "�"), err
}

// readImage reads an image file of a format that models accept.
func readImage(path string) ([]byte, error) {
	data, err := safeio.Read(path, workspace.MaxImage)
	if err != nil {
		return nil, err
	}
	mediaType := workspace.ImageType(data)
	if mediaType == "" {
		return nil, fmt.Errorf("%s is not an image that models take: PNG, JPEG, GIF or WebP", path)
	}
	if err := workspace.CheckImage(data, mediaType); err != nil {
		return nil, fmt.Errorf("%s %w", path, err)
	}
	return data, nil
}

// maxSchema bounds a schema, because it is part of the prompt.
const maxSchema = 256 << 10

// answerSchema is the JSON Schema that an answer has to match.
type answerSchema struct {
	path     string
	text     string
	resolved *jsonschema.Resolved
}

func readSchema(ctx context.Context, path string) (*answerSchema, error) {
	data, err := safeio.ReadInput(ctx, path, maxSchema)
	if err != nil {
		return nil, err
	}
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))) // some editors begin files with it
	if len(data) == 0 {
		return nil, fmt.Errorf("%s is empty, and not a JSON Schema", path)
	}
	var raw any
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("%s is an invalid JSON Schema: %w", path, err)
	}
	if err := tools.CheckSchema(raw); err != nil {
		return nil, fmt.Errorf("%s is an invalid JSON Schema: %w", path, err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(data, &schema); err != nil {
		return nil, fmt.Errorf("%s is an invalid JSON Schema: %w", path, err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("%s is an invalid JSON Schema: %w", path, err)
	}
	return &answerSchema{path, string(data), resolved}, nil
}

// request returns the instruction to answer with a matching document.
func (s *answerSchema) request() string {
	return "\n\nWhen you are done, answer with one JSON document that matches this JSON Schema, and with nothing else: no explanation, no code fence.\n\n" + s.text
}

// repair returns the prompt for a corrected answer.
func (s *answerSchema) repair(wrong error) string {
	return fmt.Sprintf("Your answer does not match the JSON Schema: %v.\nAnswer again, with the corrected JSON document and nothing else.", wrong)
}

// check returns the document in an answer, or an error if it does not match the schema.
func (s *answerSchema) check(answer string) (string, error) {
	doc := strings.TrimSpace(answer)
	if rest, fenced := strings.CutPrefix(doc, "```"); fenced { // some models add a fence despite the instruction
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
