// Package fs holds the native tools that read and change files: directory_tree,
// read_file, write_file, edit_file, multi_edit, preview_file_change and move_file
// (eca-features, section 17).
//
// Tools that change content describe the change as a diff in the plan, before they run,
// and compute it again when they run: the file may have changed while the user was
// asked. Calls may run at once, their changes are made one after the other: two edits of
// one file are both in it. Files are replaced atomically; a failed write leaves the old
// content. The call's FileLog is notified of each change first.
//
// What is read and written is what the call's paths led to when it was judged: a path that
// leads elsewhere by now, or is replaced meanwhile, is an error (place.go). Only regular
// files are read and written.
//
// The package does not decide which paths may be touched: it reports them in the
// plan, and the policy decides.
package fs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// maxFile bounds the files these tools read whole.
const maxFile = 32 << 20

// Options configure the tools.
type Options struct {
	ReadMaxLines int // lines read_file returns at most; toolCall.readFile.maxLines
}

// Tools returns the tools of this package.
func Tools(o Options) []tools.Tool {
	c := newChanges()
	return []tools.Tool{directoryTree(), readFile(o), writeFile(c), editFile(c), multiEdit(c), previewFileChange(), moveFile(c)}
}

// unseen turns an error of a call about a path outside of the workspace into a plan
// without details: the model learns what exists there when the user has agreed.
func unseen(call tools.Call, plan tools.Plan, err error) (tools.Plan, error) {
	if workspace.New(call.Roots...).Contains(plan.Paths[0]) {
		return tools.Plan{}, err
	}
	plan.Details = nil
	return plan, nil
}

// readText reads a regular text file; n is the number of its path in the plan.
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

// readRegular reads a regular file, whatever is in it; a text that the user has not saved
// yet as it is there.
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
			return []byte(asOnDisk(text, string(data))), nil
		}
	}
	return data, err
}

// announce tells the call's log of a change that is about to be made. A log that fails
// does not stop work: note, for the call's result, says what was lost. An error means
// that the change must not be made.
func announce(ctx context.Context, call tools.Call, tell func(tools.FileLog) error) (note string, err error) {
	if call.Files != nil {
		if err := tell(call.Files); err != nil {
			note = fmt.Sprintf("\n[This change cannot be undone: %v]", err)
		}
	}
	return note, ctx.Err()
}

// change describes the change of a file from before to after.
func change(path, before, after string) *event.Details {
	const context = 3
	unified, err := udiff.ToUnified("a", "b", before, udiff.Lines(before, after), context)
	if err != nil {
		unified = ""
	}
	// Clients want hunks without the file header (eca-protocol 7.4).
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
