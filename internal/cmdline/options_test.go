package cmdline

import (
	"slices"
	"strings"
	"testing"
)

// eca parses options as the program does: the value of an option is not an option, and one word can
// contain any number of short options. Reads refuses unknown and ambiguous options.
func TestOptionsAreParsed(t *testing.T) {
	for _, line := range []string{
		// A value that looks like the end of options, or like an option.
		"git grep -e -- -O./x", "sort --random-source -- -o F", "git diff --no-index -S -- --output=F", "diff -I -- -l a b", "find -name -- -o -follow", "uniq -f -- -w 3 a b", "sort -k -- -o F a", "sort -t -- --compress-program=./x a",
		"tail -n -- --nothing a", "rg -e -- --pre=./x a", "rg -g -- -z x", "tree -P -- -o F", "file -F -- -f list", "wc --total -- --files0-from=l", "du --exclude -- -L a", "grep -e -- -R a", "jq --arg a -- -f x", "xargs -I -- ./x", "timeout -s -- 5 ./x", "stat -c -- --nothing a",
		"date -r -- -s x", "sed -e -- -i a", "git log --author -- --output=F", "git log -S -- --ext-diff", "sha256sum -l -- -c x", "md5sum --nothing a", "column -s -- --nothing", "od -N -- --nothing",
		// Several short options in one word.
		"sort -bdfginruo F a", "sort -bdfgirRuzmo F a", "grep -inrHoswvxR a", "rg -inHoswvxlz a", "du -abcDhHklmPSsxL a", "tree -adfxqNQpugshDFo F", "file -bikLNnrk0sf list", "diff -abBcdeinNpqstTuwl a b", "git grep -inwvhHEFlLO./x a",
		// Abbreviations of refused options, of several options, or of options of newer versions of git.
		"git blame --conten=F", "sort --ou=F a", "sort --comp=./x a", "sort --files0=l", "sort --temp=x a", "sort --r a", "wc --fi=l", "du --dere a", "grep --deref x a", "tail --s 1 a", "rg --hid x", "git log --onel", "ls --i a", "file --comp a", "date --se=x", "diff --pag a b", "sed --in a", "env --s x ls", "md5sum --ch x",
		// Programs in no table.
		"ls --nothing", "cat -q a", "sort --nothing a", "git log --nothing", "git status --nothing", "find . -nothing", "find . a -print b", "tree --nothing", "rg --nothing x", "jq --nothing .", "timeout --nothing 5 ls", "env --nothing ls", "xargs --nothing echo", "sort -y a", "uniq -1 a b",
		// More files than one read.
		"uniq a b", "uniq a*", "uniq -- -x b", "xxd a b", "xxd a*", "uniq -f a* b",
		// Values that are refused, other grammars, and systems that differ.
		"date -d tomorrow", "date -f a", "date 0101", "date +%s 0101", "date -s x", "find -E -follow", "find -files0-from a", "find . -newerXY", "find . -name", "find . -fprint F", "find . -fprintf F x", "ls -I -LR a", "ls -I -- -R -L", "ls -T -R -L", "stat -t --nothing a",
		"jq -n '$ENV'", "jq -- . a", "jq * a", "jq --arg a . env", "jq -rf a", "grep -e", "jq --slurpfile a", "test -f a -a -v 'x[1]'", "printf -v x y", "command -p ./x", "command", "free -c 1 --nothing", "cksum -a sm3 -c x", "strings -n 4 @x", "strings --target @x a",
		"git -C a -C b log", "git -- log", "git log --format %G?", "git for-each-ref --format '%(signature)'", "git tag --sort signature", "git branch -l x --nothing", "git branch x", "git tag x", "git stash pop", "git stash show --output=F", "git stash list --output=F", "git remote get-url --nothing x", "git rev-parse --parseopt",
		"xxd -ps a b", "xxd -bc a b", "xxd a -b", "xxd -l16 a", "xxd -r a", "uniq a -c", "uniq a -w 3", "sed 'w pwn' a -e p", "sed -n p a -n", "date +%s -u", "date -r a*", "printf a* PATH", "git -C l* log", "nice -n a* ls", "timeout a* ls", "stdbuf -o a* ls",
		"ls -D -- -LR a", "stat -f -- -x a", "grep --context -R x", "grep -C -- -R x", "rg -g -z x", "rg -A -z x", "git branch -l x", "tree --sort -o a", "find l* -name", "column -n -- a -x", "df -T -- -x",
		"git diff -O./order", "git log --textconv", "git shortlog --output=F", "git worktree list --nothing", "git log --end-of-options x --output=F", "git grep --no-index x", "git cat-file --textconv HEAD:a", "git rev-parse --resolve-git-dir /x",
		"hostname x", "hostname -F x", "hostname -b", "base64 -o F a", "base64 -i -d a", "hexdump -f F a", "zcat -S.x a", "set", "set -a", "set -f", "set -- x", "set x", "set -euo posix", "set -eo", "set -o history", "set +e", "set -e$x", "git config x.y z", "git config --get-regexp .", "git config --get github.token",
		"git config user.name x", "git config user.nam?", "git config user.name $x", "git config --get user.name --unset", "git config -f F --get user.name", "git config --global --get user.name", "git config --get --get user.name x", "find . -exec cat {}", "find . -execdir cat {} +", "find . -exec sort {} +", "find . -exec sed -n 1p {} +", "find . -exec sh -c 'cat {}' +", "find . -exec cat {} + -delete",
		"nice --nothing ./x", "stdbuf -o0 -x ls", "time -o F ls 2>/dev/null | time ls", "ionice -c 2 -p 1 ls", "env -S 'ls -l'", "env -vS ls", "env -0 ls", "env -L x ls", "xargs -0a list echo", "xargs -l1 echo", "xargs -p echo",
	} {
		if ok, _ := Parse(line).Reads(); ok {
			t.Errorf("%q passes for reading", line)
		}
	}
	for _, line := range []string{
		"sort --random-source -- F", "sort -k 2 -- -o", "git grep foo -- -O./x", "grep -e -- a", "grep -n -e --output a", "grep -- -R a", "diff -I -- a b", "find -name -- -o -name b", "sort -bdfgirRuzm a", "sort --rev a", "sort --key=2 a", "ls --almost a", "head -n -5 a", "tail -n +5 a", "head -5 a", "tail -1 a", "tail -f a",
		"tail -F --retry --pid=1 a", "tail --pid -- a", "uniq -c -f 1 a", "uniq -w3 -- a", "uniq", "xxd -l 16 a", "tree -L 2 -I node_modules", "tree -aL 2", "file --mime-type a", "wc -lc a", "du -sh --max-depth 1 a", "stat -c %s a", "stat -f a", "column -t -s , a", "od -A x -t x1z -v a", "od -c -N 16 a",
		"jq -r --arg a env .a b", "jq -rc '.[] | .a' b", "jq --tab . a", "rg -n -g '!x' -t go foo a", "rg --files -g '*.go'", "rg -e -x a", "rg -uu --hidden -C3 foo", "date", "date -u +%F", "date -Iseconds", "date -r a +%s", "find . -newermt 2020-01-01", "find . -type f ! -name x -a '(' -size +1k -o -empty ')'", "find a b -maxdepth 2 -print0",
		"git log -5 --oneline --graph", "git log -n 5 --since '2 days ago' --author x -- a", "git log -S foo -p -- a", "git diff --stat --cached -- a", "git diff -U5 -w HEAD", "git show HEAD:a", "git show --name-only --format=%H HEAD", "git status -sb", "git status --porcelain=v1 -uno", "git branch -a --contains HEAD",
		"git branch --list 'x'", "git tag -l 'v1' --sort=-v:refname", "git tag -n", "git remote get-url origin", "git rev-parse --abbrev-ref HEAD", "git rev-parse --show-toplevel", "git ls-files -o --exclude-standard", "git blame -L 1,5 a", "git shortlog -sn", "git for-each-ref --sort=-committerdate --format='%(refname)' refs/heads",
		"git grep -n -e foo --and -e bar -- a", "git reflog -5", "git stash list -p", "git stash show -p", "git describe --tags --abbrev=0", "git --no-pager log -1", "git cat-file -p HEAD", "git ls-tree -r --name-only HEAD", "git diff main...HEAD -- '*.go'",
		"hostname", "hostname -s", "base64 -w 0 a", "base64 -d a", "hexdump -C -n 64 a", "zcat a.gz", "set -e; ls", "set -euo pipefail; ls", "set -x -o nounset; ls", "ls || exit 1", "git config --get remote.origin.url", "git config user.name", "git config --get-all --local user.name", "find . -exec cat {} +", `find . -name x -exec grep -l y {} \; -print`, `find a -type f -exec wc -l {} + -o -empty`,
		"timeout -k 1 -s KILL 5 ls -la", "timeout --signal=KILL 5 ls", "nice -n 5 ls", "nice -5 ls", "stdbuf -oL ls", "env LC_ALL=C ls", "xargs -0 -n1 echo", "xargs -tn 1 echo", "command -pv ls", "printf -- '-%s\\n' a", "cd -- a", "type -a ls", "ls -lLa a", "ls -R a", "grep -rn --include='*.go' foo .", "grep -A3 -B 3 foo a", "grep -5 foo a",
	} {
		if ok, why := Parse(line).Reads(); !ok {
			t.Errorf("%q: %s", line, why)
		}
	}
}

