//go:build unix

package cmdline

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// hiddenCommands are texts in which bash finds a command (touch), but the parser, or an earlier
// version of eca, does not.
func hiddenCommands() map[string]string {
	return map[string]string{
		"a comment ends in a backslash":                              "ls # x\\\ntouch pwned\n",
		"a comment without a space ends in a backslash":              "ls;#\\\ntouch pwned\n",
		"a line of a here-document ends in a backslash":              "cat <<E\na\nE\\\n\ntouch pwned\nE\n",
		"a here-document begins with a backslash":                    "cat <<E\n\\\nE\ntouch pwned\nE\n",
		"a delimiter in double quotes has a backslash":               "cat <<\"a\\\"b\"\nx\na\"b\ntouch pwned\na\\\"b\n",
		"a delimiter goes on in the next line":                       "cat <<E\\\nF\nx\nEF\ntouch pwned\nE\\\nF\nE\n",
		"a delimiter is in $' '":                                     "cat <<$'E'\nx\n$E\ntouch pwned\nE\n",
		"a case has a here-document":                                 "case x in x) cat <<E;; *) ls\nE\nesac\ntouch pwned\ncat <<E\nE\n",
		"a shell reads what is piped, not another descriptor":        "echo touch pwned | sh 3<<'E'\nls\nE\n",
		"a shell reads a file, not the document before it":           "sh <<'E' <script\nls\nE\n",
		"a shell reads a file, not the string on another descriptor": "bash 3<<<ls <script",
		"a shell reads a duplicate, not the document before it":      "sh 3<script <<'E' 0<&3\nls\nE\n",
	}
}

// Reads refuses texts that bash and the parser read differently: each text hides a command, which
// bash runs.
func TestTextsWithTwoReadings(t *testing.T) {
	needs.Program(t, "bash", "bash")
	for what, text := range hiddenCommands() {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "script"), []byte("touch pwned\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			pwned := func(text string) bool {
				t.Helper()
				cmd := exec.Command("bash", "-c", text)
				cmd.Dir = dir
				_ = cmd.Run() // it may fail; only the resulting files count
				_, err := os.Stat(filepath.Join(dir, "pwned"))
				_ = os.Remove(filepath.Join(dir, "pwned"))
				return err == nil
			}
			if !pwned(text) {
				t.Logf("this bash does not fall for it: %q", text)
			}
			if reads, _ := Parse(text).Reads(); reads {
				t.Errorf("%q passes for reading", text)
			}
			printed, judged, none := Parse(text).Canonical(Form{Dir: dir})
			if reads, _ := judged.Reads(); none == "" && reads && pwned(printed) {
				t.Errorf("%q is printed as %q, which passes for reading", text, printed)
			}
		})
	}
}

// If a shell reads a script from its input, the commands of the script can read lines of the script.
// In the canonical form, the shell reads the whole script first, so no lines are missing when it runs.
func TestScriptsAreReadWhole(t *testing.T) {
	needs.Program(t, "bash", "bash")
	dir := t.TempDir()
	text := "bash <<'E'\nread -r line\ncat <<'X'\n:\ntouch pwned\n:\nX\nE\n" // read consumes the line with cat
	runs := func(text string) bool {
		t.Helper()
		cmd := exec.Command("bash", "-c", text)
		cmd.Dir = dir
		_ = cmd.Run()
		_, err := os.Stat(filepath.Join(dir, "pwned"))
		return err == nil
	}
	printed, _, why := Parse(text).Canonical(Form{Dir: dir})
	if why != "" || runs(printed) {
		t.Errorf("the text of a here-document ran (%s)", why)
	}
	if !runs(text) {
		t.Error("the text as it is written does not run the hidden command, so the check of the printed form shows nothing")
	}
}

