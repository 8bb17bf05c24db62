// Package fs has the native tools that read and change files: directory_tree, read_file,
// write_file, edit_file, multi_edit, preview_file_change and move_file (eca-features.md, section 17).
//
// Tools that change content describe the change as a diff in the plan, and compute it again when
// they run, since the file may have changed while the user decided. Calls may run concurrently, but
// their changes of one file are serialized, so that two edits are both applied. Files are replaced
// atomically; a failed write leaves the old content. The call's FileLog is notified before each
// change.
//
// A path must still lead to the target that it had when the call was approved; otherwise the call
// fails (open). Only regular files are read and written.
//
// The package does not decide which paths may be accessed: it reports them in the plan, and the
// policy decides.
package fs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// maxFile is the largest file that these tools read, in bytes.
const maxFile = 32 << 20

// Options configure the tools.
type Options struct {
	ReadMaxLines int // maximum number of lines that read_file returns (toolCall.readFile.maxLines)
}

// Tools returns the tools of this package.
func Tools(o Options) []tools.Tool {
	c := newChanges()
	return []tools.Tool{directoryTree(), readFile(o), writeFile(c), editFile(c), multiEdit(c), previewFileChange(), moveFile(c)}
}

// planWithoutDetails converts an error of a call about a path outside the workspace to a plan
// without details, because the model must not learn what exists there until the user has approved.
func planWithoutDetails(call tools.Call, plan tools.Plan, err error) (tools.Plan, error) {
	if workspace.New(call.Roots...).Contains(plan.Paths[0]) {
		return tools.Plan{}, err
	}
	plan.Details = nil
	return plan, nil
}

// readText reads a regular text file; n is the index of its path in the plan.
func readText(call tools.Call, n int, path string) (string, error) {
	data, err := readRegular(call, n, path)
	if err != nil {
		return "", err
	}
	if workspace.IsBinary(data) {
		return "", fmt.Errorf("%s is a binary file", path)
	}
	return string(data), nil
}

// readRegular reads a regular file, whatever its content. If the user has unsaved changes, it
// returns the unsaved text.
func readRegular(call tools.Call, n int, path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s does not exist", path)
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory", path)
	}
	p, err := open(call, n, path, false)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	data, err := p.Read(maxFile)
	if err == nil && call.Unsaved != nil && !workspace.IsBinary(data) {
		if text, ok := call.Unsaved(p.Path()); ok && len(text) <= maxFile {
			return []byte(withDiskLineEndings(text, string(data))), nil
		}
	}
	return data, err
}

// announce notifies the call's log of a change that is about to be made. If the log fails, the
// change is still made, and note tells the model that it cannot be undone. An error means that the
// change must not be made.
func announce(ctx context.Context, call tools.Call, notify func(tools.FileLog) error) (note string, err error) {
	if call.Files != nil {
		if err := notify(call.Files); err != nil {
			note = fmt.Sprintf("\n[This change cannot be undone: %v]", err)
		}
	}
	return note, ctx.Err()
}

// diffDetails describes the change of a file from before to after.
func diffDetails(path, before, after string) *event.Details {
	const context = 3
	unified, err := udiff.ToUnified("a", "b", before, udiff.Lines(before, after), context)
	if err != nil {
		unified = ""
	}
	// Clients expect hunks without the file header (eca-protocol.md 7.4).
	if i := strings.Index(unified, "@@"); i >= 0 {
		unified = unified[i:]
	}
	fc := &event.FileChange{Path: path, Diff: strings.TrimSuffix(unified, "\n")}
	for line := range strings.SplitSeq(fc.Diff, "\n") {
		switch {
		case strings.HasPrefix(line, "+"):
			fc.LinesAdded++
		case strings.HasPrefix(line, "-"):
			fc.LinesRemoved++
		}
	}
	return &event.Details{FileChange: fc}
}

// open opens the file at a path, which must still have the target that it had when the call was
// approved; n is the index of the path in the plan. No folder on the way may have become a symlink.
// With create, missing folders are created.
func open(call tools.Call, n int, path string, create bool) (safeio.Entry, error) {
	real, err := call.Place(n, path)
	if err != nil {
		return safeio.Entry{}, err
	}
	p, err := safeio.OpenEntry(baseOf(call.Roots, real), real, create)
	if err != nil {
		return safeio.Entry{}, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// baseOf returns the folder from which a path is opened step by step: its workspace folder, or else
// the longest existing part of the path.
func baseOf(roots []string, real string) string {
	for _, root := range roots {
		root = workspace.Resolve(root)
		if rel, err := filepath.Rel(root, filepath.Dir(real)); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return root
		}
	}
	dir := filepath.Dir(real)
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