// Reads accepts a script of sed that prints. It refuses a script that may write, read another file or
// run a program, and one that two versions of sed read differently.
func TestSedScripts(t *testing.T) {
	for _, line := range []string{
		"sed -n 1,5p a", "sed -n '1,240p' a b", "sed -n '$p' a", "sed -n '5p;10p' a", "sed -n -e 1p -e '$p' a", "sed -n '/foo/,/bar/p' a", "sed -n '/foo/p' a", "sed -n '/foo/I,+5p' a", "sed -n '1~2p' a", "sed 5q a", "sed -n '10,$p' a", "sed -n '$=' a", "sed '/^#/d' a", "sed -n '2{p;q}' a", "sed -n '2{p;q;}' a",
		"sed 's/a/b/' a", "sed 's/a/b/g;s|x|y|2' a", "sed -E 's/(a+)/[\\1]/g' a", "sed -n 's/^x: //p' a", "sed 's/[^a-z]//g' a", "sed 's/[[:space:]]*$//' a", "sed 's/[]]//' a", "sed y/abc/xyz/ a", "sed ':a;N;$!ba;s/\\n/ /g' a", "sed --quiet --expression=1p a", "sed -ne 1p a", "sed -n '1,3 p' a", "sed -n '1!p' a", "ls | sed 1d", "sed -n '1p\n2p' a", "sed -nE '/a|b/p' a", "sed '' a",
		"sed -n '/a\\/b/p' a", "sed -s -n 1p a b", "sed -u 1d", "sed -z 's/x/y/' a", "sed --version",
	} {
		if ok, why := Parse(line).Reads(); !ok {
			t.Errorf("%q: %s", line, why)
		}
	}
	for _, line := range []string{
		"sed -i 1d a", "sed -ni 1p a", "sed -n -i.bak 1p a", "sed --in-place 1d a", "sed 1d a -i", "sed -n 'w x' a", "sed '1w x' a", "sed 's/a/b/w x' a", "sed s/a/b/gw\\ x a", "sed s/a/b/e a", "sed 's/a/b/pe' a", "sed e a", "sed '1e ls' a", "sed 'r /etc/passwd' a", "sed '$r x' a", "sed 'R x' a", "sed 'W x' a",
		"sed -f x a", "sed -n --file=x a", "sed -nf x a", "sed '1p\nw x' a", "sed '1p;w x' a", "sed '{w x' a", "sed -e 1p -e 'w x' a", "sed 's/[/]w x;/b/' a", "sed 's/a/b\\' a", "sed 's/a\\\nb/c/' a", "sed '\\cacw x' a", "sed 's/[\\/]/x/' a", "sed '1i x' a", "sed 'a w x' a", "sed 'c\\' a", "sed -n '# x' a",
		"sed -n '/a/w x' a", "sed -n '/a/Iw x' a", "sed *", "sed -n *p a", "sed -e * a", "sed -n '1,5p' -- a -i.x --in-place x $x", "sed 's/a/b/ w x' a", "sed '}' a", "sed '{p' a", "sed 'v' a", "sed sxaxbxe a", "sed 's\na\nb\nw x' a", "sed -l 5 1p a", "sed -n --follow-symlinks 1p a", "sed 's/a/\\cb/' a", "sed '1,w x' a", "sed ':a w x' a", "sed 'b;w x' a", "sed 's/[[:alpha:/]/b/w x' a",
	} {
		if ok, _ := Parse(line).Reads(); ok {
			t.Errorf("%q passes for reading", line)
		}
	}
}

