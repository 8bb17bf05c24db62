package tools

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/workspace"
)

// Buffers gives access to the files that are open in the user's client, with their unsaved changes. If a
// function is nil, the client does not support it.
type Buffers struct {
	// Read returns the text of a file; Write replaces it. After an error, use the file on the disk.
	Read  func(ctx context.Context, chatID, path string) (string, error)
	Write func(ctx context.Context, chatID, path, text string) error
}

// WithBuffers wraps a tool that works on files, so that its calls use the client's version of
// workspace files. Other files are always used from the disk.
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

// connect gives a call access to the client until ctx ends.
func (t *buffered) connect(ctx context.Context, call Call) Call {
	chatID, roots := call.ChatID, call.Roots
	if t.buffers.Read != nil {
		call.Unsaved = func(resolved string) (string, bool) {
			path, ok := clientPath(roots, resolved)
			if !ok {
				return "", false
			}
			text, err := t.buffers.Read(ctx, chatID, path)
			return text, err == nil
		}
	}
	if t.buffers.Write != nil {
		call.Save = func(resolved, text string) bool {
			path, ok := clientPath(roots, resolved)
			return ok && t.buffers.Write(ctx, chatID, path, text) == nil
		}
	}
	return call
}

// clientPath returns the path by which the client knows the file at a resolved path: below a workspace
// folder as the client wrote it, with links not resolved. ok is false if the file is outside the
// workspace.
func clientPath(roots []string, resolved string) (path string, ok bool) {
	for _, root := range roots {
		rel, err := filepath.Rel(workspace.Resolve(root), resolved)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return filepath.Join(root, rel), true
		}
	}
	return "", false
}
