package cmdline

import (
	"strings"
	"testing"
)

// Reads accepts programs that only read if the values of their variables are known where they are
// used.
func TestVariables(t *testing.T) {
	for _, line := range []string{
		"d=src; ls \"$d\"", "d=src && ls $d/x", "for f in a.go b.go; do grep x \"$f\"; done", "for i in 1 2; do echo $i; done", "d=src; f=$d/a.go; cat \"$f\"",
		"while read -r f; do cat \"$f\"; done < list", "ls | while IFS= read -r f; do wc -l \"$f\"; done", "while read -r -d '' f; do cat \"$f\"; done", "x=$(git rev-parse HEAD); echo \"$x\"",
		"for f in $(git ls-files); do wc -l \"$f\"; done", "ls; echo \"exit $?\"", "[[ -f a && ! -d b ]] && cat a", "f=a; [[ -f $f ]] && cat \"$f\"", "[[ a == b* ]]", "sh -c 'd=src; ls \"$d\"'",
		"p=foo; timeout 5 grep \"$p\" a", "p=foo; ls | xargs grep \"$p\"", "for d in a b; do for f in x y; do cat \"$d/$f\"; done; done", "{ d=a; ls \"$d\"; }", "n=5; head -n \"$n\" a", "d=a; git -C \"$d\" log",
		"f=a.go; cat \"${f%.go}.txt\"", "f=src/a.go; ls ${f%/*} ${f##*/}", "f=a; ls \"${f:-b}\" \"${f-b}\"", "for f in a.go b.go; do cat \"${f%.*}.md\"; done", "n=3; m=$((n + 2)); head -n $m a", "echo $((7 * (2 - 3) % 4))", "n=5; head -n \"$(($n / 2))\" a",
		"case a in a|b*) ls;; *) cat x;; esac", "f=a; case $f in (a) cat \"$f\";; esac", "case $(git branch --show-current) in main) ls;; esac", "case a in a) ls;& b) cat x;;& *) ls; esac",
	} {
		if ok, why := Parse(line).Reads(); !ok {
			t.Errorf("%q: %s", line, why)
		}
	}
	for _, line := range []string{
		// The variable may have another value, or that of the environment.
		"cat \"$f\"", "ls \"$f\"; f=a", "(f=a); cat \"$f\"", "f=a | ls; cat \"$f\"", "f=a & cat \"$f\"", "true && f=a; cat \"$f\"", "false || f=a; cat \"$f\"", "if true; then f=a; fi; cat \"$f\"",
		"for f in a; do :; done; cat \"$f\"", "ls | read f; cat \"$f\"", "while read -r f; do :; done; cat \"$f\"", "f=a > x/y; cat \"$f\"", "{ f=a; } < nothing; cat \"$f\"", "sh -c 'cat \"$f\"'", "f=a; sh -c 'cat \"$f\"'",
		"f=a; f+=b; cat \"$f\"", "f=$f; cat \"$f\"", "f=$g; g=$f; cat \"$f\"", "f=a; eval 'f=/etc/passwd'; cat \"$f\"", "eval 'for f in /; do ls; done'", "f=a; declare -n g=f; cat \"$f\"", "f=a; unset f; cat \"$f\"", "f=a; export f=b; cat \"$f\"",
		"f=a; printf -v f b; cat \"$f\"", "f=a; let f=1; cat \"$f\"", "f=a; : ${f:=b}; cat \"$f\"", "f=a; cat \"${f/a/b}\"", "f=a; cat \"${!f}\"", "f=(a b); cat \"$f\"", "f=a; g() { f=b; }; g; cat \"$f\"", "f=b true; cat \"$f\"",
		"f=a; ((f=1)); cat \"$f\"", "f=a; mapfile f < b; cat \"$f\"", "getopts a f; cat \"$f\"", "select f in a; do cat \"$f\"; done", "for f; do cat \"$f\"; done", "for ((i=0;;)); do ls; done", "! f=$x && cat \"$f\"",
		// The value becomes other words, a pattern, an option, or a command.
		"f='a b'; cat $f", "f='*'; cat $f", "f=; cat $f", "f=~/x; cat \"$f\"", "f=a:~/x; cat \"$f\"", "f=-o; sort $f x", "f=-oy; sort \"$f\" x", "c=rm; $c x", "c='rm x'; eval \"$c\"", "c='rm x'; sh -c \"$c\"", "c=ls; command \"$c\"", "f=$'\\x2f'; cat \"$f\"",
		"e=-exec; find . \"$e\" rm {} +", "e='('; find . \"$e\" -exec rm {} +", "e=+; find . -exec cat {} \"$e\" -delete", "e=';'; find . -exec cat {} \"$e\" -exec rm {} +", "e=';'; find . -exec echo {} \"$e\" -exec rm {} +", "e=+; find . -exec echo {} \"$e\" -delete \\;", "e='{}'; find . -exec echo \"$e\" + -delete \\;", "e=rm; find . -exec \"$e\" {} +", "e=-exec; find . ${e}dir rm {} +",
		"for f in -delete; do find . \"$f\"; done", "for f in --pre=sh; do rg x \"$f\"; done", "for f in a b; do uniq x \"$f\"; done", "while read -r f; do $f; done < x", "while read -r f; do sort \"$f\"; done < x",
		"while read -r f; do find \"$f\"; done < x", "while read -r f; do cd \"$f\"; cat a; done < x", "while read -r f; do sh -c \"$f\"; done < x", "while read -r f; do jq -n \"$f\"; done < x", "while read -r f; do eval \"$f\"; done < x", "while read -r f; do git log \"$f\"; done < x",
		"while read -r f; do cat < \"$f\"; done < x", "f=a; ls > \"$f\"", "f=a; cat <<E\n$f\nE", "while read -r f; do rm \"$f\"; done < x", "x=$(rm a); ls", "for f in $(rm a); do ls; done", "[[ $(rm a) ]]",
		// Arithmetic evaluates the values of variables, and their indexes run commands.
		"echo $((x))", "x='a[$(rm y)]'; echo $((x))", "x='a[$(rm y)]'; y=x; echo $((y + 1))", "while read -r n; do echo $((n)); done < x", "n=$(cat x); echo $((n + 1))", "echo $((a[1]))", "echo $((a[$(rm y)]))", "echo $(($(rm y) + 1))", "echo $(($? + 1))", "echo $(($1))", "x=1; echo $((x ? 2 : 3))",
		"x=1; echo $((x++))", "x=1; echo $((--x))", "x=1; echo $((x += 1))", "x=1; echo $((x, 2))", "echo $((-1))", "echo $((- -1))", "echo $[1 + 1]", "echo $((1 << 3))", "echo $((2 ** 3))", "echo $((16#f))", "echo $((08))", "x=08; echo $((x))", "x=-1; echo $((3 - $x))", "x=' 1'; echo $((x))", "x=; echo $((x))",
		"echo $((1 / 0))", "x=$((1 / 0))\ncat \"$x\"", "x=0; echo $((1 % x))", "echo $((9999999999 * 9999999999))", "n=0; for i in 1 2; do n=$((n + i)); done", "n=1; sh -c 'echo $((n))'", "echo $((1 + 1)) > x", "$((1 + 1))", "n=$((0 - 5)); sort $n x", "n=1; cat <<E\n$((n))\nE",
		// Parts of values.
		"cat \"${x:-a}\"", "cat \"${x%a}\"", "f=a; cat \"${#f}\"", "f=a; cat \"${f:+b}\"", "f=a; cat \"${f:?b}\"", "f=a; cat \"${f^}\"", "f=ab; cat \"${f%?}\"", "f=ab; cat \"${f%[b]}\"", "f=ab; cat \"${f%$x}\"", "f=ab; cat \"${f%$(rm x)}\"", "f=ab; cat \"${f:-$(rm x)}\"", "f=\u00e9a; cat \"${f%a}\"", "f=-oyx; sort \"${f%x}\" y", "f=x-oy; sort \"${f#x}\" y",
		"f=a; cat ${f%a}", "f='a bx'; cat ${f%x}", "f='*x'; cat ${f%x}", "f=; sort ${f:--oy} x", "f=x; f=${f%x}$f; cat \"$f\"", "c=rmx; ${c%x} y", "f=" + strings.Repeat("a", 600) + "; cat \"${f%a}\"",
		// One of the branches does more, or sets the variable, or the pattern is computed.
		"case a in a) rm x;; esac", "case a in b) ls;; *) rm x;; esac", "case $(rm x) in a) ls;; esac", "case a in $(rm x)) ls;; esac", "case a in $f) ls;; esac", "f=a; case a in $f) ls;; esac", "case a in @(a|b)) ls;; esac", "case a in [ab]) ls;; esac", "case a in a) f=b;; esac; cat \"$f\"",
		// Variables that change how a shell or a program works.
		"IFS=/; ls", "PATH=.; ls", "ENV=x; sh -c ls", "BASH_ENV=x; bash -c ls", "CDPATH=/; cd a; cat b", "LD_PRELOAD=./x; ls", "GLOBIGNORE=x; ls", "HOME=/; cd; ls", "GIT_DIR=x; git log", "LESSOPEN=x; ls", "POSIXLY_CORRECT=1; ls", "_=x; ls",
		"for PATH in .; do ls; done", "for IFS in x; do ls; done", "read PATH; ls", "read -r BASH_ENV; bash -c ls", "IFS=x read PATH; ls", "PATH=. read f; ls", "read -a f; ls", "read -u 3 f; ls", "read 'a[$(id)]'; ls", "read \"$x\"; ls", "read; cat \"$REPLY\"",
		// Loops whose end, or whose folder, is not known.
		"while true; do ls; done", "until read -r f; do ls; done", "while ! read f; do ls; done", "while read f < x; do ls; done", "for d in a b; do cd \"$d\"; cat x; done", "for i in 1 2; do cd ..; done; cat x",
		// Tests that evaluate their operands, or whose words are not known.
		"[[ $x == a* ]]", "[[ -v x ]]", "[[ -R x ]]", "[[ -o x ]]", "[[ 1 -eq x ]]", "f=a; [[ $f -gt 1 ]]", "[[ a =~ b ]]", "[[ -f \"$x\" ]]", "[[ -f <(rm a) ]]",
		"d=a; for d in a b; do git -C \"$d\" log; done", "cat <(rm a)",
	} {
		if ok, _ := Parse(line).Reads(); ok {
			t.Errorf("%q passes for reading", line)
		}
	}
}

