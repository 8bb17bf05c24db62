package cmdline

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"
)

// readers is a second list, independent of the tables, of the programs that may run without asking. A
// program that Reads accepts must run nothing else.
const readers = " pwd ls cat head tail wc stat du df which whoami id uname arch nproc echo true false : basename dirname realpath readlink cut nl tac rev fold tr paste join expand unexpand column" +
	" cmp comm diff grep egrep fgrep cd md5sum sha1sum sha256sum sha512sum cksum od strings seq sleep jq test [ printf date sort uniq file tree find rg git type command" +
	" for [[ read break continue hostname base64 hexdump zcat set exit timeout nice stdbuf time builtin ionice env xargs sh bash dash eval make gcc "

// checkReads checks a program that Reads accepts in another way: every command in its syntax tree
// must be one of the readers, and no file may be opened for writing.
func checkReads(t interface{ Fatalf(string, ...any) }, text string) {
	p := Parse(text)
	if ok, _ := p.Reads(); !ok {
		return
	}
	for _, c := range p.Commands {
		if c.Name != "<" && c.Name != "" && !strings.Contains(readers, " "+c.Name+" ") {
			t.Fatalf("%q runs %q", text, c.Name)
		}
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		t.Fatalf("%q passes, and does not parse", text)
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			for _, a := range n.Assigns {
				if name := a.Name.Value; len(n.Args) == 0 && strings.ToLower(name) != name && len(name) > 1 {
					t.Fatalf("%q sets %s", text, name)
				}
			}
			if len(n.Args) == 0 {
				return true
			}
			for _, part := range n.Args[0].Parts {
				switch part.(type) {
				case *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted:
				default:
					t.Fatalf("%q computes a command", text)
				}
			}
			if name := n.Args[0].Lit(); name != "" && !strings.Contains(name, `\`) && !strings.Contains(readers, " "+name+" ") {
				t.Fatalf("%q runs %q", text, name)
			}
			for _, arg := range n.Args[1:] {
				switch lit := arg.Lit(); {
				case strings.HasPrefix(lit, "-exec") && n.Args[0].Lit() == "find", lit == "-delete" && n.Args[0].Lit() == "find", strings.HasPrefix(lit, "--pre") && n.Args[0].Lit() == "rg", strings.HasPrefix(lit, "--output") && n.Args[0].Lit() == "git":
					t.Fatalf("%q has %s", text, lit)
				}
			}
		case *syntax.Redirect:
			switch n.Op {
			case syntax.RdrIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.DplIn, syntax.DplOut:
			default:
				if n.Word.Lit() != "/dev/null" && printNode(n.Word) != "/dev/null" {
					t.Fatalf("%q writes %q", text, printNode(n.Word))
				}
			}
		case *syntax.FuncDecl, *syntax.ProcSubst, *syntax.DeclClause, *syntax.LetClause, *syntax.ArithmCmd, *syntax.CoprocClause:
			t.Fatalf("%q has a %T", text, n)
		}
		return true
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"ls -la | head", "git log --output=x", "find . -exec sh -c 'id' {} ;", "echo \"$(rm x)\"", "cat <<E\n$(x)\nE", "sh -c 'ls; rm a'", "X=1 ls >x", "f() { ls; }; f", "ls {a,b} $'\\x41' ${x:=y}",
		"env -S 'a b' c", "timeout -k 1 5 ls", "a\\\nb", "[[ a -eq b ]]", "case x in a|b) ls;; esac", "xargs -I {} git push {}", "eval 'ls' \"-l\"",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { checkReads(t, text) })
}

// programs generates shell programs from pieces that are dangerous together.
func programs() *rapid.Generator[string] {
	names := []string{"ls", "cat", "git", "find", "rm", "sh", "env", "xargs", "echo", "timeout", "sort", "rg", "sudo", "eval", "cd", "x", `l\s`, "'rm'", "$x", "command", "test", "printf", "nice", "[", "read", "declare", "break"}
	words := []string{
		"-l", "a", "..", "/etc/passwd", "--output=x", "-o", "-c", "-exec", "-delete", "{}", `\;`, "+", "status", "log", "-C", "5", "*", "?.go", "'a b'", `"b"`, "$x", "~", "{a,b}", "--", "-v", "-", "--pre=x",
		"'rm x'", "ls", "rm", "A=1", "-n", "-I", "branch", "diff", "--ext-diff", "-S", `"$x"`, "$'a'", "x", "]", "=", "$(ls)", `"$(ls)"/*`, "$?", "$((x + 1))", `"${x%a}"`, "${x:-rm}", "${#x}",
	}
	simple := rapid.Custom(func(t *rapid.T) string {
		parts := []string{}
		if rapid.IntRange(0, 9).Draw(t, "assigns") == 0 {
			parts = append(parts, rapid.SampledFrom([]string{"A=1", "LC_ALL=C", "PATH=.", "A=$(rm x)"}).Draw(t, "assignment"))
		}
		parts = append(parts, rapid.SampledFrom(names).Draw(t, "name"))
		parts = append(parts, rapid.SliceOfN(rapid.SampledFrom(words), 0, 4).Draw(t, "words")...)
		if rapid.IntRange(0, 7).Draw(t, "redirects") == 0 {
			parts = append(parts, rapid.SampledFrom([]string{">x", ">>x", "2>/dev/null", "2>&1", "<a", "&>x", ">|x", "<>x", "3>x", "<<<a", "</dev/tcp/a/1"}).Draw(t, "redirection"))
		}
		return strings.Join(parts, " ")
	})
	var program func(depth int) *rapid.Generator[string]
	program = func(depth int) *rapid.Generator[string] {
		if depth == 0 {
			return simple
		}
		return rapid.Custom(func(t *rapid.T) string {
			a, b := program(depth-1).Draw(t, "a"), program(depth-1).Draw(t, "b")
			form := rapid.SampledFrom([]string{
				"A", "A; B", "A && B", "A || B", "A | B", "A & B", "(A)", "{ A; }", "! A", "time A", "if A; then B; fi", "while A; do B; done", "for i in a; do A; done", "f() { A; }; B",
				"echo $(A)", "echo \"`A`\"", "cat <(A)", "case a in a) A;; esac", "sh -c 'A'", "eval 'A'", "A\nB", "sh <<E\nA\nE", "cat <<'E'\nA\nE", "[[ $(A) ]]",
				"x=a; A; B", "x=-o; A", "x=$(A); B", "x='a b' && A", "for x in a --output=x; do A; B; done", "for x in $(A); do B; done", "while read -r x; do A; done", "A | while IFS= read -r x; do B; done", "[[ -f $x ]] && A", "bash -lc 'A'", "A; cat < \"$x\"", "PATH=.; A", "x=a; (x=b; A); B", "x=2; A; B", "case $x in a|b*) A;; *) B;; esac", "x=a; case $x in a) A;& b) B; esac", "x=$((2 + 3)); A", "x=a.o; y=${x#a}; A",
			}).Draw(t, "form")
			return strings.NewReplacer("A", a, "B", b).Replace(form)
		})
	}
	return rapid.Custom(func(t *rapid.T) string { return program(rapid.IntRange(0, 3).Draw(t, "depth")).Draw(t, "program") })
}

// If Reads accepts a generated program, all of its commands are readers.
func TestGeneratedPrograms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkReads(t, programs().Draw(t, "program")) })
}

// Of 500 generated programs, which are the same in each run, Reads accepts some.
// TestGeneratedPrograms only checks accepted programs, and a short run of it draws 20, so it may
// check none.
func TestGeneratedProgramsPass(t *testing.T) {
	passed := 0
	for seed := range 500 {
		if ok, _ := Parse(programs().Example(seed)).Reads(); ok {
			passed++
		}
	}
	if passed < 10 {
		t.Errorf("Reads accepts %d of 500 generated programs, want at least 10", passed)
	}
}

func printNode(n syntax.Node) string {
	var b strings.Builder
	if err := syntax.NewPrinter().Print(&b, n); err != nil {
		return err.Error()
	}
	return strings.Trim(b.String(), `'"`)
}
