package tools

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/workspace"
)

// Buffers are files as the user's client has them: with what is not saved yet. A nil
// function is what the client cannot do.
type Buffers struct {
	// Read returns the text of a file; Write replaces it. Errors say that the file on the
	// disk counts.
	Read  func(ctx context.Context, chatID, path string) (string, error)
	Write func(ctx context.Context, chatID, path, text string) error
}

// WithBuffers decorates a tool that works on files, so that its calls find those of the
// workspace in the client. Others are none of the client's.
func WithBuffers(t Tool, b Buffers) Tool {
	if b.Read == nil && b.Write == nil {
		return t
	}
	return &buffered{t, b}
}

type buffered struct {
	Tool
	buffers Buffers
}

func (t *buffered) Plan(ctx context.Context, call Call) (Plan, error) {
	return t.Tool.Plan(ctx, t.connect(ctx, call))
}

func (t *buffered) Run(ctx context.Context, call Call, out Sink) (Result, error) {
	return t.Tool.Run(ctx, t.connect(ctx, call), out)
}

// connect gives a call what asks the client, for as long as ctx lasts.
func (t *buffered) connect(ctx context.Context, call Call) Call {
	chatID, roots := call.ChatID, call.Roots
	if t.buffers.Read != nil {
		call.Unsaved = func(place string) (string, bool) {
			path, ok := clientPath(roots, place)
			if !ok {
				return "", false
			}
			text, err := t.buffers.Read(ctx, chatID, path)
			return text, err == nil
		}
	}
	if t.buffers.Write != nil {
		call.Save = func(place, text string) bool {
			path, ok := clientPath(roots, place)
			return ok && t.buffers.Write(ctx, chatID, path, text) == nil
		}
	}
	return call
}

// clientPath is a place inside of the workspace by the name that the client has for it: below a
// root as the client wrote that. false is a place outside.
func clientPath(roots []string, place string) (string, bool) {
	for _, root := range roots {
		rel, err := filepath.Rel(workspace.Resolve(root), place)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return filepath.Join(root, rel), true
		}
	}
	return "", false
}