// A login shell that only reads is printed without -l, so that it runs no profile.
func TestLoginShells(t *testing.T) {
	for line, want := range map[string]string{
		"bash -lc 'ls a'": "'bash' '-c' ''\\''ls'\\'' '\\''a'\\'''", "bash -lc 'ls a'; bash -lc 'ls b'": "'bash' '-c' ''\\''ls'\\'' '\\''a'\\'''; 'bash' '-c' ''\\''ls'\\'' '\\''b'\\'''", "sh -elc 'ls a'": "'sh' '-ec' ''\\''ls'\\'' '\\''a'\\'''",
		"bash -lc 'touch a'": "'bash' '-lc' ''\\''touch'\\'' '\\''a'\\'''", "bash -lc 'ls $x'": "'bash' '-lc' ''\\''ls'\\'' ${x}'",
	} {
		p := Parse(line)
		text, judged, why := p.Canonical(Form{Dir: "/"})
		if text != want {
			t.Errorf("%q: %q: %s", line, text, why)
		}
		if reads, _ := judged.Reads(); reads == (text[len("'bash' '-")] == 'l') {
			t.Errorf("%q: %q reads: %v", line, text, reads)
		}
		if ok, _ := p.Reads(); ok {
			t.Errorf("%q passes for reading as it is written", line)
		}
	}
}
