// Package contexts turns what the user points at into blocks of text for the model.
//
// It serves text blocks and files with line ranges; what it cannot read it leaves out
// with a reason, so that a broken context never stops a prompt.
package contexts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/workspace"
)

// Limits of what one prompt may carry.
const (
	maxBlock = 256 << 10 // bytes of one context
	maxTotal = 1 << 20   // bytes of all contexts of a prompt
)

// Ref is one thing the user points at.
type Ref struct {
	Type      string // text, file; others are ignored
	Label     string // of text
	Text      string // of text
	Path      string // of file
	FirstLine int    // of file: 1-based, inclusive; 0 for the whole file
	LastLine  int
}

// Block is resolved context.
type Block struct {
	Label string
	Text  string
}

// Source resolves references.
type Source interface {
	// Resolve returns the blocks, in order, and a reason for each reference that was
	// left out.
	Resolve(ctx context.Context, roots []string, refs []Ref) (blocks []Block, problems []string)
}

// Files is the Source for text and files.
type Files struct{}

var _ Source = Files{}

// Resolve implements Source.
func (Files) Resolve(_ context.Context, roots []string, refs []Ref) (blocks []Block, problems []string) {
	total := 0
	for _, ref := range refs {
		var b Block
		var err error
		switch ref.Type {
		case "text":
			b = Block{Label: ref.Label, Text: ref.Text}
		case "file":
			b, err = file(roots, ref)
		default:
			continue
		}
		if err == nil && len(b.Text) > maxBlock {
			err = fmt.Errorf("%s is larger than %d bytes", b.Label, maxBlock)
		}
		if err == nil && total+len(b.Text) > maxTotal {
			err = fmt.Errorf("%s does not fit: contexts of one prompt may have %d bytes together", b.Label, maxTotal)
		}
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		total += len(b.Text)
		blocks = append(blocks, b)
	}
	return blocks, problems
}

func file(roots []string, ref Ref) (Block, error) {
	path := workspace.Abs(roots, ref.Path)
	info, err := os.Stat(path)
	if err != nil {
		return Block{}, fmt.Errorf("%s can not be read", path)
	}
	if !info.Mode().IsRegular() {
		return Block{}, fmt.Errorf("%s is not a regular file", path)
	}
	// A range may be a small part of a large file, but not of an absurd one.
	if info.Size() > 64*maxBlock || ref.FirstLine == 0 && info.Size() > maxBlock {
		return Block{}, fmt.Errorf("%s has %d bytes, which is too much for a context", path, info.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Block{}, fmt.Errorf("%s can not be read", path)
	}
	if workspace.IsBinary(data) {
		return Block{}, fmt.Errorf("%s is a binary file", filepath.Base(path))
	}
	text, label := string(data), path
	if ref.FirstLine > 0 {
		lines := strings.SplitAfter(text, "\n")
		from := min(ref.FirstLine-1, len(lines))
		to := min(max(ref.LastLine, ref.FirstLine), len(lines))
		text = strings.Join(lines[from:to], "")
		label = fmt.Sprintf("%s:L%d-L%d", path, ref.FirstLine, to)
	}
	return Block{Label: label, Text: text}, nil
}
