package contexts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/workspace"
)

// Limits of instruction files. Text beyond them is omitted, with a note.
const (
	maxAgentsFile    = 64 << 10  // bytes of one file; a larger one is cut
	maxAgentsTotal   = 128 << 10 // bytes of all of them
	maxImportDepth   = 5         // length of a chain of imports
	maxAgentsFiles   = 50
	maxAgentsParents = 64 // folders above a root that are searched
)

// AgentsQuery describes where to look for instruction files (eca-features.md 11).
type AgentsQuery struct {
	Roots   []string // workspace folders, searched in this order
	Global  string   // folder of the user's own AGENTS.md; may be empty
	Parents bool     // also search the folders above a root, the outermost first (includeParentAgentsFiles)
	Claude  bool     // in a folder without AGENTS.md, use CLAUDE.md (claudeMdFallback)

	// ClaudeHome is the folder of the user's own CLAUDE.md; empty if it is not used.
	ClaudeHome string
}

// AgentsFile is a file with instructions for the model, or a file that it imports.
type AgentsFile struct {
	Path string // as the user would name it
	Text string
}

// Agents reads the AGENTS.md files, each followed by the files that it imports with @path. No file
// is included twice, by whatever path or symlink. The files of a workspace and their imports must
// not lead out of its folder: they were written by the authors of the project, and their text is
// sent to the provider. problems names the omitted files with the reason.
func Agents(ctx context.Context, q AgentsQuery) (files []AgentsFile, problems []string) {
	r := &agentsReader{ctx: ctx, visited: map[string]bool{}}
	for _, root := range q.Roots {
		for _, dir := range folders(root, q.Parents) {
			limit := dir
			if dir == root {
				limit = ""
			}
			r.addFolder(dir, q.Claude, r.allowedFolders(limit, q.Roots))
		}
	}
	if q.Global != "" {
		// The user's own file may be a symlink to anywhere.
		r.addFolder(q.Global, false, nil)
	}
	if q.ClaudeHome != "" {
		r.addFolder(q.ClaudeHome, true, nil)
	}
	return r.files, r.problems
}

// folders returns a root, preceded by the folders above it if parents is set.
func folders(root string, parents bool) []string {
	dirs := []string{root}
	for dir := root; parents && len(dirs) <= maxAgentsParents && filepath.Dir(dir) != dir; {
		dir = filepath.Dir(dir)
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

// agentsReader collects instruction files.
type agentsReader struct {
	ctx      context.Context
	visited  map[string]bool // by path with symlinks resolved
	size     int
	files    []AgentsFile
	problems []string
}

// allowedFolders returns the folders that files must be in: the given folder or, if it is empty, the
// roots.
func (r *agentsReader) allowedFolders(folder string, roots []string) *workspace.Workspace {
	if folder != "" {
		return workspace.New(folder)
	}
	return workspace.New(roots...)
}

// addFolder adds the instructions of one folder. Its files and their imports must be in allowed; nil
// means the folder itself and, for a symlink, the folder of its target.
func (r *agentsReader) addFolder(dir string, claude bool, allowed *workspace.Workspace) {
	names := []string{"AGENTS.md"}
	if claude {
		names = append(names, "CLAUDE.md")
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil || info.IsDir() {
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				r.addProblem(path, "cannot be read")
			}
			continue
		}
		if allowed == nil {
			real, err := filepath.EvalSymlinks(path)
			if err != nil {
				r.addProblem(path, "cannot be read")
				return
			}
			allowed = workspace.New(dir, filepath.Dir(real))
		}
		r.add(path, "", 0, allowed)
		return
	}
}

func (r *agentsReader) addProblem(path, reason string) {
	switch len(r.problems) {
	case maxProblems:
		r.problems = append(r.problems, "and more")
	case maxProblems + 1:
	default:
		r.problems = append(r.problems, path+" "+reason)
	}
}

// add adds a file and the files that it imports.
func (r *agentsReader) add(path, from string, depth int, allowed *workspace.Workspace) {
	if r.ctx.Err() != nil {
		return
	}
	name := path
	if from != "" {
		name += ", which " + from + " imports,"
	}
	if !allowed.Contains(path) {
		r.addProblem(name, "lies outside its project")
		return
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		r.addProblem(name, "cannot be read")
		return
	}
	if r.visited[real] {
		return
	}
	r.visited[real] = true
	switch {
	case depth > maxImportDepth:
		r.addProblem(name, fmt.Sprintf("is not read: imports go %d files deep", maxImportDepth))
		return
	case len(r.files) == maxAgentsFiles:
		r.addProblem(name, fmt.Sprintf("is not read: there are more than %d such files", maxAgentsFiles))
		return
	}
	text, err := agentsText(real)
	if err != nil {
		r.addProblem(name, err.Error())
		return
	}
	imports := agentsImports(text)
	if room := min(maxAgentsFile, maxAgentsTotal-r.size); len(text) > room {
		r.addProblem(name, fmt.Sprintf("is cut: it has %d bytes, and there is room for %d", len(text), room))
		text = cutText(text, room) + "\n[The rest of this file does not fit here. Read it if you need it.]"
	}
	if text = strings.TrimSpace(text); text != "" {
		r.size += len(text)
		r.files = append(r.files, AgentsFile{Path: path, Text: text})
	}
	for _, imported := range imports {
		if strings.HasPrefix(imported, "~/") {
			imported = workspace.Abs(nil, imported)
		}
		if !filepath.IsAbs(imported) {
			imported = filepath.Join(filepath.Dir(path), filepath.FromSlash(imported))
		}
		// A word that does not name a file is not an import.
		if info, err := os.Stat(imported); err == nil && info.Mode().IsRegular() {
			r.add(filepath.Clean(imported), path, depth+1, allowed)
		}
	}
}

// agentsText reads a text file of at most maxBlock bytes.
func agentsText(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", errors.New("cannot be read")
	}
	if info.Size() > maxBlock {
		return "", fmt.Errorf("has %d bytes, which is too much", info.Size())
	}
	b, err := readFile(path, info)
	switch {
	case err != nil:
		return "", err
	case b.Data != nil:
		return "", errors.New("is an image")
	}
	return b.Text, nil
}

