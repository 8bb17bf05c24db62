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
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// node is a part of a text with dynamic strings (eca-features.md 3.2): either plain text, or an
// expression ${kind:...} with the nodes between its braces.
type node struct {
	text  string // text, or the kind of an expression
	parts []node
	expr  bool
}

// maxNesting is how deeply expressions may be nested.
const maxNesting = 8

// parseDynamic splits a text into nodes. Within a command, balanced braces belong to the command.
// An expression without a closing brace counts as text; open is the kind of the outermost one.
func parseDynamic(s string) (parts []node, open string) {
	type frame struct {
		kind   string
		parts  []node
		braces int
	}
	stack := []frame{{}}
	from := 0 // start of the remaining text
	flush := func(end int) {
		if end > from {
			top := &stack[len(stack)-1]
			top.parts = append(top.parts, node{text: s[from:end]})
		}
	}
	for i := 0; i < len(s); {
		if kind := opening(s[i:]); kind != "" && len(stack) <= maxNesting {
			flush(i)
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
			flush(i)
			done := node{text: top.kind, parts: top.parts, expr: true}
			stack = stack[:len(stack)-1]
			stack[len(stack)-1].parts = append(stack[len(stack)-1].parts, done)
			from = i + 1
		}
		i++
	}
	flush(len(s))
	for len(stack) > 1 {
		f := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		below := &stack[len(stack)-1]
		below.parts = append(append(below.parts, node{text: "${" + f.kind + ":"}), f.parts...)
		open = f.kind
	}
	return stack[0].parts, open
}

// kinds lists the kinds of expressions.
func kinds() []string { return []string{"env", "file", "netrc", "cmd", "classpath", "plugin"} }

// ReadsSecret reports whether a text has an expression whose value is probably a secret: the output of a
// command, the content of a file, or an entry of a netrc file.
func ReadsSecret(text string) bool {
	return strings.Contains(text, "${cmd:") || strings.Contains(text, "${file:") || strings.Contains(text, "${netrc:")
}

// opening returns the kind of the expression at the beginning of a text.
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

// resolver evaluates the dynamic strings of one file. Expressions without a function here are
// errors.
type resolver struct {
	getenv        func(string) string
	dir           string // the base of relative paths
	within        string // if set, only files in this folder are read, and env, netrc and cmd are not resolved
	plugin        string // the plugin's folder; empty if the text is not from a plugin
	recordFile    func(path string)
	lastContent   func(path string) (string, bool)           // of a file that is missing temporarily; may be nil
	recordContent func(path, text string)                    // records the content of a file; may be nil
	netrc         func() []string                            // the netrc files
	resource      func(name string) (string, error)          // built-in texts
	command       func(command string) (string, bool, error) // the bool is true while the command is running
}

// expansion is the result of resolving a text.
type expansion struct {
	text    string
	pieces  []piece // parts that do not come from the text itself
	pending bool    // a command is still running
	errs    []error
	unset   []string // environment variables without a value and without a default
	sources []string // what else the text comes from, in words

	variable string // an environment variable whose value the text contains
}

// piece is a part of a value.
type piece struct {
	text     string
	secret   bool // comes from a netrc file or a command, and so counts as a secret
	external bool // does not come from the text itself
}

// expand resolves a text. Expressions that cannot be resolved become empty and cause an error.
// Missing variables become empty without an error.
func (r *resolver) expand(s string) expansion {
	if !strings.Contains(s, "${") {
		return expansion{text: s}
	}
	var x expansion
	parts, open := parseDynamic(s)
	if open != "" {
		x.errs = append(x.errs, openError(open))
	}
	x.text = r.eval(parts, &x, 0)
	x.pieces = externalPieces(x.pieces, s)
	return x
}

// eval returns the text of nodes. It records pieces only at the top level: the parts of an
// expression are not part of the value.
func (r *resolver) eval(parts []node, x *expansion, depth int) string {
	var out strings.Builder
	for _, n := range parts {
		p := piece{text: n.text}
		if n.expr {
			p = r.evalExpression(n, x, depth)
		}
		out.WriteString(p.text)
		if depth == 0 {
			x.pieces = append(x.pieces, p)
		}
	}
	return out.String()
}