// Reads accepts a program of awk that only computes and prints.
func TestAwkPrograms(t *testing.T) {
	for _, line := range []string{
		"awk '{count[$1]++} END {for (k in count) print k, count[k]}' a", "awk 'BEGIN {for (i=0;i<3;i++) print i}'", "awk 'BEGIN{FS=\",\"; OFS=\"\\t\"} {gsub(/a/, \"b\"); print $1, toupper($2)}' a", "awk '{n = split($0, parts, \",\"); while (n != 0) n--; total_lines += n} END {print total_lines}' a", "awk '/a/{found=1} found{print} /b/{found=0}' a", "awk '!seen[$0]++' a",
		"awk '{print $1}' a", "awk -F: '{print $1, $NF}' a b", "awk -F , '{print $2}' a", "ls -l | awk '{print $9}'", "awk 'NR>=10 && NR<=20' a", "awk 'NR==5' a", "awk '/foo/ {print $2}' a", "awk '{s+=$1} END {print s}' a", "awk '{print \"a\" $1 \"\\n\"}' a", "awk 'length($0) > 80' a", "awk '$1 > 5 || !/x/ {print $0; next}' a",
		"awk 'NR % 2 == 0 {print FILENAME \":\" FNR}' a", "awk '{print substr($0, 1, 10)}' a", "awk '{ if ($1 < 3) print $1*2; else print $(NF-1) }' a", "awk '{printf \"%s %d\\n\", $1, NR}' a", "awk '!/x/ && $1 ~ /y/' a", "awk 'BEGIN{print 1}'", "awk -F'\t' '{print NF}' a", "awk '/a/,/b/' a",
	} {
		if ok, why := Parse(line).Reads(); !ok {
			t.Errorf("%q: %s", line, why)
		}
	}
	for _, line := range []string{
		"awk '{getline; print}' a", "awk '{getline line; print line}' a", "awk 'func f(x) {}' a", "awk '{f(1)}' a", "awk '{fflush (\"x\")}' a", "awk '{close (c)}' a", "awk '{system (c)}' a", "awk '{x = system; x()}' a", "awk '{print PROCINFO[\"pid\"]}' a", "awk '{a[1]=ARGV[1]}' a", "awk '{RS=1; nextfile}' a", "awk '{print a[1] > \"x\"}' a", "awk '{print a[1] | \"sh\"}' a", "awk '{a[\"x\"] | getline y}' a", "awk '{print a[1] /1>\"x\"/ 2}' a", "awk '{SYMTAB[\"x\"]=1}' a",
		"awk '{print > \"x\"}' a", "awk '{print $1 >> \"x\"}' a", "awk '{print | \"sh\"}' a", "awk '{\"id\" | getline}' a", "awk '{getline < \"/etc/passwd\"; print}' a", "awk 'BEGIN{system(\"id\")}'", "awk 'BEGIN{print ENVIRON[\"A\"]}'", "awk '{print |& \"x\"}' a", "awk -f x a", "awk -v a=b '{print a}' a", "awk -i inplace '{print}' a", "awk '@include \"x\"' a",
		"awk '@load \"x\"' a", "awk 'function f(x) {}' a", "awk '{ARGV[1]=\"/etc/passwd\"}' a", "awk '{print}' a FS=x", "awk *", "awk a* b", "awk -F a* '{print}' b", "awk '/[/]{print > \"x\"}/' a", "awk '/a\\/{print > \"x\"}/' a", "awk '{print 1/2 > \"x/\"}' a", "awk '{x = 1 / 2; print > \"y/\"}' a", "awk '{print \"\\\" > \"x\"}' a",
		"awk --file=x a", "awk -E x", "awk -e '{print}' a", "awk -Wexec=x", "awk '{print' a", "awk '}{print' a", "awk '{print # x}' a", "awk -- '{print}' -f x && rm y", "gawk '{print}' a -i inplace", "awk '{print $1\n\"x\" | \"sh\"}' a", "awk '{close(\"x\")}' a", "awk '{printf(\"%s\", $1) > \"x\"}' a", "awk '{print a++ /1>\"x\"/ b}' a", "awk '{if (1) /\"/; print > \"x\"; /\"/}' a", "awk '{exit /\"/; print > \"x\"; /\"/}' a", "awk '{print $1/2}' a", "awk '{length /\"/; print > \"x\"; /\"/}' a", "awk '{print (1)>\"x\"}' a", "awk '{print a /1>\"x\"/ b}' a",
	} {
		if ok, _ := Parse(line).Reads(); ok {
			t.Errorf("%q passes for reading", line)
		}
	}
}

