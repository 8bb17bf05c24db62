package fs

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/pdftext"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

//go:embed read_file.md
var readFileDoc string

type readFileArgs struct {
	Path       string `json:"path" jsonschema:"The absolute path of the file."`
	LineOffset int    `json:"line_offset,omitempty" jsonschema:"Line to start reading from, counted from 0 (default: 0)."`
	Limit      int    `json:"limit,omitempty" jsonschema:"Maximum number of lines to read."`
}

func readFile(o Options) tools.Tool {
	limit := func(a readFileArgs) int {
		if a.Limit > 0 {
			return min(a.Limit, o.ReadMaxLines)
		}
		return o.ReadMaxLines
	}
	return tools.Definition[readFileArgs]{
		ReadOnly: true, Name: "read_file", Description: readFileDoc, Preparing: "Reading file",
		Plan: func(_ context.Context, call tools.Call, a readFileArgs) (tools.Plan, error) {
			path := workspace.Abs(call.Roots, a.Path)
			from := max(a.LineOffset, 0)
			return tools.Plan{
				Summary: fmt.Sprintf("Reading %s (%d-%d)", filepath.Base(path), from, from+limit(a)),
				Paths:   []string{path},
			}, nil
		},
		Run: func(ctx context.Context, call tools.Call, a readFileArgs, _ tools.Sink) (tools.Result, error) {
			path := workspace.Abs(call.Roots, a.Path)
			data, err := readRegular(call, 0, path)
			switch image := workspace.ImageType(data); {
			case err != nil:
				return tools.Result{}, err
			case image != "":
				return tools.Result{
					Outputs: []string{fmt.Sprintf("%s is an image (%s, %d bytes).", path, image, len(data))},
					Images:  []event.Image{{MediaType: image, Data: data}},
				}, nil
			case pdftext.Is(data):
				text, err := pdftext.Text(ctx, data)
				if err != nil {
					return tools.Result{}, fmt.Errorf("%s: %w", path, err)
				}
				return window(text, max(a.LineOffset, 0), limit(a))
			case workspace.IsBinary(data):
				return tools.Result{}, fmt.Errorf("%s is a binary file", path)
			}
			return window(string(data), max(a.LineOffset, 0), limit(a))
		},
	}.Build()
}

// window returns a range of lines of a text with a note about the omitted ones.
func window(text string, from, limit int) (tools.Result, error) {
	lines := strings.Split(text, "\n")
	if n := len(lines); n > 0 && lines[n-1] == "" {
		lines = lines[:n-1]
	}
	if from > 0 && from >= len(lines) {
		return tools.Result{}, fmt.Errorf("line_offset %d is beyond the end: the file has %d lines", from, len(lines))
	}
	to := min(from+limit, len(lines))
	out := strings.Join(lines[from:to], "\n")
	if to < len(lines) {
		out += fmt.Sprintf("\n\n[lines %d-%d of %d; continue with line_offset=%d]", from+1, to, len(lines), to)
	}
	return tools.Text(out), nil
}
