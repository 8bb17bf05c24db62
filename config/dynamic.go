package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/netrc"
	"github.com/seed-dec29ce4/eca/internal/regular"
)

// node is a piece of a text with dynamic strings (eca-features 3.2): text, or ${kind:...}
// with what stands in the braces.
type node struct {
	text  string // of an expression: its kind
	parts []node
	expr  bool
}

// maxNesting is how deep expressions are looked for in expressions.
const maxNesting = 8

// parseDynamic takes a text apart. In a command, braces that belong together are the
// command's. What is not closed is text; open names the first such kind.
func parseDynamic(s string) (parts []node, open string) {
	type frame struct {
		kind   string
		parts  []node
		braces int
	}
	stack := []frame{{}}
	from := 0 // of the text that was not taken yet
	take := func(end int) {
		if end > from {
			top := &stack[len(stack)-1]
			top.parts = append(top.parts, node{text: s[from:end]})
		}
	}
	for i := 0; i < len(s); {
		if kind := opening(s[i:]); kind != "" && len(stack) <= maxNesting {
			take(i)
			stack = append(stack, frame{kind: kind})
			i += len("${:") + len(kind)
			from = i
			continue
		}
		switch top := &stack[len(stack)-1]; {
		case s[i] == '{' && top.kind == "cmd":
			top.braces++
		case s[i] == '}' && top.braces > 0:
			top.braces--
		case s[i] == '}' && top.kind != "":
			take(i)
			done := node{text: top.kind, parts: top.parts, expr: true}
			stack = stack[:len(stack)-1]
			stack[len(stack)-1].parts = append(stack[len(stack)-1].parts, done)
			from = i + 1
		}
		i++
	}
	take(len(s))
	for len(stack) > 1 {
		f := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		below := &stack[len(stack)-1]
		below.parts = append(append(below.parts, node{text: "${" + f.kind + ":"}), f.parts...)
		open = f.kind
	}
	return stack[0].parts, open
}

// kinds are the kinds of expressions.
func kinds() []string { return []string{"env", "file", "netrc", "cmd", "classpath", "plugin"} }

// opening returns the kind of the expression that a text begins with.
func opening(s string) string {
	if !strings.HasPrefix(s, "${") {
		return ""
	}
	for _, kind := range kinds() {
		if strings.HasPrefix(s[2:], kind+":") {
			return kind
		}
	}
	return ""
}

// resolver evaluates dynamic strings of one file. What it has no function for is an error
// of the expression.
type resolver struct {
	getenv   func(string) string
	dir      string // for relative files
	within   string // the folder that files are read of, and nothing else resolved; empty: no bounds
	plugin   string // the plugin's folder; empty: the text is no plugin's
	looked   func(path string)
	recall   func(path string) (string, bool)           // what a file that is missing for a moment said; nil: unknown
	read     func(path, text string)                    // notes what a file says; may be nil
	netrc    func() []string                            // the files to look in
	resource func(name string) (string, error)          // built-in texts
	command  func(command string) (string, bool, error) // the second: it still runs
}

// expansion is what came of a text.
type expansion struct {
	text    string
	pieces  []piece // what was not written there
	pending bool    // a command still runs
	errs    []error
	unset   []string // environment variables without a value, and without a default
}

// piece is a part of a value that came from elsewhere.
type piece struct {
	text   string
	secret bool // for certain: from a netrc file or a command
	outer  bool // from elsewhere at all
}

// expand resolves a text. What can not be resolved becomes empty and is an error, but for
// missing variables, which are empty without one.
func (r *resolver) expand(s string) expansion {
	if !strings.Contains(s, "${") {
		return expansion{text: s}
	}
	var x expansion
	parts, open := parseDynamic(s)
	if open != "" {
		x.errs = append(x.errs, fmt.Errorf("${%s: has no closing brace; it is taken as text", open))
	}
	x.text = r.eval(parts, &x, 0)
	x.pieces = outer(x.pieces, s)
	return x
}

// eval returns the text of nodes. Pieces are noted at the top only: what an expression is
// made of is not part of the value.
func (r *resolver) eval(parts []node, x *expansion, depth int) string {
	var out strings.Builder
	for _, n := range parts {
		p := piece{text: n.text}
		if n.expr {
			p = r.one(n, x, depth)
		}
		out.WriteString(p.text)
		if depth == 0 {
			x.pieces = append(x.pieces, p)
		}
	}
	return out.String()
}

