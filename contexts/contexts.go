// Package contexts resolves the files and other contexts of a prompt, from a list or from mentions
// (@path) in the message, to blocks for the model.
//
// It supports files and images (whole or ranges of lines, in any recognizable encoding), folders,
// the cursor, a map of the workspace, texts, web pages, and resources of MCP servers. Web pages and
// resources are fetched in parallel; those that take longer than ten seconds are omitted.
//
// A prompt contains nothing twice and stays within the limits below. Every omission is reported
// with a reason: a broken context never stops a prompt. Files are read when a prompt is made; the
// package keeps no state.
package contexts

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/workspace"
)

// Limits of one prompt.
const (
	maxBlock    = 256 << 10 // bytes of one text
	maxTotal    = 1 << 20   // bytes of all texts
	maxImage    = workspace.MaxImage
	maxImages   = 20 // images
	maxProblems = 20 // reported reasons
)

// Ref is a reference of the user to a context (eca-protocol.md 2.4).
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

	mistake string // set for a mention that cannot be used: the reason
}

// Position is a position in a file, 1-based; a Line of 0 is unknown.
type Position struct{ Line, Character int }

// Block is resolved context: text, and an image if Data is set.
type Block struct {
	Label     string
	Text      string
	MediaType string // of Data: image/png, image/jpeg, image/gif or image/webp
	Data      []byte
}

// Query is the set of references in one prompt.
type Query struct {
	Roots   []string // workspace folders
	Message string   // may contain mentions of files
	Refs    []Ref
	ChatID  string // set if the prompt is to be answered by a model
}

// Source resolves references.
type Source interface {
	// Resolve returns the blocks, and a reason for each reference that was omitted, wholly or in
	// part. It ends early with ctx.
	Resolve(ctx context.Context, q Query) (blocks []Block, problems []string)
}

// Local is the Source of the daemon.
type Local struct {
	Mapper    Mapper    // nil shows a tree of files instead of a map
	Web       Fetcher   // nil omits web pages
	Resources Resources // nil omits resources of MCP servers
}

var _ Source = Local{}

// Resolve implements Source. The blocks of references come first, then those of mentions in the message,
// and then ranges of lines, without lines that a file or folder already includes.
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
	omitted := 0
	for _, ref := range refs {
		if ctx.Err() != nil {
			break
		}
		if err := r.add(ref); err != nil {
			if omitted++; omitted <= maxProblems {
				problems = append(problems, err.Error())
			}
		}
	}
	if omitted > maxProblems {
		problems = append(problems, fmt.Sprintf("and %d more", omitted-maxProblems))
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
	about        About // for the map
	remote       map[remoteKey]*remoteBlocks
	existing     map[string]bool   // keys of existing blocks
	partialLines map[string][]span // included lines of files that are not included whole, by key
	size         int               // bytes of text
	images       int
	blocks       []Block
}

// add resolves one reference; the error is the reason for omitting it.
func (r *resolver) add(ref Ref) error {
	if ref.mistake != "" {
		return errors.New(ref.mistake)
	}
	switch ref.Type {
	case "text":
		return r.addBlock("text "+ref.Label+"\x00"+ref.Text, Block{Label: ref.Label, Text: ref.Text})
	case "file", "directory":
		return r.addPath(ref)
	case "cursor":
		return r.addCursor(ref)
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
		return r.addRemote(ref)
	}
	return fmt.Errorf("this version does not know contexts of type %q", ref.Type)
}

// addBlock adds a block unless there is one with the same key.
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

// addCursor adds the position of the user in the editor, without the text there. Editors send it
// without a path if no file is open.
func (r *resolver) addCursor(ref Ref) error {
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
