//go:build unix

package cmdline

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

var programSeed = flag.Uint64("seed", 1, "seed of the programs of the differential tests; 0 chooses a random seed") //nolint:gochecknoglobals // a flag

// seed returns the seed of the generated programs. It is the same in each run, so that a test only
// fails because of a change.
func seed() uint64 {
	if *programSeed == 0 {
		return rand.Uint64()
	}
	return *programSeed
}

// programCount is how many programs of each kind the differential tests run.
var programCount = flag.Int("programs", 10_000, "how many programs of each kind the differential tests run") //nolint:gochecknoglobals // a flag

// otherBash is a bash of another version, such as the 3.2 that macOS has.
var otherBash = flag.String("otherbash", "", "path of another bash, which has to do the same with printed programs") //nolint:gochecknoglobals // a flag

// driver runs each of its arguments as a program in a separate subshell. The output and the exit code
// of each program end with NUL. The commands of the programs are functions, so that they need no
// process.
const driver = `
p() { printf '<%s>' "$@"; printf '\n'; }
cat() { if [ $# -gt 0 ]; then p file "$@"; else while l=; IFS= read -r l || [ -n "$l" ]; do printf '%s\n' "$l"; done; fi; }
grep() { p grep "$@"; cat; }
head() { p head "$@"; IFS= read -r l; printf '%s\n' "$l"; }
sort() { p sort "$@"; cat; }
wc() { n=0; while read -r l; do n=$((n+1)); done; p "$n" "$@"; }
ls() { p ls "$@"; }
find() { p find "$@"; }
git() { p git "$@"; return 3; }
touch() { p touch "$@"; }
for text; do
( ulimit -t 1; set --; eval "$text"; c=$?; wait; exit $c ) </dev/null
printf '\0%s\0' "$?"
printf '\0' >&2
done
`

// shellResult is the output, exit code and error output of a program.
type shellResult struct{ out, code, err string }

// sourceOf matches those parts of a shell's messages that quote the program's text: the number of the
// line, and the word of an ambiguous redirection. A program can send messages into a pipe, so they
// also occur in outputs.
var sourceOf = regexp.MustCompile(`line \d+: |\S+: ambiguous redirect`) //nolint:gochecknoglobals // a constant

// bareRedirection is a redirection without a command after a pipe: shells differ in its exit code.
var bareRedirection = regexp.MustCompile(`\|\s*<`) //nolint:gochecknoglobals // a constant

// runAll runs programs in a shell, many at a time.
func runAll(t *testing.T, shell, dir string, texts []string) []shellResult {
	t.Helper()
	out := make([]shellResult, len(texts))
	const batch = 250
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2)
	for start := 0; start < len(texts); start += batch {
		part := texts[start:min(start+batch, len(texts))]
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			cmd := exec.CommandContext(t.Context(), shell, append([]string{"-c", driver, shell}, part...)...) // the driver limits the time of each program
			cmd.Dir, cmd.Env = dir, []string{"LC_ALL=C", "HOME=/home/u", "PATH=/nowhere", "x=val ue", "y=", "z=*"}
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			fields, errs := strings.Split(stdout.String(), "\x00"), strings.Split(stderr.String(), "\x00")
			if err != nil || len(fields) != 2*len(part)+1 || len(errs) != len(part)+1 {
				t.Errorf("%s: %v, %d answers for %d programs: %s", shell, err, len(fields)/2, len(part), stderr.String())
				return
			}
			for i := range part {
				out[start+i] = shellResult{fields[2*i], fields[2*i+1], errs[i]}
			}
		})
	}
	wg.Wait()
	return out
}