// one evaluates an expression.
func (r *resolver) one(n node, x *expansion, depth int) piece {
	if r.within != "" && slices.Contains([]string{"env", "netrc", "cmd"}, n.text) {
		x.errs = append(x.errs, fmt.Errorf("${%s:...} does nothing until the workspace folder is trusted", n.text))
		return piece{}
	}
	if n.text == "env" {
		return r.variable(n, x, depth)
	}
	arg := r.eval(n.parts, x, depth+1)
	var text string
	var err error
	switch n.text {
	case "file":
		text, err = r.file(arg)
	case "netrc":
		text, err = r.password(arg)
	case "cmd":
		var runs bool
		if r.command == nil {
			err = errors.New("commands are not run here")
		} else if text, runs, err = r.command(arg); runs {
			x.pending = true
		}
		if err != nil {
			err = fmt.Errorf("${cmd:...}: %w", err)
		}
	case "classpath":
		text, err = r.resource(arg)
		if err != nil {
			err = fmt.Errorf("${classpath:%s}: %w", arg, err)
		}
	case "plugin":
		switch {
		case arg != "root":
			err = fmt.Errorf("${plugin:%s} is not known; ${plugin:root} is the plugin's folder", arg)
		case r.plugin == "":
			err = errors.New("${plugin:root} has a value in files of plugins only")
		default:
			text = r.plugin
		}
	}
	if err != nil {
		x.errs = append(x.errs, err)
	}
	ours := n.text == "classpath" || n.text == "plugin"
	return piece{text: text, outer: !ours, secret: n.text == "netrc" || n.text == "cmd"}
}

// variable evaluates ${env:NAME} and ${env:NAME:default}. The default is looked at only if
// it is needed: it may be a command.
func (r *resolver) variable(n node, x *expansion, depth int) piece {
	name, fallback := n.parts, []node(nil)
	for i, p := range n.parts {
		if before, after, ok := strings.Cut(p.text, ":"); ok && !p.expr {
			name = append(slices.Clone(n.parts[:i]), node{text: before})
			fallback = append([]node{{text: after}}, n.parts[i+1:]...)
			break
		}
	}
	called := r.eval(name, x, depth+1)
	if value := r.getenv(called); value != "" {
		return piece{text: value, outer: true}
	}
	if fallback == nil {
		x.unset = append(x.unset, called)
	}
	// A default that is plain text is written here; one that is not comes from elsewhere.
	p := piece{text: r.eval(fallback, x, depth+1)}
	for _, f := range fallback {
		p.outer = p.outer || f.expr
		p.secret = p.secret || f.expr && (f.text == "netrc" || f.text == "cmd")
	}
	return p
}

// password looks a netrc entry up. A file that others can read is used and named.
func (r *resolver) password(key string) (string, error) {
	files := r.netrc()
	for _, f := range files {
		r.looked(f)
	}
	e, ok, err := netrc.FindKey(files, key)
	switch {
	case err != nil:
		return "", fmt.Errorf("${netrc:%s}: %w", key, err)
	case !ok:
		return "", fmt.Errorf("${netrc:%s}: there is no such entry in %s", key, strings.Join(files, " or "))
	case e.Exposed:
		err = fmt.Errorf("${netrc:%s}: others can read %s; make it yours alone (chmod 600)", key, e.File)
	}
	return e.Password(), err
}

// outer keeps the pieces that came from elsewhere, side by side as one, but for what is
// also written in the text.
func outer(pieces []piece, written string) []piece {
	var out []piece
	for i, p := range pieces {
		switch {
		case !p.outer:
		case i > 0 && pieces[i-1].outer && len(out) > 0:
			last := &out[len(out)-1]
			last.text += p.text
			last.secret = last.secret || p.secret
		default:
			out = append(out, p)
		}
	}
	return slices.DeleteFunc(out, func(p piece) bool { return p.text == "" || strings.Contains(written, p.text) })
}

// maxIncluded bounds a ${file:...}.
const maxIncluded = 1 << 20

// file evaluates ${file:PATH}.
func (r *resolver) file(path string) (string, error) {
	path = atHome(path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.dir, path)
	}
	r.looked(path)
	text, err := includeFile(path, r.within)
	if errors.Is(err, fs.ErrNotExist) && r.recall != nil {
		if last, ok := r.recall(path); ok {
			text, err = last, nil
		}
	}
	if err == nil && r.read != nil {
		r.read(path, text)
	}
	return text, err
}

func includeFile(path, within string) (string, error) {
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxIncluded) {
		return "", fmt.Errorf("${file:%s} is not a regular file of at most %d bytes", path, maxIncluded)
	}
	data, err := readWithin(path, within)
	if err != nil {
		return "", fmt.Errorf("${file:%s} cannot be read: %w", path, regular.WithoutPath(err))
	}
	return strings.TrimSpace(string(data)), nil
}

// readWithin reads the beginning of a file; within, if set, is the folder that links must
// not lead out of.
func readWithin(path, within string) ([]byte, error) {
	f, err := openWithin(path, within)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return regular.ReadOpen(f, maxIncluded)
}

func openWithin(path, within string) (*os.File, error) {
	if within == "" {
		return regular.Open(path)
	}
	rel, err := filepath.Rel(within, path)
	if err != nil {
		return nil, err
	}
	return regular.OpenIn(within, rel)
}

// atHome resolves a leading ~.
func atHome(path string) string {
	if path != "~" && !strings.HasPrefix(path, "~/") {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return filepath.Join(home, path[1:])
}