// No table contains an option twice, because the first entry would hide the second.
func TestTables(t *testing.T) {
	tables := map[string]program{"find": findExpression()}
	for _, name := range strings.Fields(readers) {
		if p, known := readerTable(name); known {
			tables[name] = p
		}
		if p, known := wrapperOptions(name); known {
			tables["wrapper "+name] = p
		}
		if p, known := runnersByOption(name); known {
			tables["runner "+name] = p
		}
	}
	for _, sub := range gitSubcommands() {
		p, known := gitReader(sub)
		if !known {
			t.Errorf("git %s has no table", sub)
		}
		tables["git "+sub] = p
	}
	for name, p := range tables {
		seen := map[string]string{}
		for entry := range strings.FieldsSeq(p.options) {
			o, names := parseEntry(entry)
			for spelling := range strings.SplitSeq(names, ",") {
				if !strings.HasPrefix(spelling, "-") || strings.ContainsAny(spelling, "[]=!>~") {
					t.Errorf("%s: %q in %q", name, spelling, entry)
				}
				if was, twice := seen[spelling]; twice && name != "git shortlog" && (was != o.values || !strings.HasPrefix(name, "git ")) {
					t.Errorf("%s has %s twice", name, spelling)
				}
				seen[spelling] = o.values
			}
		}
	}
	if len(tables) < 60 {
		t.Errorf("only %d tables were looked at", len(tables))
	}
}

func gitSubcommands() []string {
	return strings.Fields("config log show whatchanged rev-list diff-tree reflog shortlog diff diff-index diff-files status blame annotate grep ls-files ls-tree describe rev-parse merge-base name-rev branch tag remote stash worktree cat-file for-each-ref show-ref count-objects check-ignore cherry symbolic-ref show-branch var version --version")
}

// Options that change a file are marked, and their abbreviations, too.
func TestOptionsThatWrite(t *testing.T) {
	for line, want := range map[string]string{
		"sort -o x y": "-o", "sort -no x y": "-no", "sort --outp=x y": "--outp", "sed -ni 1p x": "-ni", "find . -fprint0 x": "-fprint0", "git log --output x": "--output", "git log --outp=x": "--outp", "git log -Yp --outp=x": "--outp", "tree -o x": "-o",
	} {
		c := Parse(line).Commands[0]
		if c.Effect != Changes || !slices.Equal(c.Demands, []string{want}) && !strings.HasPrefix(line, "sed") {
			t.Errorf("%q: %+v", line, c)
		}
	}
}
