// Package contexts turns what the user points at, in a list or by @path in the
// message, into blocks for the model.
//
// It serves files and images (whole or ranges of lines, in any encoding that can be
// recognised), folders, the cursor, a map of the workspace, texts, and what others fetch for it:
// pages of the web, and resources of MCP servers. All that takes a connection comes at once,
// and within ten seconds or not at all.
//
// It guarantees that a prompt carries nothing twice and no more than the limits below,
// however much the user points at, and that everything left out is named with a reason: a
// broken context never stops a prompt. Files are read when a prompt is made; the
// package keeps nothing.
package contexts

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/workspace"
)

// Limits of what one prompt may carry.
const (
	maxBlock    = 256 << 10 // bytes of one text
	maxTotal    = 1 << 20   // bytes of all texts
	maxImage    = workspace.MaxImage
	maxImages   = 20 // images
	maxProblems = 20 // reasons that are given
)

// Ref is one thing the user points at (eca-protocol 2.4).
type Ref struct {
	Type      string // text, file, directory, cursor, repoMap, image, web, mcpResource
	Label     string // of text
	Text      string // of text
	Path      string // of file, directory and cursor
	FirstLine int    // of file: 1-based, inclusive; 0 for the whole file
	LastLine  int
	Start     Position // of cursor; both ends are equal unless something is selected
	End       Position
	Base64    string // of image
	URL       string // of web and mcpResource
	Server    string // of mcpResource
}

// Position is a place in a file, 1-based; a Line of 0 is unknown.
type Position struct{ Line, Character int }

// Block is resolved context: text, and an image if Data is set.
type Block struct {
	Label     string
	Text      string
	MediaType string // of Data: image/png, image/jpeg, image/gif or image/webp
	Data      []byte
}

// Query is what is pointed at in one prompt.
type Query struct {
	Roots   []string // workspace folders
	Message string   // mentions of files in it count too
	Refs    []Ref
	ChatID  string // of a prompt that a model is to answer; else empty
}

// Source resolves references.
type Source interface {
	// Resolve returns the blocks, and a reason for each reference that was left out, as
	// a whole or in part. It ends early with ctx.
	Resolve(ctx context.Context, q Query) (blocks []Block, problems []string)
}

// Local is the Source for what this machine has.
type Local struct {
	Mapper    Mapper    // nil: a tree of files is shown instead of a map
	Web       Fetcher   // nil: no pages
	Resources Resources // nil: no resources of MCP servers
}

var _ Source = Local{}

// Resolve implements Source. Blocks are in the order of the references, mentions of the
// message after, and ranges of lines last: what a whole file or a folder has brought
// is not brought again.
func (l Local) Resolve(ctx context.Context, q Query) (blocks []Block, problems []string) {
	r := &resolver{ctx: ctx, roots: q.Roots, existing: map[string]bool{}, partialLines: map[string][]span{}, mapper: l.Mapper}
	refs := append(slices.Clone(q.Refs), mentions(q.Roots, q.Message)...)
	r.about.Message = q.Message
	for _, ref := range refs {
		if ref.Path != "" && (ref.Type == "file" || ref.Type == "cursor" || ref.Type == "directory") {
			r.about.Paths = append(r.about.Paths, workspace.Abs(q.Roots, ref.Path))
		}
	}
	slices.SortStableFunc(refs, func(a, b Ref) int { return rangeRank(a) - rangeRank(b) })
	r.remote = l.fetch(ctx, refs)
	left := 0
	for _, ref := range refs {
		if ctx.Err() != nil {
			break
		}
		if err := r.add(ref); err != nil {
			if left++; left <= maxProblems {
				problems = append(problems, err.Error())
			}
		}
	}
	if left > maxProblems {
		problems = append(problems, fmt.Sprintf("and %d more", left-maxProblems))
	}
	return r.blocks, problems
}

func rangeRank(r Ref) int {
	if r.FirstLine > 0 {
		return 1
	}
	return 0
}

// resolver collects the blocks of one prompt.
type resolver struct {
	ctx          context.Context
	roots        []string
	mapper       Mapper
	about        About
	remote       map[remoteKey]*remoteBlocks
	existing     map[string]bool   // keys of existing blocks
	partialLines map[string][]span // lines of files that are there in part, by key
	size         int               // bytes of text
	images       int
	blocks       []Block
}

// add resolves one reference; the error is the reason to leave it out.
func (r *resolver) add(ref Ref) error {
	switch ref.Type {
	case "text":
		return r.addBlock("text "+ref.Label+"\x00"+ref.Text, Block{Label: ref.Label, Text: ref.Text})
	case "file", "directory":
		return r.path(ref)
	case "cursor":
		return r.cursor(ref)
	case "repoMap":
		if len(r.roots) == 0 || r.existing["repoMap"] {
			return nil
		}
		return r.addBlock("repoMap", r.repoMap())
	case "image":
		b, err := decodeImage(ref.Base64)
		if err != nil {
			return err
		}
		return r.addBlock(fmt.Sprintf("image %x", sha256.Sum256(b.Data)), b)
	case "web", "mcpResource":
		return r.fetched(ref)
	}
	return fmt.Errorf("this version does not know contexts of type %q", ref.Type)
}

// addBlock adds a block unless it exists.
func (r *resolver) addBlock(key string, b Block) error {
	if r.existing[key] {
		return nil
	}
	switch {
	case len(b.Text) > maxBlock:
		return fmt.Errorf("%s is larger than %d bytes", b.Label, maxBlock)
	case r.size+len(b.Text) > maxTotal:
		return fmt.Errorf("%s does not fit: contexts of one prompt may have %d bytes together", b.Label, maxTotal)
	case b.Data != nil && r.images == maxImages:
		return fmt.Errorf("%s does not fit: one prompt may have %d images", b.Label, maxImages)
	}
	if b.Data != nil {
		r.images++
	}
	r.existing[key] = true
	r.size += len(b.Text)
	r.blocks = append(r.blocks, b)
	return nil
}

// cursor says where the user is in the editor, not the text there. Editors send it
// without a path when no file is open.
func (r *resolver) cursor(ref Ref) error {
	if ref.Path == "" {
		return nil
	}
	var b strings.Builder
	b.WriteString(workspace.Abs(r.roots, ref.Path))
	if ref.Start.Line > 0 {
		fmt.Fprintf(&b, ", line %d, character %d", ref.Start.Line, ref.Start.Character)
		if ref.End.Line > 0 && ref.End != ref.Start {
			fmt.Fprintf(&b, " to line %d, character %d (selected)", ref.End.Line, ref.End.Character)
		}
	}
	return r.addBlock("cursor "+b.String(), Block{Label: "cursor", Text: b.String()})
}
