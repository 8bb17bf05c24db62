package contexts

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Limits of the map, which clients request with every prompt.
const (
	mapLines  = 400
	mapFolder = 50 // entries shown of one folder below a root
)

// Mapper makes repository maps.
type Mapper interface {
	// MapContext returns a map of the folders. It is small even for large folders, and empty if they
	// have no source code. An error tells why the map is not available now.
	MapContext(ctx context.Context, roots []string, about About) (string, error)
}

// About is the subject of a prompt.
type About struct {
	Paths   []string // absolute paths that the user refers to
	Message string
}

// repoMap returns the map of the workspace, or a tree of its files if there is no map.
func (r *resolver) repoMap() Block {
	if r.mapper != nil {
		text, err := r.mapper.MapContext(r.ctx, r.roots, r.about)
		if err == nil && text != "" {
			return Block{Label: "repository map", Text: mapIntroduction + text}
		}
	}
	return fileTree(r.ctx, r.roots)
}

const mapIntroduction = "The most important files of the workspace, with signatures of what they define. Not everything is shown.\n"

// fileTree returns a tree of the workspace's files, as deep as the line limit allows.
func fileTree(ctx context.Context, roots []string) Block {
	var b strings.Builder
	b.WriteString("Files of the workspace. \"…\" stands for what is not shown.\n")
	for _, root := range roots {
		b.WriteString(visible.Name(root) + "\n")
		for _, line := range tree(ctx, root, max(mapLines/len(roots), 1)) {
			b.WriteString(line + "\n")
		}
	}
	return Block{Label: "repository map", Text: b.String()}
}

// tree returns at most limit lines. It reads one level more at a time, so that its cost depends on the
// result and not on the size of the workspace.
func tree(ctx context.Context, root string, limit int) []string {
	lines, deeper, full := level(ctx, root, 1, limit)
	if full {
		return append(lines, " …")
	}
	for depth := 2; deeper; depth++ {
		var next []string
		if next, deeper, full = level(ctx, root, depth, limit); full {
			break
		}
		lines = next
	}
	return lines
}

// level lists the entries down to a depth. deeper reports whether there are entries below it, full
// whether the limit cut the list.
func level(ctx context.Context, root string, depth, limit int) (lines []string, deeper, full bool) {
	shown := map[string]int{} // by folder
	_ = workspace.Walk(ctx, root, func(f workspace.File) error {
		folder := filepath.Dir(f.Path)
		shown[folder]++
		hidden := f.Depth > 1 && shown[folder] > mapFolder
		line := strings.Repeat(" ", f.Depth)
		switch {
		case hidden && shown[folder] > mapFolder+1:
			line = ""
		case hidden:
			line += "…"
		case !f.Dir:
			line += visible.Name(filepath.Base(f.Path))
		case f.Depth < depth:
			line += visible.Name(filepath.Base(f.Path)) + "/"
		default:
			deeper = true
			line += visible.Name(filepath.Base(f.Path)) + "/…"
		}
		if line != "" && len(lines) == limit {
			full = true
			return filepath.SkipAll
		}
		if line != "" {
			lines = append(lines, line)
		}
		if f.Dir && (hidden || f.Depth >= depth) {
			return filepath.SkipDir
		}
		return nil
	})
	return lines, deeper, full
}
