//go:build unix

package cmdline

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// valuesDriver runs each of its arguments as a program in a separate subshell. The commands are
// functions that report their words on descriptor 9. The variables of the programs already have
// values, which eca does not know.
const valuesDriver = `
exec 9>&2 2>/dev/null
log() { local line; printf -v line '\001%s' "$@"; printf '%s\002' "$line" >&9; }
for name in cat wc head grep ls sort; do eval "$name() { log $name \"\$@\"; }"; done
echo() { log echo "$@"; printf '%s\n' "$*"; }
[() { log '[' "$@"; builtin [ "$@"; }
for text; do
( ulimit -t 1; a='-e nv' b=/env c='*'; export b; set -- /one; eval "$text"; wait ) </dev/null >/dev/null
printf '\003' >&9
done
`

// valueWriter writes programs with variables at random.
type valueWriter struct{ *rand.Rand }

func (w valueWriter) word() string {
	return pick(w.Rand, "x.txt", "'a b'", "-n", "*.txt", "sub/*", "''", `"$a"`, `"$a"`, `"$b"`, `"$b"`, "$a", "$b", `"$c"`, `"$a/$b"`, "$a.txt", `"${b}x"`, `$a/*`, `"$a"*`, `"*"`, `"$(echo q)"`, "$(echo q r)", "$?", `"$?"`, "{a,b}", `"$(a=k; echo "$a")"`, `"$1"`,
		"${a%x}", `"${a#*p}"`, `"${b%%/*}"`, `"${a##-}"`, "${a:-d}", `"${b:--v}"`, `"${c-e}"`, `"${#a}"`, "$((a + 1))", "$((a*$b - 3))", `"$((b / a % 4))"`, "$((4 - 7))", "$(( (a-b)*2 ))")
}

func (w valueWriter) command() string {
	out := pick(w.Rand, "cat", "wc", "head", "grep", "ls", "echo", "sort")
	for range w.IntN(4) {
		out += " " + w.word()
	}
	return out
}

func (w valueWriter) assignment() string {
	name := pick(w.Rand, "a", "b", "c")
	if w.IntN(8) == 0 { // other ways to set a variable
		return strings.ReplaceAll(pick(w.Rand, "export N=z", "declare N=z", "readonly N", "read N < list", "read -r N <<< z", "eval 'N=z'", "unset N", "printf -v N z", ": ${N:=z}", "N+=z", "f() { N=z; }; f", "mapfile N < list", "let N=1", "((N=1))", "N[0]=z", "N=z cat \"$N\"", "N=z | cat", "N=z &", "typeset -n N=a", "getopts z N", "echo $((N=1))", "N=z > list", "( N=z )", "echo \"$(N=z)\"", "for N in z; do :; done", "false && N=z", "true || N=z", "[[ -n z ]] && N=z", "cat <<< \"$N\"", "local N=z", "set -- z", "IFS=/", "PATH=z", "coproc N { cat; }", "test -v N", "wait -p N", "printf '%s%n' z N", "{N}< list cat"), "N", name)
	}
	return name + "=" + pick(w.Rand, "x", "-r", "'p q'", "/abs", "*.txt", "7", "-12", "0", "$((5 - a))", "${b#/}", w.word(), w.word())
}

func (w valueWriter) test() string {
	return pick(w.Rand, "[[ -f "+w.word()+" ]]", "[[ "+w.word()+" == "+w.word()+" ]]", "[[ -n "+w.word()+" && ! -d "+w.word()+" ]]", "[ -f "+w.word()+" ]", "[ -n "+w.word()+" ]", "[ "+w.word()+" = "+w.word()+" ]", "[ $? -eq 0 ]", "[ ! -e "+w.word()+" ]", "[ "+w.word()+" "+w.word()+" ]")
}

func (w valueWriter) statement(depth int) string {
	if depth == 0 {
		return pick(w.Rand, w.command(), w.command(), w.assignment(), w.assignment(), w.test())
	}
	s := func() string { return w.statement(w.IntN(depth)) }
	return pick(w.Rand, s, s, s,
		func() string { return s() + "; " + s() }, func() string { return s() + "; " + s() }, func() string { return s() + " && " + s() }, func() string { return s() + " || " + s() },
		func() string { return s() + " | " + s() }, func() string { return "{ " + s() + "; }" }, func() string { return "( " + s() + " )" }, func() string { return "! " + s() }, func() string { return "time " + s() },
		func() string { return "if " + s() + "; then " + s() + "; else " + s() + "; fi" },
		func() string {
			return "for " + pick(w.Rand, "a", "b") + " in " + w.word() + " " + w.word() + "; do " + s() + "; " + s() + "; done"
		},
		func() string { return "while read -r " + pick(w.Rand, "a", "a b") + "; do " + s() + "; done < list" },
		func() string {
			return "case " + w.word() + " in x*|/abs) " + s() + ";; -r) " + s() + ";& *) " + s() + "; esac"
		},
		func() string { return "cat \"$( " + s() + " )\"" }, func() string { return "bash -c 'a=i; ls \"$a\"'; " + s() },
	)()
}

