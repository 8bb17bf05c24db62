package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/repomap"
)

// Representations of a repository that are compared.
const (
	focusedMap   = "map"
	plainMap     = "map without focus and log"
	otherMap     = "other program's map"
	pathList     = "list of paths"
	indentedTree = "indented tree"
)

// result is the result for one repository.
type result struct {
	name, head     string
	commits, files int              // number of evaluated commits, and of the files that they changed
	known          int              // largest number of files in a map
	found          map[string][]int // by representation and budget: number of changed files that it shows
	notes          []string         // one per commit and budget, for -v
}

// clone is a clone of a repository in which commits are checked out.
type clone struct {
	dir, git string
}

// evaluate evaluates the commits of a repository, going back in its history.
func evaluate(ctx context.Context, repo string, o options) (*result, error) {
	source, err := filepath.Abs(repo)
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "repomap-history-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	c := clone{dir: filepath.Join(temp, "tree"), git: o.git}
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		return nil, err
	}
	if _, err := c.run(ctx, "clone", "-q", "--shared", "--no-checkout", source, "."); err != nil {
		return nil, err
	}
	head, err := c.run(ctx, "rev-parse", "HEAD")
	if err != nil {
		return nil, err
	}
	ids, err := c.run(ctx, "log", "--no-merges", "--format=%H", "--skip", strconv.Itoa(o.skip), "-n", strconv.Itoa(o.maxCommits*o.interval))
	if err != nil {
		return nil, err
	}
	name := filepath.Base(source)
	if name == "repo" || name == ".git" {
		name = filepath.Base(filepath.Dir(source))
	}
	r := &result{name: name, head: strings.TrimSpace(head), found: map[string][]int{}}
	focused := repomap.New(repomap.Options{Git: o.git})
	defer focused.Close()
	unfocused := repomap.New(repomap.Options{})
	defer unfocused.Close()
	for i, id := range strings.Fields(ids) {
		if i%o.interval != 0 {
			continue
		}
		if err := r.evaluateCommit(ctx, c, id, focused, unfocused, o); err != nil {
			return nil, fmt.Errorf("commit %.12s: %w", id, err)
		}
	}
	return r, nil
}

// evaluateCommit evaluates one commit, unless it is the first one or changed too much.
func (r *result) evaluateCommit(ctx context.Context, c clone, id string, focused, unfocused *repomap.Index, o options) error {
	if _, err := c.run(ctx, "rev-parse", "-q", "--verify", id+"^"); err != nil {
		return ctx.Err() // the first commit has no parent
	}
	if _, err := c.run(ctx, "checkout", "-q", "-f", "--detach", id+"^"); err != nil {
		return err
	}
	if err := c.setFileTimes(ctx); err != nil {
		return err
	}
	touched, err := c.run(ctx, "diff-tree", "-r", "-z", "--no-commit-id", "--name-only", "--no-renames", "--diff-filter=M", id)
	if err != nil {
		return err
	}
	message, err := c.run(ctx, "log", "-1", "--format=%B", id)
	if err != nil {
		return err
	}
	all, err := unfocused.Map(ctx, c.dir, repomap.Focus{})
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for i := range all.Files {
		known[all.Files[i].Path] = true
	}
	r.known = max(r.known, len(known))
	changed := map[string]bool{}
	for _, file := range strings.Split(touched, "\x00") {
		if known[file] {
			changed[file] = true
		}
	}
	if len(changed) == 0 || len(changed) > o.maxFiles {
		return nil
	}
	m, err := focused.Map(ctx, c.dir, repomap.Focus{Text: message})
	if err != nil {
		return err
	}
	r.commits, r.files = r.commits+1, r.files+len(changed)
	paths := sorted(known)
	others, err := c.otherMaps(ctx, o, message)
	if err != nil {
		return err
	}
	for b, tokens := range o.budgets {
		shown := shownPaths(m.Text(tokens))
		r.count(focusedMap, b, o, changed, shown)
		r.count(plainMap, b, o, changed, shownPaths(all.Text(tokens)))
		if others != nil {
			r.count(otherMap, b, o, changed, shownPaths(others[b]))
		}
		r.count(pathList, b, o, changed, pathsWithin(paths, tokens, func(p, _ string) string { return p }))
		r.count(indentedTree, b, o, changed, pathsWithin(paths, tokens, treeLines))
		if o.verbose {
			subject, _, _ := strings.Cut(message, "\n")
			missed := map[string]bool{}
			for p := range changed {
				if !shown[p] {
					missed[p] = true
				}
			}
			r.notes = append(r.notes, fmt.Sprintf("%.10s %d tokens: %d of %d: %s\n    missed: %s", id, tokens, len(changed)-len(missed), len(changed), subject, strings.Join(sorted(missed), " ")))
		}
	}
	return nil
}