// Canonical prints words of all kinds so that bash reads them as eca checked them.
func TestCanonical(t *testing.T) {
	glob := func(dir, pattern string) ([]string, bool) {
		return map[string][]string{"*.go": {"-rf.go", "a.go"}, "*": {"--pre=x", "a"}}[pattern], dir == "/w"
	}
	form := Form{Home: "/home/u", Dir: "/w", Glob: glob}
	for text, want := range map[string]string{
		"ls -la | head":                                "'ls' '-la' | 'head'",
		"p $x'' \"\"$y a'' ''$(q)":                     "'p' ${x}'' ''${y} 'a' ''$( 'q' )",
		`echo "a $x b" c\ d 'it'\''s'`:                 `'echo' 'a '"${x}"' b' 'c d' 'it'\''s'`,
		"ls *.go":                                      "'ls' './-rf.go' 'a.go'",
		"rg x *":                                       "'rg' 'x' './--pre=x' 'a'",
		"ls none*.c":                                   "'ls' 'none*.c'",
		"make; ls *.go":                                "'make'; 'ls' './'*'.go'",
		"cat ~/a {b,c}{1..2}":                          "'cat' '/home/u/a' 'b1' 'b2' 'c1' 'c2'",
		"cat <<E # note\na $x \\$y\nE":                 "'cat' <<< 'a '\"${x}\"' $y'",
		"cat <<-'E'\n\ta\n\tE\nls":                     "'cat' <<< 'a'\n\n\n'ls'",
		"a &>f; b &>>g; c |& d":                        "'a' > 'f' 2>&1; 'b' >> 'g' 2>&1; 'c' 2>&1 | 'd'",
		"p \"$(q 'a\"b' '{a,b}')\"":                    `'p' "$( 'q' 'a'\"'b' '{a,b}' )"`,
		"a |& b | c |& d":                              "'a' 2>&1 | 'b' | 'c' 2>&1 | 'd'",
		"sh -c 'ls \"a b\" # x'":                       `'sh' '-c' ''\''ls'\'' '\''a b'\'''`,
		"bash <<E\nls\nE":                              `'bash' <<< '{ '\''ls'\''; }'`,
		"echo `ls`":                                    "'echo' $( 'ls' )",
		"if a; then b\nelse c; fi":                     "if 'a'; then 'b'; else 'c'; fi",
		"for f in a b; do echo $f; done":               "for f in 'a' 'b'; do 'echo' ${f}; done",
		"[[ -f x && $y == a* ]] && echo $((1+2))":      "[[ -f 'x' && ${y} == 'a'* ]] && 'echo' $(( 1 + 2 ))",
		"case a in a|b*) ls;; c) p \"${x%.go}\"; esac": `case 'a' in ('a' | 'b'*) 'ls' ;; ('c') 'p' "${x%.go}" ;; esac`,
		// A branch begins where the other did not go.
		"if ls; then cd sub; else ls *.go; fi":    "if 'ls'; then 'cd' 'sub'; else 'ls' './-rf.go' 'a.go'; fi",
		"case a in a) cd sub;; *) ls *.go;; esac": "case 'a' in ('a') 'cd' 'sub' ;; (*) 'ls' './-rf.go' 'a.go' ;; esac",
		"case a in a) cd sub;& *) ls *.go;; esac": "case 'a' in ('a') 'cd' 'sub' ;& (*) 'ls' './'*'.go' ;; esac",
	} {
		got, _, why := Parse(text).Canonical(form)
		if strings.ReplaceAll(got, "else\n", "else ") != want {
			t.Errorf("%q:\ngot  %q (%s)\nwant %q", text, got, why, want)
		}
	}
	for _, text := range []string{
		"make; ls -*", "make; rg -x* a", "*", `echo $'\x41'`, "echo $*", "select x in a; do b; done", "coproc ls", "echo ${x/a/b}", "ls ~root", "sh -c 'ls &>f'", "sh <<< 'cat <<< x'",
		"make; find . -name *.go", "ls @(a|b)", "{fd}>x ls",
	} {
		if got, _, why := Parse(text).Canonical(form); why == "" {
			t.Errorf("%q is printed as %q", text, got)
		}
	}
}

