package permission

import (
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// vocabulary lists words for each program that eca can take for one that only reads: words with
// which it only reads, and words with which it does more. Words that may be written to name a file
// of the world.
func vocabulary() map[string][]string {
	files := []string{"a.txt", "b.txt", "sub/c.go", "data.json", ".", "sub", "none", "*.txt", "?.txt", "opts/*", "list"}
	with := func(words ...string) []string { return append(words, files...) }
	return map[string][]string{
		"ls": with("-la", "-R", "--color=always", "-t"), "cat": with("-n", "-A", "--"), "head": with("-n", "1", "-c", "5"), "tail": with("-n", "1", "-2"),
		"wc": with("-l", "--files0-from=list"), "stat": with("-c", "%n", "-f"), "du": with("-s", "-a"), "which": {"ls", "-a", "x.sh"}, "id": {"-u"}, "whoami": {}, "uname": {"-a"}, "pwd": {"-P"},
		"echo": with("-e", `\n`, "x", "./x.sh", "a.txt"), "true": {}, "basename": with("-a", "-s"), "dirname": with(), "realpath": with("-m"), "readlink": with("-f"), "cut": with("-c1", "-d:", "-f1"), "nl": with(), "tac": with(), "rev": with(),
		"fold": with("-w5"), "tr": {"a", "b", "-d"}, "paste": with("-s"), "join": with(), "column": {"-t", "-s,", "a.txt", "b.txt"}, "cmp": with("-s"), "comm": with("-12"),
		"diff":    with("-u", "-r", "-q", "--paginate", "-l", "-lr", "--pag", "-ul", "--color=always", "-y"),
		"grep":    with("-r", "-n", "foo", "-e", "x", "-f", "list", "-P", "-o", "-c"),
		"egrep":   with("foo", "-n"),
		"md5sum":  with("-c", "list"),
		"od":      with("-c"),
		"strings": with("-a", "-n", "4"),
		"seq":     {"3", "1", "5"},
		"sleep":   {"0"},
		"jq":      with(".", "-r", "-n", "input", "env", "-L", "sub"),
		"test":    with("-f", "-d", "-nt", "-a", "1", "-eq", "'q[$(./x.sh)]'", "-v", "!"),
		"[":       {"-f", "a.txt", "]", "-n", "x"},
		"printf":  {"%s", `'%s\n'`, "'%n'", "'aaa%n'", "'aaa%5n'", "'%-*n'", "PATH", "x", "%d", "'q[$(./x.sh)]'", "-v", "'%(%s)T'"},
		"date":    {"+%s", "-u", "-s", "tomorrow", "-I", "-R", "-r", "a.txt"},
		"sort":    with("-n", "-k2", "-u", "-o", "-ro", "-T", "-Tsub", "-uTsub", "--temp=sub", "--temporary-directory=sub", "-S1b", "-S", "1b", "--buffer-size=1", "big.txt", "--compress-program=./x.sh", "--files0-from=list", "-t", "-m"),
		"uniq":    with("-c", "-d", "--", "-x", "-", "-f", "1"),
		"file":    with("-b", "-i", "-C", "-bC", "-m", "-bm", "magic", "-bCm", "-p", "-bp", "--preserve-date", "--pres", "-z", "-bz", "--unc", "--uncompress", "zip.gz", "-Z", "-k"),
		"tree":    with("-L", "1", "-o", "-ao"),
		"find":    with("-name", "'*.txt'", "-type", "f", "-print", "-delete", "-exec", "-execdir", "-ok", "cat", "./x.sh", "{}", `\;`, "+", "-print0", "-fprint", "-fls", "pwn", "-maxdepth", "1", "-newer", "-ls", "-printf", "'%p'", "-quit", "-o"),
		"rg":      with("foo", "-n", "--pre=./x.sh", "--pre", "./x.sh", "-z", "-nz", "--search-zip", "--hostname-bin=./x.sh", "-uuu", "-l", "--files", "--no-config", "--hyperlink-format=default", "-j1", "--type-add", "'q:*.txt'"),
		"node":    {"--version"},
		"python3": {"--version", "-V"},
		"make":    {"--version"},
		"gcc":     {"--version"},
		"bash":    {"--version", "-c", "ls", "'cat a.txt'", "-x", "x.sh", "-e"},
		"sh":      {"-c", "ls", "'cat a.txt'", "'echo {}'", "-x", "x.sh", "-ec"},
		"go":      {"version", "env"},
		"command": {"-v", "ls", "-p", "cat", "a.txt", "x.sh"},
		"type":    {"ls", "-a"},
		"cd":      {"sub", "..", "-", "opts", "subm", "evil", "3"},
		"git":     gitWords(),
		"touch":   {"pwn"},
		"rm":      {"a.txt", "-rf", "sub"},
		"./x.sh":  {},
		"awk":     {`'{print}'`, "a.txt", `'BEGIN{system("./x.sh")}'`},
		"sed":     {"-n", "p", "a.txt", "-i", "s/a/b/", "'w pwn'"},
		"xxd":     {"a.txt", "pwn"},
		"mapfile": {"-C", "./x.sh", "-c", "1", "q", "<a.txt"},
		"hash":    {"-p", "./x.sh", "ls"},
		"read":    {"x"},
		"export":  {"PATH=."},
		"unset":   {"PATH"},
		"dirs":    {},
		"less":    {"a.txt"},
		"man":     {"ls"},
		"openssl": {"version"},
		"getent":  {"hosts", "localhost"},
		"host":    {"localhost"},
	}
}

// gitWords are git's words, subcommands among them.
func gitWords() []string {
	return strings.Fields(`
		status status log log diff diff show blame grep ls-files describe rev-parse branch tag remote stash list reflog worktree for-each-ref cat-file shortlog rev-list
		symbolic-ref var show-branch diff-index diff-files diff-tree count-objects name-rev ls-tree whatchanged check-ignore cherry merge-base show-ref
		HEAD HEAD~1 a.txt sub subm -- -p --stat --oneline -1 -v -a -l --all
		--output=pwn --output --outp=pwn -Ocat -O./x.sh -nO./x.sh -iO./x.sh --open-files-in-pager=./x.sh --op=./x.sh --ext-diff --no-ext-diff --textconv --text
		--help -h --dirty --broken --submodule --submodule=diff --submodule=log --subm=diff --ignore-submodules --ignore-submodules=none --ignore-subm=none --recurse-submodules --recurse
		--remerge-diff --diff-merges=remerge --diff-merges=r --show-signature --format=%G? --pretty=%GG --format=%(signature) --format=%(signature:grade) --format=%(contents:signature) --no-index
		-c core.pager=./x.sh -C --git-dir=. --exec-path=. --paginate -p --no-pager -P --config-env=core.pager=X --namespace=x --super-prefix=x --no-optional-locks
		foo -n -i -e x --cached --refresh --contents=a.txt --batch --filters --untracked-files=all -uall --porcelain=2 --show-toplevel -s -e -t -w --stdin --follow --graph --color-words --word-diff
		--verify -d new --show-current --list --short -m -D --contains --merged create drop pop expire --expire=all show add prune commit fetch config difftool bisect gc ls-remote --upload-pack=./x.sh origin push
		--exit-code --quiet -R -M -W --full-index --binary --patch-with-raw --cc --rotate-to=a.txt --skip-to=a.txt -G foo -S foo --pickaxe-all --relative --alias`)
}

// generatedPrograms generates shell programs around the vocabulary.
func generatedPrograms() *rapid.Generator[string] {
	vocabulary := vocabulary()
	// Names that matter most are drawn more often.
	names := strings.Fields("git git git git git git git find find sort uniq file diff rg printf printf echo cat ls test")
	for name := range vocabulary {
		names = append(names, name)
	}
	slices.Sort(names)
	words := rapid.Custom(func(t *rapid.T) string {
		name := rapid.SampledFrom(names).Draw(t, "name")
		parts := []string{name}
		if own := vocabulary[name]; len(own) > 0 {
			parts = append(parts, rapid.SliceOfN(rapid.SampledFrom(own), 0, 4).Draw(t, "words")...)
		}
		if rapid.IntRange(0, 29).Draw(t, "odd") == 0 {
			parts = append(parts, rapid.SampledFrom([]string{"$HOME", "$(cat a.txt)", "`ls`", "{a,b}.txt", "~", "$'a.txt'", `"$x"`, "$((1+1))", `${x:-a.txt}`, `"$(./x.sh)"`, "<(cat a.txt)", `a\.txt`, `"a.txt"`, "[ab].txt", "@(a|b).txt"}).Draw(t, "an odd word"))
		}
		text := strings.Join(parts, " ")
		if i := len(parts) - 1; i > 0 && rapid.IntRange(0, 5).Draw(t, "variable") == 0 { // one of the words is a value
			i = rapid.IntRange(1, i).Draw(t, "which word")
			value := parts[i]
			parts[i] = rapid.SampledFrom([]string{`"$v"`, "$v", `"${v}"`, `"${v#x}"`, `"${v%%.zip}"`, `"${v:-a.txt}"`, "${v##*/}"}).Draw(t, "expansion")
			form := rapid.SampledFrom([]string{"v=V; C", "v=V && C", "for v in a.txt V; do C; done", "for v in V; do C; v=a.txt; done", "v=a.txt; for w in V; do C; v=$w; done", "echo V | while read -r v; do C; done", "v=$(echo V); C", "v=a.txt; [[ -f $v ]] && v=V; C", "w=V; v=$w; C", "w=xV; v=${w#x}; C", "v=; v=${v:-V}; C", "v=V; case $v in -*) C;; a*|b) C;; *) ls;; esac", "n=4; v=$((n - 5)); C"}).Draw(t, "assignment")
			return strings.NewReplacer("V", value, "C", strings.Join(parts, " ")).Replace(form)
		}
		return text
	})
	// Wrappers around a command, with options that are theirs.
	wrappers := []string{
		"env", "env -i", "env -u PATH", "env LC_ALL=C", "env PATH=.", "env -S", "env -C sub", "env --", "sudo", "timeout 20", "timeout -s KILL 20", "timeout -v 20", "timeout --foreground 20", "nice", "nice -n 5", "nice -5",
		"stdbuf -o0", "stdbuf -oL", "command", "command -p", "builtin", "exec", "time", `\time`, `\time -p`, `\time -ppwn`, `\time -popwn`, `\time -opwn`, `\time -ao pwn`, `\time -f x`, `command time -vopwn`, "ionice -c 3", "nohup", "setsid", "eval",
		"LC_ALL=C", "PATH=.:$PATH", "PATH=.", "PAGER=./x.sh", "GIT_PAGER=./x.sh", "GIT_EXTERNAL_DIFF=./x.sh", "GIT_DIR=evil", "GIT_CONFIG_COUNT=0", "IFS=a", "BASH_ENV=./x.sh", "LD_PRELOAD=./x.sh", "TZ=UTC", "TERM=dumb", "COLUMNS=80", "A=1",
		"xargs", "xargs -0", "xargs -n 1", "xargs -I {}", "xargs -t", "xargs -a list", "xargs -r",
	}
	pipes := []string{ // the first gives the second names and options
		"echo A | xargs -I ls ls", "echo ./x.sh | xargs -I echo echo", "echo ./x.sh | xargs -tI echo echo", "echo ./x.sh | xargs -I echo -t echo a", "echo ./x.sh | xargs -Iecho echo", "echo ./x.sh | xargs --replace=echo echo", "echo ./x.sh | xargs -i {} ", "echo ./x.sh | xargs -ti echo {}",
		"echo sub/. | xargs -I LANG= env LANG=./x.sh echo", "printf '%s\\n' ./x.sh | xargs echo", "cat list | xargs echo", "cat list | xargs -n 1 echo", "cat list | xargs -I {} echo {}", "ls | xargs basename -a", "echo --output=pwn | xargs git log", "echo -o pwn | xargs sort a.txt",
		"find . -exec echo {} +", `find . -name 'a*' -exec echo {} \;`, `find . -name x.sh -exec {} \;`, `find . -exec timeout 5 echo {} \;`, `find . -name a.txt -exec sh -c 'echo {}' \;`, "find . -exec env LANG={} ls +", "cat <<E\n$(./x.sh)\nE", "cat <<'E'\n$(./x.sh)\nE",
		"bash <<'E'\nls\nE", "sh <<E\ncat a.txt\nE", "cat <<< hello", "cat <<E | sh\n./x.sh\nE", "printf 'aaa%n' PATH; nothing", "printf 'aaa%n' PATH; ls", "printf 3%n PATH && cat a.txt", "env -u PATH bash -c nothing", "uniq -- -x pwn", "sort -S 1b -T sub big.txt", "cd sub; cat c.go", "cd subm && git status",
		"cd evil && git status", "cd evil && git diff", "git -C evil status", "git -C subm status", "git -C subm diff", "git status --ignore-submodules=none", "git diff --submodule=diff", "git log -p --submodule=diff", "git describe --always --dirty", "git describe --always --broken",
		"git log --remerge-diff -1", "git for-each-ref --format='%(signature)'", "git for-each-ref --format='%(refname)'", "git diff-index HEAD", "git diff", "git status -s", "git stash list -p", "git grep -nO./x.sh foo", "git log --help",
		"git grep -n foo", "git blame a.txt", "git diff --no-index a.txt b.txt", "git cat-file -p HEAD", "git show --stat", "git rev-parse --git-dir", "git shortlog -s HEAD", "git branch -vv", "git tag -l", "git log --oneline | head -3", "file -bC -m magic", "file -bp a.txt", "diff -l a.txt b.txt", "test -f a.txt && cat a.txt",
		"x() { ./x.sh; }; x", "x=(a b); ls ${x[0]}", "for i in a b; do cat $i.txt; done", "while read l; do echo $l; done <a.txt", "case a in a) ls;; esac", "case a in a) cat a.txt;& b) ./x.sh;; esac", "x='a[$(./x.sh)]'; echo $((x))", "x='a[$(./x.sh)]'; y=x; echo $((y + 1))", "n=5; head -n $((n / 2)) a.txt", "f=a.txt; cat \"${f%.txt}.txt\"", "(( x = 1 ))", "[[ -f a.txt ]] && ls", "let x=1", "declare -n q=PATH", "if test -f a.txt; then cat a.txt; else rm a.txt; fi",
		"ls # x\\\n./x.sh", "ls #\n", "cat <<E\na\nE\\\n\n./x.sh\nE\n", "cat <<\"a\\\"b\"\na\"b\n./x.sh\na\\\"b\n", "cat <<$'E'\n$E\n./x.sh\nE\n", "cat list | sh 3<<'E'\nls\nE\n", "sh <<'E' <list\nls\nE\n", "sh 3<<<ls <list", "cat 3<<E <<'F'\na\nE\nb\nF\n", "cat <<-'E' | wc\n\t$(./x.sh)\n\tE\n",
		"bash <<'E'\nhead -n 1\ncat <<'X'\n./x.sh\nX\nE\n", "ls *", "cat opts/*", "cd opts; ls *", "cd opts && sort *", "rg foo -- *", "grep -e -- -x", "sort -- -x", "cat ./-x", "ls sub/../3/../sub", "cat {a,b}.txt", "wc ~", "echo 'a # b' # c", "case a in a) cat <<E;; esac\na\nE\n", "sh -c 'ls # x\\\n./x.sh'", "ls 3<a.txt 4<&3", "cat <a.txt 2>&1 3>&-",
		"cat list | while read -r l; do [ \"$l\" x ]; done", "while read -r l; do cat \"$l\"; done <list", "cat $(cat list)", "sort $(cat list)", "[[ -v 'a[$(./x.sh)]' ]]", "[[ 1 -eq 'a[$(./x.sh)]' ]]", "v='a[$(./x.sh)]'; [ -v \"$v\" ]", "v=-v; [ $v 'a[$(./x.sh)]' ]", "v='a[$(./x.sh)]'; [[ $v -gt 0 ]]", "read 'a[$(./x.sh)]' <list", "v=-exec; find . \"$v\" ./x.sh \\;", "v=';'; find . -exec echo {} \"$v\" -exec ./x.sh \\;",
		"bash -lc 'cat a.txt'", "bash -lc './x.sh'", "for i in a b; do [ -f $i.txt ] || continue; wc -l < $i.txt; done", "v=sub; ls $v/*", "[ -n \"$(ls)\" ] && echo $?", "v=x; echo \"$(v=y)\"; ./$v.sh", "printf '%s %n' x PATH; nothing", "v='%n'; printf \"$v\" PATH; nothing",
		"! test -f none", "{ ls; pwd; }", "(cd sub; ls)", "ls 2>&1", "ls >/dev/null 2>&1", "ls >pwn", "ls >>a.txt", "cat <>pwn", "ls 2>/dev/null", "cat </dev/tcp/127.0.0.1/9", "ls >&pwn", "exec 3>pwn", "coproc ls", "trap ./x.sh EXIT", "alias ls=./x.sh\nls", "time ls", "time -p cat a.txt",
	}
	simple := rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0, 1, 2:
			return rapid.SampledFrom(pipes).Draw(t, "a known trick")
		case 3:
			return rapid.SampledFrom(wrappers).Draw(t, "wrapper") + " " + words.Draw(t, "command")
		}
		text := words.Draw(t, "command")
		if rapid.IntRange(0, 14).Draw(t, "redirects") == 0 {
			text += " " + rapid.SampledFrom([]string{">pwn", ">>a.txt", "2>/dev/null", "2>&1", "<a.txt", "&>pwn", ">|pwn", "<>pwn", "3>pwn", "<<<a", ">/dev/null", "</dev/tcp/127.0.0.1/9"}).Draw(t, "redirection")
		}
		return text
	})
	var program func(depth int) *rapid.Generator[string]
	program = func(depth int) *rapid.Generator[string] {
		if depth == 0 {
			return simple
		}
		return rapid.Custom(func(t *rapid.T) string {
			a, b := program(depth-1).Draw(t, "a"), simple.Draw(t, "b")
			form := rapid.SampledFrom([]string{
				"A", "A; B", "A; B", "A && B", "A || B", "A | B", "A | B", "(A)", "{ A; }", "! A", "time A", "if A; then B; fi", "if A; then B; else A; fi", "A\nB",
				"echo \"$(A)\"", "cat <(A)", "A & B", "while A; do break; done", "for i in a; do A; done", "f() { A; }; B", "eval 'A'", "A; cd sub; B",
			}).Draw(t, "form")
			if strings.Contains(form, "'") && strings.Contains(a, "'") {
				form = "A"
			}
			return strings.NewReplacer("A", a, "B", b).Replace(form)
		})
	}
	return rapid.Custom(func(t *rapid.T) string {
		return program([]int{0, 0, 0, 1, 1, 2}[rapid.IntRange(0, 5).Draw(t, "depth")]).Draw(t, "program")
	})
}