// cutText returns the beginning of a text, cut at a line end if there is one.
func cutText(text string, room int) string {
	if room <= 0 {
		return ""
	}
	text = text[:room]
	if i := strings.LastIndexByte(text, '\n'); i > 0 {
		return text[:i]
	}
	return strings.ToValidUTF8(text, "")
}

// agentsImports finds the imports in instructions: @path as a separate word that names a file with
// an extension, outside code.
func agentsImports(text string) []string {
	var out []string
	fence := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch mark := fenceMark(trimmed); {
		case fence == "" && mark != "":
			fence = mark
			continue
		case fence != "":
			if strings.HasPrefix(mark, fence) && strings.Trim(trimmed, mark[:1]) == "" {
				fence = ""
			}
			continue
		}
		for i, piece := range strings.Split(line, "`") {
			if i%2 == 1 {
				continue // inline code
			}
			for _, word := range strings.Fields(piece) {
				word = strings.TrimLeft(word, "([{<\"'*_")
				if path, ok := strings.CutPrefix(word, "@"); ok {
					path = strings.TrimRight(path, ".,;:!?)]}>\"'*_")
					if filepath.Ext(path) != "" && filepath.Ext(path) != path && !strings.Contains(path, "@") && !slices.Contains(out, path) {
						out = append(out, path)
					}
				}
			}
		}
	}
	return out
}

// fenceMark returns the ``` or ~~~ at the beginning of a line.
func fenceMark(line string) string {
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

// Render encloses the text of the file in tags for the model.
func (f AgentsFile) Render() string {
	// A closing tag in the text would make the rest of it look like something else.
	text := strings.ReplaceAll(f.Text, "</agents-file", "< /agents-file")
	return "<agents-file path=" + quoted(f.Path) + ">\n" + text + "\n</agents-file>"
}

// quoted returns the value of an attribute in quotes (eca-features.md 11).
func quoted(s string) string {
	switch {
	case !strings.Contains(s, `"`):
		return `"` + s + `"`
	case !strings.Contains(s, `'`):
		return `'` + s + `'`
	}
	return `"` + strings.ReplaceAll(s, `"`, "&quot;") + `"`
}
