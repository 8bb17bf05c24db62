package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// Parse lists the simple commands of a shell line. It returns false for a line whose
// effect cannot be told from its words alone: substitutions, expansions, subshells,
// control structures, here-documents, redirections to files, assignments, functions,
// or anything that does not parse. `>/dev/null` and `2>&1` are harmless.
//
// A command's Key is what "remember this" remembers: its name, with the subcommand
// for programs that have them; empty for programs that run other programs.
func Parse(line string) ([]event.Command, bool) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil || len(file.Stmts) == 0 {
		return []event.Command{}, false
	}
	out := []event.Command{}
	for _, stmt := range file.Stmts {
		if !collect(stmt, &out) {
			return []event.Command{}, false
		}
	}
	return out, true
}

func collect(stmt *syntax.Stmt, out *[]event.Command) bool {
	if stmt.Negated || stmt.Background || stmt.Coprocess {
		return false
	}
	for _, r := range stmt.Redirs {
		if !harmless(r) {
			return false
		}
	}
	switch cmd := stmt.Cmd.(type) {
	case *syntax.BinaryCmd:
		return collect(cmd.X, out) && collect(cmd.Y, out)
	case *syntax.CallExpr:
		if len(cmd.Assigns) > 0 || len(cmd.Args) == 0 {
			return false
		}
		words := make([]string, len(cmd.Args))
		for i, w := range cmd.Args {
			lit, ok := literal(w)
			if !ok {
				return false
			}
			words[i] = lit
		}
		*out = append(*out, event.Command{Name: words[0], Args: words[1:], Key: approvalKey(words)})
		return true
	}
	return false
}

// harmless accepts redirections that create or change no file.
func harmless(r *syntax.Redirect) bool {
	target, ok := literal(r.Word)
	if !ok {
		return false
	}
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrAll, syntax.AppAll, syntax.RdrIn:
		return target == "/dev/null"
	case syntax.DplOut, syntax.DplIn:
		return target == "1" || target == "2"
	}
	return false
}

// literal returns a word's value when nothing in it is expanded.
func literal(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			s, ok := unescape(part.Value)
			if !ok {
				return "", false
			}
			b.WriteString(s)
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", false
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || strings.Contains(lit.Value, `\`) {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// unescape resolves backslashes of an unquoted literal and refuses brace expansion
// and a leading tilde, which the shell would change.
func unescape(s string) (string, bool) {
	if strings.ContainsAny(s, "{}") || strings.HasPrefix(s, "~") {
		return "", false
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
			if i == len(s) || s[i] == '\n' {
				return "", false
			}
		}
		b.WriteByte(s[i])
	}
	return b.String(), true
}

// approvalKey names a command for "remember".
func approvalKey(words []string) string {
	name := words[0]
	switch {
	case name == "" || strings.ContainsAny(name, "/*?["):
		return ""
	case slices.Contains(wrappers(), name):
		return ""
	case slices.Contains(multiCommands(), name):
		if len(words) == 1 {
			return name
		}
		// An option before the subcommand may change what runs.
		if words[1] == "" || strings.HasPrefix(words[1], "-") {
			return ""
		}
		return name + " " + words[1]
	}
	return name
}

// wrappers run other programs, or code, given as arguments or on standard input.
func wrappers() []string {
	return []string{
		"sudo", "doas", "su", "env", "xargs", "nohup", "nice", "ionice", "time", "timeout", "watch", "setsid", "stdbuf",
		"sh", "bash", "zsh", "dash", "ksh", "fish", "eval", "exec", "command", "builtin", "source", ".", "ssh", "find", "parallel",
		"python", "python3", "perl", "ruby", "node", "php", "awk", "gawk", "sed", "tee", "dd", "make", "npx", "uvx", "bunx",
	}
}

// multiCommands take a subcommand that decides what they do.
func multiCommands() []string {
	return []string{
		"git", "gh", "go", "npm", "pnpm", "yarn", "bun", "deno", "cargo", "rustup", "docker", "podman", "kubectl", "helm",
		"terraform", "aws", "gcloud", "az", "pip", "pip3", "uv", "poetry", "conda", "brew", "apt", "apt-get", "dnf", "systemctl",
		"mvn", "gradle", "dotnet", "mix", "bundle", "gem", "composer", "flutter", "dart", "swift", "nix", "clojure", "clj", "lein",
	}
}