// The test runs programs with variables, which Reads accepts, in bash. Their commands get only words
// that eca predicted. For a longer run, use `go test -run ValuesAreThose -programs 100000 -seed 0`.
func TestValuesAreThoseThatWereJudged(t *testing.T) {
	needs.Long(t)
	needs.Program(t, "bash", "bash")
	dir := differentialWorld(t)
	if err := os.WriteFile(filepath.Join(dir, "list"), []byte("-v a[$(echo)]\n* /etc\n\nlast"), 0o600); err != nil {
		t.Fatal(err)
	}
	form := Form{Home: "/home/u", Dir: dir, Glob: globFor(t)}
	seed := seed()
	w := valueWriter{rand.New(rand.NewPCG(seed, 0))}
	var texts []string
	var programs []Program
	tried, commands, several := 0, 0, 0
	for len(texts) < *programCount/10 { // each of them needs one or more processes
		text := w.statement(1 + w.IntN(3))
		for range w.IntN(3) {
			text += "; " + w.statement(w.IntN(3))
		}
		tried++
		printed, judged, _ := Parse(text).Canonical(form)
		if ok, _ := judged.Reads(); ok && strings.Contains(printed, "${") {
			texts, programs = append(texts, printed), append(programs, judged)
		}
	}
	const batch = 250
	for start := 0; start < len(texts); start += batch {
		part := texts[start:min(start+batch, len(texts))]
		cmd := exec.CommandContext(t.Context(), "bash", append([]string{"-c", valuesDriver, "bash"}, part...)...)
		cmd.Dir, cmd.Env = dir, []string{"LC_ALL=C", "HOME=/home/u", "PATH=/usr/bin:/bin"}
		var reported bytes.Buffer
		cmd.Stderr = &reported
		err := cmd.Run()
		reports := strings.Split(reported.String(), "\x03")
		if len(reports) != len(part)+1 {
			t.Fatalf("%v: %d reports of %d programs", err, len(reports)-1, len(part))
		}
		for i, text := range part {
			for call := range strings.SplitSeq(reports[i], "\x02") {
				words := strings.Split(strings.TrimPrefix(call, "\x01"), "\x01")
				if call == "" {
					continue
				}
				commands++
				p := programs[start+i]
				if words[0] == "for" || !slices.ContainsFunc(p.Commands, func(c Command) bool { return c.Name == words[0] && coversWords(c, words[1:]) }) {
					t.Fatalf("seed %d: %q gets %q, which was not judged", seed, text, words)
				}
				if slices.ContainsFunc(p.Commands, func(c Command) bool { return len(c.Forms) > 1 }) {
					several++
				}
			}
		}
	}
	t.Logf("of %d programs, %d pass for reading; they ran %d commands, %d of them in programs whose words have several values", tried, len(texts), commands, several)
}

// coversWords reports whether eca checked a command with these words.
func coversWords(c Command, words []string) bool {
	text := strings.Join(append([]string{c.Name}, words...), " ")
	if len(c.Forms) > 0 && !strings.Contains(c.Forms[0], "$") {
		return slices.ContainsFunc(c.Forms, func(form string) bool {
			return form == text || strings.ContainsAny(form, "*") && matchesForm(form, text)
		})
	}
	if !strings.Contains(c.Text, "$") {
		return c.Text == text || strings.Contains(c.Text, "*") && matchesForm(c.Text, text)
	}
	// The words are unknown, which is harmless for these commands, and for operands of test.
	return safeForAnyArgs(c.Name) || len(words) > 1 && c.Name == "["
}

// matchesForm reports whether words result from a form when its patterns are expanded.
func matchesForm(form, text string) bool {
	want, got := strings.Fields(form), strings.Fields(text)
	for _, w := range want {
		if !strings.Contains(w, "*") && !slices.Contains(got, w) {
			return false
		}
	}
	return len(got) >= len(want)
}