// differentialWorld makes a folder with files whose names matter.
func differentialWorld(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.txt", "b.txt", "c.go", "sub/d.txt", "sub/-x", ".hidden", "a b.txt", "--output=f", "-rf", "q'uote", "[x]"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// writer writes shell programs at random.
type writer struct {
	*rand.Rand
	odd  bool
	docs []string // bodies of here-documents, which begin on the next line
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func (w *writer) word() string {
	plain := []string{
		"a.txt", "'a b'", `"a b"`, `a\ b`, `"$x"`, "$x", "${x}", "$(p hi)", "`p hi`", "*.txt", "?.txt", "{a,b}.x", "{1..3}", "--", "-n", "-", "[ab].txt", "a#b", `"$(p "x  y")"`, "''", `""`, `x'y'"z"`, "sub/*", "~", "~/f", "'$x'", `\$x`, "'a\nb'",
		`"a\$b"`, "{}", "a=b", "'#'", "a,b", "x{a,'b c'}y", "{a,b}{1,2}", "-*", "*", "$?", `"a'b"`, `'a"b'`, "\\'", "%s", "sub/../*.go", "--include=*.zip", "{01..03}", "{a,{b,c}}", "{a", "a}", "a{,}b", "${y:-d}", "${x%e}", "$((1 + 2))", "$'a\\tb'",
	}
	odd := []string{
		`"a\"b"`, `"\\"`, `"a\\\"b"`, `$'a\'b'`, `$"a"`, "a\\\nb", "\"a\\\nb\"", "'a\\\nb'", `\\`, `\#`, "a\\\\", "[!a]*", "[[:alpha:]]*", "$y$y", `"${x}"'q'`, "`p \\`p in\\``", "`p \\$x`", "$(p 'a)b')", "$(p \"a)b\")", "\"$(p '\"')\"", "@(a|b)", "!(a)", "a[1]", "$(p a # c\n)", "$(p $(p $(p x)))",
		"{a..c}", "{3..1}", "{1..9..4}", "{-1..1}", "{1..x}", "{a,b", "{a,b}}", "{{a,b}", "{a},{b}", "~root", "a:~", "x=~", "~+", "\"~\"", "${#x}", "${x/a/b}", "${x:1:2}", "${!x}", "$z", "\"$z\"", "\\\n", "$(cat <<E\nin $x\nE\n)", "\"$(cat <<'E'\n) ' \" \nE\n)\"", "*\\.txt", "'*'.txt", "\"*\"", "\\*", ".*", "s[u]b/*", "$((x))", "$[1+2]", "<(p a)", "$-", "$*", "\"$@\"", "$#", "$1",
	}
	if w.odd && w.IntN(3) == 0 {
		if w.IntN(4) == 0 {
			return w.specialCharacters()
		}
		return pick(w.Rand, odd...)
	}
	return pick(w.Rand, plain...)
}

// specialCharacters returns a text of characters that have a meaning in shells.
func (w *writer) specialCharacters() string {
	var b strings.Builder
	for range 1 + w.IntN(6) {
		b.WriteString(pick(w.Rand, "'", `"`, `\`, "\n", " ", "#", "$x", "`", "{", "}", "[", "]", "*", "~", "a", "b", "\\\n", "$(", ")", "x", "=", "!", "<", ";", "|"))
	}
	return b.String()
}

func (w *writer) simple() string {
	var b strings.Builder
	if w.IntN(25) == 0 {
		b.WriteString(pick(w.Rand, "v=1 ", "v='a b' ", "LC_ALL=C ", "v=$x ", "v=~/q ", "v={a,b} ", "v=* "))
	}
	b.WriteString(pick(w.Rand, "p", "p", "p", "cat", "grep", "head", "sort", "wc", "ls", "find", "git", "touch", `\p`, "'p'", `"ls"`, "printf '%s\\n'", "echo", "nosuch"))
	for range w.IntN(4) {
		b.WriteString(" " + w.word())
	}
	if w.IntN(6) == 0 {
		b.WriteString(" " + pick(w.Rand, "2>&1", ">/dev/null", "2>/dev/null", "</dev/null", "<a.txt", "<&-", "3<&0", "1>&2", ">&2", "<'a b.txt'", "&>/dev/null", "<<<$x", "<<<'a b'", "<<<{a,b}", "<<<~", "3<<<a", "0<<<b", "<none"))
	}
	if w.IntN(5) == 0 {
		w.document(&b)
	}
	return b.String()
}

// document adds a here-document.
func (w *writer) document(b *strings.Builder) {
	for range 1 + w.IntN(8)/7 {
		end := pick(w.Rand, "E", "EOF", "E_1", "a.b")
		form := pick(w.Rand, "E", "'E'", `"E"`, `\E`, "E")
		op := pick(w.Rand, "<<", "<<", "<<", "<<-", "<< ", "0<<", "3<<")
		if w.odd && w.IntN(3) == 0 {
			form = pick(w.Rand, `E"1"`, `""E`, "$'E'", "E\\\n1", `"E\"1"`, `'E"'`, "E'1'2", `$E`, "`E`", `"E 1"`, "!E")
		}
		b.WriteString(" " + op + strings.ReplaceAll(form, "E", end))
		tabs := ""
		if op == "<<-" && w.IntN(2) == 0 {
			tabs = "\t"
		}
		var body strings.Builder
		for range w.IntN(4) {
			line := pick(w.Rand, "plain text", "a $x b", "`p cmd`", "$(p sub)", `\$x \\ \" \a`, "# comment", "'quoted", `"quoted`, "", end+" ", " "+end, "\ttab", "<<E", "*", "~", "${x}", "touch pwned", "a'b", `'\''`)
			if w.odd && w.IntN(3) == 0 {
				line = pick(w.Rand, "x \\", "E\\", end[:1]+"\\", "\\", "\\\\", "$(cat <<Q\nq\nQ\n)", "$((1+1))", "${x:-$(p a)}", "$", "`", "\\`", end+"\\", "$'a'", "\"$x\"", "E1", "E\"1\"")
			}
			body.WriteString(tabs + line + "\n")
		}
		ending := end
		if w.odd && w.IntN(4) == 0 {
			ending = end + "1"
		}
		w.docs = append(w.docs, body.String()+tabs+ending)
	}
}

// newline ends a line.
func (w *writer) newline() string {
	comment := ""
	if w.IntN(5) == 0 {
		comment = pick(w.Rand, " # comment", " # it's", ` # "`, " #", " # `", " # $(")
		if w.odd && w.IntN(3) == 0 {
			comment = pick(w.Rand, ` # x\`, ` #\`, ` # \\`, " #'\\", `;# x\`)
		}
	}
	out := comment + "\n"
	for _, d := range w.docs {
		out += d + "\n"
	}
	w.docs = nil
	return out
}

func (w *writer) statement(depth int) string {
	if depth == 0 {
		return w.simple()
	}
	s := func() string { return w.statement(w.IntN(depth)) }
	sep := func() string {
		if len(w.docs) > 0 || w.IntN(3) == 0 {
			return w.newline()
		}
		return "; "
	}
	switch w.IntN(18) {
	case 0, 1:
		return s() + " | " + s()
	case 2:
		return s() + " && " + s()
	case 3:
		return s() + " || " + s()
	case 4:
		return "if " + s() + sep() + "then " + s() + sep() + "else " + s() + sep() + "fi"
	case 5:
		return "for i in " + w.word() + " " + w.word() + "; do " + s() + sep() + "p $i; done"
	case 6:
		return "{ " + s() + sep() + "}"
	case 7:
		return "( " + s() + " )"
	case 8:
		return "! " + s()
	case 9:
		return "p \"$( " + s() + " )\""
	case 10:
		return s() + " |" + w.newline() + s()
	case 11:
		return "case " + w.word() + " in a*|b) " + s() + ";; *) " + s() + sep() + "esac"
	case 12:
		return s() + " |& cat"
	case 13:
		return "f() { " + s() + sep() + "}; f a b"
	case 14:
		return "while " + s() + sep() + "do " + s() + sep() + "break; done"
	case 15:
		return "[[ " + w.word() + " == " + w.word() + " ]] && " + s()
	case 16:
		return s() + " && cd sub && " + s()
	}
	return s() + " &&\\\n" + s()
}

// program writes a program of one to three statements.
func (w *writer) program() string {
	w.docs = nil
	var b strings.Builder
	for range 1 + w.IntN(3) {
		b.WriteString(w.statement(w.IntN(3)))
		if len(w.docs) > 0 || w.IntN(3) > 0 {
			b.WriteString(w.newline())
		} else {
			b.WriteString("; ")
		}
	}
	return b.String()
}

// bash gives the same output for the canonical form of a program as for its text, so bash runs the
// checked commands. The test leaves out texts with two readings. For a longer run, use `go test -run
// CanonicalFormRunsTheSame -programs 100000 -seed 0`.
func TestCanonicalFormRunsTheSame(t *testing.T) {
	needs.Long(t)
	needs.Program(t, "bash", "bash")
	dir := differentialWorld(t)
	form := Form{Home: "/home/u", Dir: dir, Glob: globFor(t)}
	for kind, odd := range map[string]bool{"plain": false, "odd": true} {
		t.Run(kind, func(t *testing.T) {
			seed := seed()
			w := &writer{Rand: rand.New(rand.NewPCG(seed, 0)), odd: odd}
			counts, why := map[string]int{}, map[string]int{}
			var written, printed []string
			for len(written) < *programCount {
				text := w.program()
				p := Parse(text)
				counts["programs"]++
				out, _, none := p.Canonical(form)
				switch {
				case p.tree == nil:
					counts["do not parse"]++
				case p.TwoReadings != "":
					counts["two readings"]++
				case none != "":
					counts["no form"]++
					why[none]++
				default:
					written, printed = append(written, text), append(printed, out)
				}
			}
			was, is := runAll(t, "bash", dir, written), runAll(t, "bash", dir, printed)
			for i := range written {
				if strings.Contains(printed[i], "'./") { // the canonical form has ./ before names that a glob matches
					was[i].out, is[i].out = strings.ReplaceAll(was[i].out, "./", ""), strings.ReplaceAll(is[i].out, "./", "")
				}
				was[i].out, is[i].out = sourceOf.ReplaceAllString(was[i].out, ""), sourceOf.ReplaceAllString(is[i].out, "")
				if strings.Contains(was[i].err, "syntax error") || strings.Contains(was[i].err, "unexpected ") {
					counts["not for bash"]++ // bash may have run a part of it
					continue
				}
				if was[i].code == is[i].code && endless(was[i], is[i]) {
					counts["goes on until it is stopped"]++
					continue
				}
				if was[i].out != is[i].out || was[i].code != is[i].code {
					counts["different"]++
					if counts["different"] < 5 {
						t.Errorf("seed %d:\n%q\nprinted %q\nbash: %q %s %q\nprinted: %q %s %q", seed, written[i], printed[i], was[i].out, was[i].code, was[i].err, is[i].out, is[i].code, is[i].err)
					}
					continue
				}
				counts["equal"]++
				if was[i].err == is[i].err {
					counts["equal, and so are the error messages"]++
				}
			}
			t.Logf("%s: %v", kind, counts)
			for _, reason := range slices.Sorted(func(yield func(string) bool) {
				for r, n := range why {
					if !yield(fmt.Sprintf("%6d %s", n, r)) {
						return
					}
				}
			}) {
				t.Log(reason)
			}
		})
	}
}

// endless reports whether two runs are of a loop that was stopped: the output of one is the
// beginning of the output of the other. On a slow machine, the outputs may be short.
func endless(a, b shellResult) bool {
	const long, killed = 4 << 10, "137"
	stopped := min(len(a.out), len(b.out)) > long || a.code == killed && b.code == killed
	return stopped && (strings.HasPrefix(a.out, b.out) || strings.HasPrefix(b.out, a.out))
}

// globFor returns a function that expands globs with bash.
func globFor(t *testing.T) func(dir, pattern string) ([]string, bool) {
	t.Helper()
	known := map[string][]string{}
	return func(dir, pattern string) ([]string, bool) {
		key := dir + "\x00" + pattern
		if names, ok := known[key]; ok {
			return names, true
		}
		cmd := exec.Command("bash", "-c", `IFS=; shopt -s nullglob; set -- $1; printf '%s\0' "$@"`, "bash", pattern)
		cmd.Dir, cmd.Env = dir, []string{"LC_ALL=C"}
		out, err := cmd.Output()
		if err != nil {
			return nil, true // no such folder
		}
		names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		if len(names) == 1 && names[0] == "" {
			names = nil
		}
		known[key] = names
		return names, true
	}
}

// A program that was printed for sh does the same in dash as in bash, so sh -c runs the checked
// commands, whether sh is dash or bash.
func TestCanonicalFormForOtherShells(t *testing.T) {
	needs.Long(t)
	needs.Program(t, "bash", "bash")
	needs.Program(t, "dash", "dash")
	dir := differentialWorld(t)
	seed := seed()
	w := &writer{Rand: rand.New(rand.NewPCG(seed, 0)), odd: true}
	var texts []string
	for programs := 0; programs < *programCount; programs++ {
		p := Parse(w.program())
		if p.tree == nil || p.TwoReadings != "" {
			continue
		}
		out := &printer{Form: Form{Home: "/home/u", Dir: dir}, tree: p.tree, line: 1, posix: true, filesChanged: true}
		out.stmts(p.tree.stmts)
		text := out.out.String()
		// Messages differ, and so does the output of echo for a backslash, and the exit code of a
		// redirection without a command.
		if out.why == "" && !strings.Contains(text, "2>&1") && !strings.Contains(text, ">&2") && !strings.Contains(text, "'echo'") && !bareRedirection.MatchString(text) {
			texts = append(texts, text)
		}
	}
	was, is := runAll(t, "bash", dir, texts), runAll(t, "dash", dir, texts)
	different := 0
	for i, text := range texts {
		if was[i].out == is[i].out && (was[i].code == "0") == (is[i].code == "0") || endless(was[i], is[i]) {
			continue
		}
		if different++; different < 5 {
			t.Errorf("seed %d: %q\nbash: %q %s %q\ndash: %q %s %q", seed, text, was[i].out, was[i].code, was[i].err, is[i].out, is[i].code, is[i].err)
		}
	}
	t.Logf("%d programs, %d do something else in dash", len(texts), different)
}

// A canonical form does the same in another version of bash, which may read the original text
// differently.
func TestCanonicalFormInAnotherBash(t *testing.T) {
	if *otherBash == "" {
		t.Skip("NOT TESTED: bash 3.2; run it with -otherbash PATH")
	}
	dir := differentialWorld(t)
	form := Form{Home: "/home/u", Dir: dir, Glob: globFor(t)}
	seed := seed()
	w := &writer{Rand: rand.New(rand.NewPCG(seed, 0)), odd: true}
	var texts []string
	for len(texts) < *programCount {
		p := Parse(w.program())
		// Exit codes of redirections without a command differ, and so does $?. A file that one
		// program creates changes what the globs of other programs match.
		if out, _, none := p.Canonical(form); none == "" && out != "" && !bareRedirection.MatchString(out) && !strings.Contains(out, "${?}") && len(p.Writes) == 0 {
			texts = append(texts, out)
		}
	}
	was, is := runAll(t, "bash", dir, texts), runAll(t, *otherBash, dir, texts)
	different := 0
	// Messages begin with other names, and descriptors have other numbers.
	same := strings.NewReplacer(*otherBash+": ", "", "environment: ", "", "bash: ", "")
	descriptor := regexp.MustCompile(`/dev/fd/\d+`)
	for i, text := range texts {
		a, b := sourceOf.ReplaceAllString(same.Replace(was[i].out), ""), sourceOf.ReplaceAllString(same.Replace(is[i].out), "")
		if descriptor.ReplaceAllString(a, "") == descriptor.ReplaceAllString(b, "") && was[i].code == is[i].code || endless(shellResult{a, was[i].code, ""}, shellResult{b, is[i].code, ""}) {
			continue
		}
		if different++; different < 20 {
			t.Errorf("seed %d: %q\nbash: %.300q %s %.300q\n%s: %.300q %s %.300q", seed, text, was[i].out, was[i].code, was[i].err, *otherBash, is[i].out, is[i].code, is[i].err)
		}
	}
	t.Logf("%d programs, %d do something else in %s", len(texts), different, *otherBash)
}
