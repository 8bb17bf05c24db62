package permission

import (
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
)

// optionPrograms lists programs for which optionCommands makes up options from eca's tables. It
// leaves out programs that may run forever (tail -f, free -s, sleep).
func optionPrograms() []string {
	out := strings.Fields("ls cat head stat du wc realpath readlink file tree md5sum sha256sum b2sum cksum cut tr nl tac rev fold paste join expand unexpand column cmp comm od strings seq sort uniq xxd diff" +
		" pwd whoami arch df id uname nproc which basename dirname uptime date grep egrep fgrep rg jq sed awk find")
	for _, sub := range strings.Fields("log show whatchanged rev-list diff-tree reflog shortlog diff diff-index diff-files status blame annotate grep ls-files ls-tree describe rev-parse merge-base name-rev branch tag remote stash worktree cat-file for-each-ref show-ref count-objects check-ignore cherry symbolic-ref show-branch") {
		out = append(out, "git "+sub)
	}
	return out
}

// optionCommands generates commands from the table of a program: options in different spellings,
// groups of short options, values that look like something else, options before and after operands.
func optionCommands() *rapid.Generator[string] {
	names := optionPrograms()
	// The kinds of values and operands: a file, one that leads outside, an option, the end of
	// options, something that runs or is written.
	words := []string{
		"a.txt", "b.txt", "sub", "sub/c.go", "data.json", "list", ".", "none", "1", "2", "x", "foo", "HEAD", "HEAD~1", "main", "out", "sub/key", "out/../a.txt", "sub/back/../a.txt", "..", "../..", "/etc/hostname", "--", "-", "-o", "-opwn", "--output=pwn",
		"pwn", "./x.sh", "-x", "-R", "-L", "-f", "--pre=./x.sh", "--ext-diff", "-O./x.sh", "@list", "%G?", "%(signature)", "'*.txt'", "a*", "sub/*", "'s/a/b/w pwn'", "1p", "'1p;w pwn'", ".a", "env", "'*'", "-exec", "';'", "{}", "+", "never", "all", "list", "show", "1,2", "a", "''", "-5", "+%s", "auto",
	}
	return rapid.Custom(func(t *rapid.T) string {
		name := rapid.SampledFrom(names).Draw(t, "program")
		entries := cmdline.Options(name)
		word := rapid.SampledFrom(words)
		parts := []string{name}
		for range rapid.IntRange(0, 5).Draw(t, "words") {
			kind := rapid.IntRange(0, 9).Draw(t, "kind")
			if kind < 4 || len(entries) == 0 {
				parts = append(parts, word.Draw(t, "word"))
				continue
			}
			entry := strings.TrimLeft(rapid.SampledFrom(entries).Draw(t, "entry"), "!>~")
			spellings, values, takes := strings.Cut(strings.Replace(entry, "[=", "=", 1), "=")
			optional := strings.Contains(entry, "[=")
			option := rapid.SampledFrom(strings.Split(spellings, ",")).Draw(t, "spelling")
			long := strings.HasPrefix(option, "--")
			switch {
			case kind == 4 && long: // shortened
				option = option[:rapid.IntRange(3, len(option)).Draw(t, "length")]
			case kind == 5 && !long && len(option) == 2: // after others
				for range rapid.IntRange(0, 10).Draw(t, "letters") {
					other := strings.TrimLeft(rapid.SampledFrom(entries).Draw(t, "letter"), "!>~")
					if len(other) >= 2 && other[1] != '-' && !strings.Contains(other, "=") {
						option = "-" + other[1:2] + option[1:]
					}
				}
			}
			switch {
			case !takes, optional && kind == 6:
				parts = append(parts, option)
			case kind >= 8 || optional: // attached
				glue := ""
				if long {
					glue = "="
				}
				parts = append(parts, option+glue+word.Draw(t, "value"))
			default:
				parts = append(parts, option)
				for range strings.Count(values, ":") + 1 {
					parts = append(parts, word.Draw(t, "value"))
				}
			}
		}
		wrapper := rapid.SampledFrom([]string{"", "", "", "", "timeout -s KILL 20 ", "timeout 20 -- ", "nice -n 5 -- ", "env LC_ALL=C -- ", "stdbuf -oL ", "command -- ", "cd sub/back && ", "cd su? && "}).Draw(t, "wrapper")
		return wrapper + strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
	})
}

// scriptCommands generates scripts of sed and awk from pieces whose meaning depends on their
// position: delimiters, quotes, and commands that write, read or run something.
func scriptCommands() *rapid.Generator[string] {
	pieces := map[string][]string{
		"sed":    {"1", "$", "/a/", "/", "[", "]", "[/]", `\`, `\/`, "s", "s/a/b/", "s|a|b|", "y/a/b/", "p", "d", "n", "N", "w pwn", "w", "r sub/key", "e", "e ./x.sh", "g", "I", ",", "~", "+", "!", ";", "\n", "{", "}", " ", "a", ":a", "t", "q", "#", "2", "M", "^", "]", "[^]]", "[[:space:]]", "c", "i"}, // no b, which may go on forever
		"sed -n": {"1", "$", "/b/", "p", ";", "s/b/c/", "w pwn", "{", "}", "e", "I", "/", "[", `\`},
		"awk":    {"{", "}", "print", "printf", "$1", "$0", ">", `"pwn"`, `"`, "/", "/a/", "/\"/", " ", ";", "\n", "NR", "==", "1", "|", `"sh"`, `"./x.sh"`, "(", ")", "if", "else", "exit", "length", "++", "a", "=", "<", "getline", `"sub/key"`, `\`, "[", "]", ",", "&&", "||", "!", "~", "system", "BEGIN", "END", "#", "-", "?", ":"},
	}
	return rapid.Custom(func(t *rapid.T) string {
		name := rapid.SampledFrom([]string{"sed", "sed -n", "awk"}).Draw(t, "program")
		script := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces[name]), 1, 9).Draw(t, "pieces"), "")
		if name == "awk" && rapid.Bool().Draw(t, "in braces") {
			script = "{print " + script + "}"
		}
		return "timeout -s KILL 20 " + name + " '" + script + "' a.txt b.txt"
	})
}