// otherMaps returns the maps of another program, by budget; nil if no program is set.
func (c clone) otherMaps(ctx context.Context, o options, message string) ([]string, error) {
	command := strings.Fields(o.other)
	if len(command) == 0 {
		return nil, nil
	}
	args := command[1:]
	for _, b := range o.budgets {
		args = append(args, strconv.Itoa(b))
	}
	program, found := proc.LookPath(command[0], os.Getenv("PATH"))
	if !found {
		return nil, fmt.Errorf("%s is not on PATH", command[0])
	}
	var out, errs bytes.Buffer
	exit, err := proc.Run(ctx, proc.Spec{Path: program, Args: args, Dir: c.dir, Stdin: strings.NewReader(message), Stdout: &out, Stderr: &errs})
	switch {
	case err != nil:
		return nil, err
	case exit.Code != 0:
		return nil, fmt.Errorf("%s: %s", o.other, strings.TrimSpace(errs.String()))
	}
	maps := strings.Split(out.String(), "\f")
	if len(maps) != len(o.budgets) {
		return nil, fmt.Errorf("%s printed %d maps, not %d", o.other, len(maps), len(o.budgets))
	}
	return maps, nil
}

// count adds the number of changed files that a text shows.
func (r *result) count(representation string, budget int, o options, changed, shown map[string]bool) {
	if r.found[representation] == nil {
		r.found[representation] = make([]int, len(o.budgets))
	}
	for p := range changed {
		if shown[p] {
			r.found[representation][budget]++
		}
	}
}

// shownPaths returns the paths of the files in the text of a map, which has one on each line, or several
// in braces. Signatures in the result do no harm: they equal no path.
func shownPaths(text string) map[string]bool {
	out := map[string]bool{}
	for line := range strings.SplitSeq(text, "\n") {
		dir, names, several := strings.Cut(line, "/{")
		if !several || strings.HasPrefix(line, " ") {
			out[strings.TrimSuffix(line, ":")] = true
			continue
		}
		for name := range strings.SplitSeq(strings.TrimSuffix(names, "}"), ",") {
			out[dir+"/"+name] = true
		}
	}
	return out
}

// pathsWithin returns the first paths whose lines fit into a budget. line returns the text for a path, given
// the previous path.
func pathsWithin(paths []string, tokens int, line func(p, before string) string) map[string]bool {
	out, room, before := map[string]bool{}, 4*tokens, ""
	for _, p := range paths {
		if room -= len(line(p, before)) + 1; room < -1 { // the last line needs no end
			break
		}
		out[p] = true
		before = p
	}
	return out
}

// treeLines returns the lines for a path in an indented tree: a line for each folder that the previous
// path does not share, and a line with the name.
func treeLines(p, previous string) string {
	var out strings.Builder
	previousFolders := strings.Split(path.Dir(previous), "/")
	same := true
	folders := strings.Split(path.Dir(p), "/")
	if folders[0] == "." {
		folders = nil
	}
	for i, f := range folders {
		if same = same && previous != "" && i < len(previousFolders) && previousFolders[i] == f; !same {
			out.WriteString(strings.Repeat(" ", i) + f + "\n")
		}
	}
	out.WriteString(strings.Repeat(" ", len(folders)) + path.Base(p))
	return out.String()
}

// setFileTimes sets the modification time of each file to a value that depends only on its content
// and is older than any commit. The times of the checkout would reveal which files the evaluated commit
// changed.
func (c clone) setFileTimes(ctx context.Context) error {
	listing, err := c.run(ctx, "ls-tree", "-r", "-z", "HEAD")
	if err != nil {
		return err
	}
	for entry := range strings.SplitSeq(listing, "\x00") {
		meta, file, ok := strings.Cut(entry, "\t")
		fields := strings.Fields(meta)
		if !ok || len(fields) < 3 || fields[0] == "120000" || fields[1] != "blob" {
			continue
		}
		const digits = 7 // 28 bits: eight years
		seconds, err := strconv.ParseInt(fields[2][:digits], 16, 64)
		if err != nil {
			return fmt.Errorf("ls-tree: %q", entry)
		}
		when := time.Unix(1+seconds, 0)
		if err := os.Chtimes(filepath.Join(c.dir, filepath.FromSlash(file)), when, when); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// run runs git in the clone.
func (c clone) run(ctx context.Context, args ...string) (string, error) {
	var out, errs bytes.Buffer
	exit, err := proc.Run(ctx, proc.Spec{
		Path: c.git, Dir: c.dir, Stdout: &out, Stderr: &errs,
		Args: append([]string{"-c", "core.quotePath=false", "-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false"}, args...),
	})
	switch {
	case err != nil:
		return "", err
	case ctx.Err() != nil:
		return "", ctx.Err()
	case exit.Code != 0:
		return "", fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// write prints the share of files that was found.
func (r *result) write(out io.Writer, o options) error {
	for _, n := range r.notes {
		fmt.Fprintln(out, n)
	}
	fmt.Fprintf(out, "%s %.12s: %d commits, %d changed files; maps have up to %d files\n", r.name, r.head, r.commits, r.files, r.known)
	if r.commits == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "  tokens")
	for _, b := range o.budgets {
		fmt.Fprintf(w, "\t%d", b)
	}
	for _, representation := range []string{focusedMap, plainMap, otherMap, pathList, indentedTree} {
		if r.found[representation] == nil {
			continue
		}
		fmt.Fprintf(w, "\n  %s", representation)
		for _, n := range r.found[representation] {
			fmt.Fprintf(w, "\t%.3f", float64(n)/float64(r.files))
		}
	}
	fmt.Fprintln(w)
	return w.Flush()
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
