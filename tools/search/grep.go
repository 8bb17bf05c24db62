// Package search holds the native tools grep and glob. They need no external program,
// respect ignore files and stop when they are cancelled or have enough; grep skips binary
// files.
package search

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

//go:embed grep.md
var grepDoc string

const (
	maxLine    = 64 << 10 // longer lines are searched, but shown cut
	maxShown   = 500      // bytes shown of a matching line
	maxFile    = 64 << 20 // larger files are not searched
	defaultMax = 1000
)

// Output modes.
const (
	modeFiles   = "files_with_matches"
	modeContent = "content"
	modeCount   = "count"
)

type grepArgs struct {
	Path       string `json:"path" jsonschema:"The absolute path of the directory or file to search."`
	Pattern    string `json:"pattern" jsonschema:"The regular expression to search for (RE2 syntax)."`
	Include    string `json:"include,omitempty" jsonschema:"Only search files whose name or path matches this glob, for example *.go or **/*.{ts,tsx}."`
	MaxResults int    `json:"max_results,omitempty" jsonschema:"Stop after this many results (default: 1000)."`
	OutputMode string `json:"output_mode,omitempty" jsonschema:"What to return: the paths of files that match (default), the matching lines, or the number of matches per file."`
}

// Tools returns the tools of this package.
func Tools() []tools.Tool {
	return []tools.Tool{grepTool(), glob()}
}

func grepTool() tools.Tool {
	return tools.Definition[grepArgs]{
		ReadOnly: true, Name: "grep", Description: grepDoc, Preparing: "Searching",
		Enums: map[string][]string{"output_mode": {modeFiles, modeContent, modeCount}},
		Plan: func(_ context.Context, call tools.Call, a grepArgs) (tools.Plan, error) {
			if _, err := regexp.Compile(a.Pattern); err != nil {
				return tools.Plan{}, fmt.Errorf("INVALID_ARGS: pattern: %w", err)
			}
			if a.Include != "" && !doublestar.ValidatePattern(a.Include) {
				return tools.Plan{}, fmt.Errorf("INVALID_ARGS: include %q is not a glob", a.Include)
			}
			return tools.Plan{
				Summary: "Searching: " + a.Pattern,
				Paths:   []string{workspace.Abs(call.Roots, a.Path)},
			}, nil
		},
		Run: func(ctx context.Context, call tools.Call, a grepArgs, _ tools.Sink) (tools.Result, error) {
			path := workspace.Abs(call.Roots, a.Path)
			if _, err := call.Place(0, path); err != nil {
				return tools.Result{}, err
			}
			return grep(ctx, path, workspace.New(append(slices.Clone(call.Roots), path)...), a)
		},
	}.Build()
}

// search is one run of grep.
type search struct {
	re    *regexp.Regexp
	mode  string
	left  int // results that may still be added
	cut   bool
	lines []string
	total int
}

func grep(ctx context.Context, path string, within *workspace.Workspace, a grepArgs) (tools.Result, error) {
	re, err := regexp.Compile(a.Pattern)
	if err != nil {
		return tools.Result{}, fmt.Errorf("INVALID_ARGS: pattern: %w", err)
	}
	s := &search{re: re, mode: a.OutputMode, left: a.MaxResults}
	if s.mode == "" {
		s.mode = modeFiles
	}
	if s.left <= 0 {
		s.left = defaultMax
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return tools.Result{}, fmt.Errorf("%s does not exist", path)
	case info.Mode().IsRegular():
		err = s.file(ctx, path)
	case info.IsDir():
		err = workspace.Walk(ctx, path, func(f workspace.File) error {
			if f.Dir || !included(a.Include, f.Rel) {
				return nil
			}
			if !searched(f.Path, within) {
				return nil
			}
			if s.left == 0 {
				s.cut = true
				return filepath.SkipAll
			}
			return s.file(ctx, f.Path)
		})
	default:
		return tools.Result{}, fmt.Errorf("%s is neither a file nor a directory", path)
	}
	if err != nil {
		return tools.Result{}, err
	}
	if s.total == 0 {
		return tools.Text("No matches found for " + a.Pattern), nil
	}
	out := strings.Join(s.lines, "\n")
	if s.cut {
		out += "\n\n[stopped after max_results; narrow the search to see the rest]"
	}
	return tools.Text(out), nil
}

// searched says whether a file of a tree is looked into: pipes and devices would hold us
// up, and links may lead to what nobody asked for.
func searched(path string, within *workspace.Workspace) bool {
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&os.ModeSymlink != 0 && within.Contains(path) {
		info, err = os.Stat(path)
	}
	return err == nil && info.Mode().IsRegular()
}

func included(glob, rel string) bool {
	if glob == "" {
		return true
	}
	if !strings.Contains(glob, "/") {
		rel = rel[strings.LastIndexByte(rel, '/')+1:]
	}
	ok, _ := doublestar.Match(glob, rel)
	return ok
}

// file searches one file. Files that cannot be read are skipped: they may be gone,
// or not ours.
func (s *search) file(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil
	}
	r := bufio.NewReaderSize(f, maxLine)
	if head, _ := r.Peek(maxLine); workspace.IsBinary(head) {
		return nil
	}
	count := 0
	for n := 1; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) { // search the head of an overlong line only
			line = bytes.Clone(line)
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = r.ReadSlice('\n')
			}
		}
		if len(line) > 0 && s.re.Match(bytes.TrimRight(line, "\r\n")) {
			count++
			if s.mode == modeContent {
				if s.left == 0 {
					s.cut = true
					break
				}
				s.left--
				s.lines = append(s.lines, fmt.Sprintf("%s:%d:%s", path, n, show(line)))
			}
			if s.mode == modeFiles {
				break
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return nil
			}
			break
		}
	}
	s.total += count
	if count > 0 && s.mode != modeContent {
		s.left--
		if s.mode == modeCount {
			path = fmt.Sprintf("%s:%d", path, count)
		}
		s.lines = append(s.lines, path)
	}
	return nil
}

func show(line []byte) string {
	line = bytes.TrimRight(line, "\r\n")
	if len(line) > maxShown {
		return strings.ToValidUTF8(string(line[:maxShown]), "") + "…"
	}
	return string(line)
}