// evalExpression evaluates one expression.
func (r *resolver) evalExpression(n node, x *expansion, depth int) piece {
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
		var running bool
		if r.command == nil {
			err = errors.New("commands are not run here")
		} else if text, running, err = r.command(arg); running {
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
			err = fmt.Errorf("unknown expression ${plugin:%s}; ${plugin:root} is the plugin's folder", arg)
		case r.plugin == "":
			err = errors.New("${plugin:root} can be used only in the files of a plugin")
		default:
			text = r.plugin
		}
	}
	if err != nil {
		x.errs = append(x.errs, err)
	}
	switch {
	case text == "":
	case n.text == "file":
		x.sources = append(x.sources, "the file "+arg)
	case n.text == "netrc":
		x.sources = append(x.sources, "the netrc entry "+arg)
	case n.text == "cmd":
		x.sources = append(x.sources, "the output of a command")
	}
	builtIn := n.text == "classpath" || n.text == "plugin"
	return piece{text: text, external: !builtIn, secret: n.text == "netrc" || n.text == "cmd"}
}

// variable evaluates ${env:NAME} and ${env:NAME:default}. The default is evaluated only if it is
// needed, because it may be a command.
func (r *resolver) variable(n node, x *expansion, depth int) piece {
	name, fallback := n.parts, []node(nil)
	for i, p := range n.parts {
		if before, after, ok := strings.Cut(p.text, ":"); ok && !p.expr {
			name = append(slices.Clone(n.parts[:i]), node{text: before})
			fallback = append([]node{{text: after}}, n.parts[i+1:]...)
			break
		}
	}
	variable := r.eval(name, x, depth+1)
	if value := r.getenv(variable); value != "" {
		x.variable = variable
		x.sources = append(x.sources, "the environment variable "+variable)
		return piece{text: value, external: true}
	}
	if fallback == nil {
		x.unset = append(x.unset, variable)
	}
	// A default in plain text is part of the configured text; the value of an expression in it is not.
	p := piece{text: r.eval(fallback, x, depth+1)}
	for _, f := range fallback {
		p.external = p.external || f.expr
		p.secret = p.secret || f.expr && (f.text == "netrc" || f.text == "cmd")
	}
	return p
}

// password looks up a netrc entry. A file that other users can read is used, but reported.
func (r *resolver) password(key string) (string, error) {
	files := r.netrc()
	for _, f := range files {
		r.recordFile(f)
	}
	e, ok, err := netrc.FindKey(files, key)
	switch {
	case err != nil:
		return "", fmt.Errorf("${netrc:%s}: %w", key, err)
	case !ok:
		return "", fmt.Errorf("${netrc:%s}: there is no such entry in %s", key, strings.Join(files, " or "))
	case e.Exposed:
		err = fmt.Errorf("${netrc:%s}: other users can read %s; run chmod 600 on it", key, e.File)
	}
	return e.Password(), err
}

// externalPieces returns the pieces that do not come from the text itself, and joins adjacent ones. It
// leaves out pieces that the text itself also contains.
func externalPieces(pieces []piece, written string) []piece {
	var out []piece
	for i, p := range pieces {
		switch {
		case !p.external:
		case i > 0 && pieces[i-1].external && len(out) > 0:
			last := &out[len(out)-1]
			last.text += p.text
			last.secret = last.secret || p.secret
		default:
			out = append(out, p)
		}
	}
	return slices.DeleteFunc(out, func(p piece) bool { return p.text == "" || strings.Contains(written, p.text) })
}

// maxIncluded limits the size of a ${file:...}.
const maxIncluded = 1 << 20

// file evaluates ${file:PATH}.
func (r *resolver) file(path string) (string, error) {
	path = atHome(path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.dir, path)
	}
	r.recordFile(path)
	text, err := includeFile(path, r.within)
	if errors.Is(err, fs.ErrNotExist) && r.lastContent != nil {
		if last, ok := r.lastContent(path); ok {
			text, err = last, nil
		}
	}
	if err == nil && r.recordContent != nil {
		r.recordContent(path, text)
	}
	return text, err
}

// includeFile reads a file. If within is set, links must not lead out of that folder.
func includeFile(path, within string) (string, error) {
	data, err := safeio.ReadWithin(within, path, maxIncluded)
	if err != nil {
		return "", fmt.Errorf("${file:%s} cannot be read: %w", path, safeio.Cause(err))
	}
	return strings.TrimSpace(string(data)), nil
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

// openError is the error for an expression without an end.
type openError string

func (e openError) Error() string {
	return "${" + string(e) + ": has no closing brace"
}
