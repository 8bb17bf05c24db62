package permission

// tricks lists commands that look as if they only read. Each of them once ran unasked in eca or in
// another product.
func tricks() []string {
	return []string{
		// xargs and find replace words by what they read, also in the name of the command.
		"echo ./x.sh | xargs -I echo echo", "echo ./x.sh | xargs -tI echo echo", "echo ./x.sh | xargs -Iecho echo", "echo ./x.sh | xargs --replace=echo echo", "echo ./x.sh | xargs -ti echo {}",
		"echo sub/. | xargs -I LANG= env LANG=./x.sh echo", "find . -name a.txt -exec sh -c 'echo {}' \\;", "find . -name x.sh -exec {} \\;", "echo -o pwn | xargs sort a.txt", "echo --output=pwn | xargs git log",
		// Formats and options that assign, write or start something.
		"printf 'aaa%n' PATH; nothing", "printf '%-5n' PATH; ls", "diff -l a.txt b.txt", "diff --paginate a.txt b.txt", "diff -ul a.txt b.txt", "sort -S 1b -T sub big.txt", "sort -S1b -uTsub big.txt", "sort -S1b --temp=sub big.txt",
		"uniq -- -x pwn", "file -bC -m magic", "file -bCm magic", "file -bp a.txt", "file --pres a.txt", "file -bz zip.gz", "file --u zip.gz",
		"git grep -nO./x.sh foo", "git grep -inO./x.sh foo", "git log --help", "git status --help", "git describe --always --dirty", "git describe --always --broken", "git log --remerge-diff -1", "git show --diff-merges=remerge",
		"git for-each-ref --format='%(signature)'", "git for-each-ref '--format=%(contents) %(signature:grade)'", "git diff --submodule=diff", "git log -p --submodule=diff", "git diff --subm=diff", "git status --ignore-submodules=none", "git ls-files --recurse-submodules",
		"git -C evil status", "cd evil && git log",
		"ls | time -p cat a.txt", "ls |& time cat a.txt",
		// The environment that a program is found or started with.
		"env -i bash -c nothing", "env -u PATH bash -c nothing", "env - nothing", "\\time -ppwn ls", "\\time -popwn ls", "command time -vopwn ls", "timeout 20 time -popwn ls",
		// Values of variables, and data, that are operators, options or commands.
		"o=-exec; find . \"$o\" ./x.sh \\;", "e=';'; find . -exec echo {} \"$e\" -exec ./x.sh \\;", "o=--output=pwn; git diff \"$o\"", "while read -r o; do [ \"$o\" 'a[$(./x.sh)]' ]; done <list", "v='a[$(./x.sh)]'; [[ $v -gt 0 ]]", "echo \"$(d=a)\"; cat \"$d/etc/passwd\"",
		// Programs that the folder chooses (toolchains, version managers), and that fetch them.
		"go version", "cargo --version", "rustc --version", "npm --version", "node --version", "python3 --version", "ruby --version",
	}
}

// knownReaders are programs that only read, of which at least some must run unasked.
func knownReaders() []string {
	return []string{
		"ls -la", "cat a.txt b.txt | sort -n | uniq -c", "grep -rn foo .", "find . -name '*.txt' -type f", "git -C sub log -1 --oneline", "git log --stat -3", "git diff", "git diff --stat", "git status -s", "git diff-files", "git show HEAD", "git branch -a", "git tag -l", "git stash list", "git blame a.txt",
		"git ls-files -s", "git rev-parse HEAD", "git grep -n foo", "git remote -v", "git worktree list", "git shortlog -s HEAD", "wc -l *.txt", "head -5 a.txt && tail -1 b.txt", "diff -u a.txt b.txt", "test -f a.txt && echo there", "printf '%s\\n' a b",
		"timeout 20 ls", "nice ls", "env LC_ALL=C ls", "sh -c 'ls; pwd'", "bash <<'E'\nls\nE", "cat <<E\nhello\nE", "echo \"$(git rev-parse HEAD)\"", "(cd sub; cat c.go)", "rg -n foo", "jq . data.json", "file a.txt", "egrep foo b.txt", "command -v ls", "tac a.txt", "id", "du -s .", "stat a.txt",
		"ls | xargs -n 1 echo", "\\time -p ls", "d=sub; ls \"$d\"", "for f in a.txt b.txt; do [ -f \"$f\" ] && wc -l < \"$f\"; done", "[[ -f a.txt ]] && cat a.txt", "cat list | while read -r l; do echo \"$l\"; done",
	}
}