// Parse refuses malformed texts, and does not panic.
func TestOddTexts(t *testing.T) {
	const deep = 100_000
	fan := "a=x"
	for _, name := range strings.Split("bcdefghi", "") {
		fan += "; " + name + "=\"" + strings.Repeat("${"+string(name[0]-1)+"}", 500) + "\""
	}
	for _, text := range []string{
		fan + "; ls \"$i\"", strings.Replace(fan, "a=x", "a=", 1) + "; ls \"$i\"", strings.Repeat("for a in 1 2 3 4 5 6 7 8 9; do ", 30) + "ls $a$a$a$a$a$a" + strings.Repeat("; done", 30), "x=a; ls $x" + strings.Repeat(" $x x", 9000),
		"for a in" + strings.Repeat(" x", 900) + "; do for b in" + strings.Repeat(" y", 900) + "; do ls $a $b; done; done",
		strings.Repeat(`"'`, 1<<19), strings.Repeat(`"$(echo `, 5000) + strings.Repeat(`)"`, 5000), strings.Repeat("cat ", 100_000), strings.Repeat("cat|", 10_000) + "cat", strings.Repeat("rm;", 10_000),
		strings.Repeat("a", 1<<20), strings.Repeat("(", deep), strings.Repeat("$(", deep), strings.Repeat("{ ", deep), strings.Repeat("`", deep), "ls \x00", "ls \xff\xfe", "'", "<<", "cat <<E", "echo " + strings.Repeat("{a,b}", 1000), "echo {1..999999999}",
		"x=1; echo $((" + strings.Repeat("x+", 20_000) + "x))", "echo $((" + strings.Repeat("(", deep), "x=a; x=$x; echo " + strings.Repeat("${x%a}", 5000), "for x in 1 2 3 4 5 6 7 8 9; do echo $((" + strings.Repeat("x*10+", 500) + "x)); done", "case a in " + strings.Repeat("a|", 20_000) + "a) rm x;; esac",
		"echo " + strings.Repeat("a", 1<<20), strings.Repeat("eval ", 12) + "ls", "pwd" + strings.Repeat(" && (pwd", 100) + strings.Repeat(")", 100),
		"\\", "$(", "(((((", "#", "", strings.Repeat("! ", 10_000) + "ls", "cat " + strings.Repeat("<<E ", 5000), strings.Repeat("if ", 20_000), strings.Repeat("x=", 30_000), strings.Repeat("a|", 30_000) + "a", "echo " + strings.Repeat("$(echo ", 5000) + strings.Repeat(")", 5000),
	} {
		p := Parse(text)
		p.Canonical(Form{Dir: "/"})
		if reads, _ := p.Reads(); reads && !strings.HasPrefix(text, "echo {") && !strings.HasPrefix(text, "x=") {
			t.Errorf("%.40q passes for reading", text)
		}
		if len(p.Commands) > maxCommands || len(text) > maxText && p.tree != nil {
			t.Errorf("%.40q: %d commands, parsed: %v", text, len(p.Commands), p.tree != nil)
		}
	}
}

// A text has two readings if the parser finds a comment within a word.
func TestCommentWithinAWord(t *testing.T) {
	for _, text := range []string{"case a in a) p b$x#x a;; *) ls;\nesac", "( while find '{'# {\ndo nosuch; break; done )"} {
		if p := Parse(text); p.TwoReadings == "" {
			t.Errorf("%q has one reading", text)
		}
	}
	for _, text := range []string{"echo $x#y", "echo ${#x} # a comment", "echo a#b \"$x\"", "echo 'a'#b", "echo 'a'# b", "sed 's#a#b#' x", "ls $(a) # b"} {
		if p := Parse(text); p.TwoReadings != "" {
			t.Errorf("%q: %s", text, p.TwoReadings)
		}
	}
}
