package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/seed-dec29ce4/eca/ecp/grade"
)

// Limits of diffs, in bytes.
const (
	maxDiff      = 16 << 20 // of a diff in a file
	maxDiffShown = 64 << 10 // of a diff in a report
	maxDiffFile  = 1 << 20  // of a file whose lines are compared
)

// snapshot contains the changes that the agent made to the workspace.
type snapshot struct {
	changes     []grade.Change
	diff        string
	err         error // of reading the changes
	testsCopied bool  // the hidden tests have been copied, if there are any
}

// takeSnapshot takes the snapshot, unless that was done before.
func (a *attempt) takeSnapshot() {
	if a.workspace == nil || a.snapshot != nil {
		return
	}
	a.snapshot = &snapshot{}
	if p, ok := a.executor.(*imageExecutor); ok && p.freshGraders {
		a.snapshot.diff = p.patch
		return
	}
	a.workspace.makeReadable()
	if a.snapshot.changes, a.snapshot.err = a.workspace.changedFiles(); a.snapshot.err == nil {
		a.snapshot.diff, a.snapshot.err = a.workspace.diff(a.snapshot.changes)
	}
}

// saveDiff adds the diff to the report, and writes it to a file in Options.Artifacts.
func (a *attempt) saveDiff() {
	diff, err := a.snapshot.diff, a.snapshot.err
	if err == nil && diff != "" && a.opts.Artifacts != "" {
		a.out.DiffFile = filepath.Join(a.opts.Artifacts, fmt.Sprintf("%s-%s-%d.diff", a.c.ID, a.c.VariantKey, a.c.attempt))
		if err = os.WriteFile(a.out.DiffFile, []byte(diff), 0o644); err != nil {
			a.out.DiffFile = ""
		}
	}
	if err != nil {
		a.out.Notes = append(a.out.Notes, "cannot save the diff of the workspace: "+err.Error())
	}
	a.out.Diff = cutAtLine(diff, maxDiffShown, "use --artifacts DIR to keep the whole diff")
}

// cutAtLine shortens a text to whole lines within a limit, and appends the number of bytes that it cut, and
// a remark.
func cutAtLine(text string, limit int, remedy string) string {
	if len(text) <= limit {
		return text
	}
	lines := text[:strings.LastIndexByte(text[:limit], '\n')+1]
	return lines + fmt.Sprintf("... %d more bytes; %s\n", len(text)-len(lines), remedy)
}

// diff formats changes as git does, including symlinks and modes. It treats files above maxDiffFile as
// binary.
func (w *workspace) diff(changes []grade.Change) (string, error) {
	now, err := w.currentFiles()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, c := range changes {
		before, existed := w.initial[c.Path]
		after, exists := now[c.Path]
		if existed && exists && before.mode.Type() != after.mode.Type() { // git shows a changed file type as removed and added
			err = errors.Join(w.writeFileDiff(&out, c.Path, &before, nil), w.writeFileDiff(&out, c.Path, nil, &after))
		} else {
			err = w.writeFileDiff(&out, c.Path, entryOrNil(before, existed), entryOrNil(after, exists))
		}
		if err != nil {
			return "", err
		}
		if out.Len() > maxDiff {
			break
		}
	}
	return cutAtLine(out.String(), maxDiff, "diffs are limited"), nil
}

func entryOrNil(e entry, exists bool) *entry {
	if !exists {
		return nil
	}
	return &e
}

// writeFileDiff writes the diff of one file; nil means that the file does not exist.
func (w *workspace) writeFileDiff(out *strings.Builder, path string, before, after *entry) error {
	a, b := quotedPath("a/"+path), quotedPath("b/"+path)
	fmt.Fprintf(out, "diff --git %s %s\n", a, b)
	switch {
	case before == nil:
		fmt.Fprintf(out, "new file mode %s\n", gitMode(after.mode))
		a = "/dev/null"
	case after == nil:
		fmt.Fprintf(out, "deleted file mode %s\n", gitMode(before.mode))
		b = "/dev/null"
	case before.mode != after.mode:
		fmt.Fprintf(out, "old mode %s\nnew mode %s\n", gitMode(before.mode), gitMode(after.mode))
	}
	if before != nil && after != nil && before.sum == after.sum {
		return nil
	}
	old, oldIsText, err := diffText(w.fixtureDir, path, before)
	if err != nil {
		return err
	}
	current, currentIsText, err := diffText(w.dir, path, after)
	if err != nil {
		return err
	}
	if !oldIsText || !currentIsText {
		fmt.Fprintf(out, "Binary files %s and %s differ\n", a, b)
		return nil
	}
	out.WriteString(udiff.Unified(a, b, old, current))
	return nil
}

// gitMode formats a mode as git does.
func gitMode(mode fs.FileMode) string {
	switch {
	case mode.Type() == fs.ModeSymlink:
		return "120000"
	case mode.Type() != 0: // git has no mode for pipes and sockets
		return "000000"
	case mode&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// quotedPath quotes a path with special characters.
func quotedPath(path string) string {
	if quoted := strconv.Quote(path); quoted != `"`+path+`"` {
		return quoted
	}
	return path
}

// diffText returns the text of a file for a diff. isText is false for binary and large files. It does
// not follow symlinks: their text is the target.
func diffText(dir, path string, e *entry) (text string, isText bool, err error) {
	switch {
	case e == nil:
		return "", true, nil
	case e.mode.Type() == fs.ModeSymlink:
		return strings.TrimPrefix(e.sum, "-> "), true, nil
	case e.mode.Type() != 0:
		return "", true, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", false, err
	}
	defer root.Close()
	info, err := root.Lstat(filepath.FromSlash(path))
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxDiffFile {
		return "", false, err
	}
	data, err := root.ReadFile(filepath.FromSlash(path))
	if err != nil || !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return "", false, err
	}
	return string(data), true, nil
}
