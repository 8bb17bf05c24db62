package cmdline

import (
	"strings"
	"testing"
)

// Parse marks commands that destroy work which neither git nor an undo can restore. They have no
// key, so they are not remembered.
func TestDestroys(t *testing.T) {
	for line, want := range map[string]string{
		"git reset --hard": "!", "git reset --hard HEAD~3": "!", "git reset --har": "!", "git -C x reset --hard": "!", "sudo git reset --hard": "!", "git -c a.b=c reset --hard": "!", "git reset": "", "git reset --soft HEAD~1": "", "git reset HEAD a": "",
		"git clean -fdx": "!", "git clean -f": "!", "git clean": "!", "git clean -n": "", "git clean -nfd": "", "git clean --dry-run": "",
		"git checkout -- .": "!", "git checkout .": "!", "git checkout -f": "!", "git checkout HEAD a.txt": "!", "git checkout main -- a": "!", "git checkout ./": "!", "git checkout -b new origin/main": "", "git checkout main": "?main", "git checkout a.txt": "?a.txt", "git checkout -": "?-", "git checkout --track origin/x": "",
		"git switch main": "", "git switch -f main": "!", "git switch --discard-changes main": "!", "git restore a": "!", "git restore --staged a": "", "git restore -SW a": "!", "git restore --staged --worktree .": "!",
		"git push": "", "git push --force": "!", "git push -f": "!", "git push origin +main": "!", "git push --force-with-lease": "!", "git push --forc": "!", "git push --delete origin x": "!", "git push origin :x": "!", "git push --mirror": "!", "git push -u origin main": "", "git push --follow-tags": "", "git push origin a:b": "", "git push -fu origin x": "!",
		"git branch -D x": "!", "git branch -d x": "", "git branch -f main HEAD~1": "!", "git branch --force x y": "!", "git branch -M main": "!", "git branch new": "", "git tag -d v1": "!", "git tag v1": "",
		"git stash": "", "git stash pop": "", "git stash drop": "!", "git stash clear": "!", "git reflog expire --all": "!", "git reflog": "", "git gc": "", "git gc --prune=now": "!", "git prune": "!", "git filter-branch x": "!", "git update-ref -d refs/heads/x": "!",
		"git worktree remove --force x": "!", "git worktree remove x": "", "git rm -f a": "!", "git rm a": "", "git rm --cached -f a": "", "git commit --amend": "", "git rebase main": "", "gh repo delete x": "!", "gh pr list": "",
		"rm -r x": "x", "rm -rf a b": "a b", "rm -fR a": "a", "rm --recursive a": "a", "rm --rec a": "a", "rm -f a": "", "rm -- -r": "", "rm -r -- -x": "-x", "/bin/rm -rf x": "x", "env A=1 rm -rf x": "x", "sh -c 'rm -rf x'": "x", "$(rm -rf x)": "x",
		"xargs rm -rf": "!", "find a b -name x -delete": "a b", "find -delete": ".", "find . -name x": "", "find . -exec rm -rf {} +": "{}", "rsync -a --delete a b": "!", "rsync -a a b": "", "shred x": "!", "mkfs.ext4 x": "!",
		"x=-rf; rm $x a": "a", `d=a; rm -rf "$d"`: "a", "for d in a b; do rm -r $d; done": "a b", "o=--hard; git reset $o": "!", "g=git; $g push -f": "!", "x=-delete; find a $x": "a", "x=a; rm -f $x": "", "rm -r $x": "$x",
		"echo 'rm -r x' | sh": "x", "echo rm -r x | sudo bash": "x", "printf 'rm -r %s\\n' x y | bash -s -- a": "xy", "printf '%s %s\\n' rm -r x | (sh)": "!", "echo -e 'ls\\nrm -r x' | cat | tee log | timeout 5 dash": "x", "{ sh; } <<< 'rm -r x'": "x", "echo 'rm -r x' | if true; then sh; fi": "x",
		"bash /dev/stdin <<< 'rm -r x'": "x", "bash -euo pipefail -c 'rm -r x'": "x", "sh - <<EOF\nrm -r x\nEOF": "x", "cat <<EOF | bash\nrm -r x\nEOF": "x", "x='rm -r y'; sh -c \"$x\"": "y", "x='rm -r y'; $x z": "y z", "x='rm -r y'; echo \"$x\" | sh": "y", "x='rm -r y'; eval \"$x\"": "y",
		"env -S 'rm -r x'": "x", "env '-iSrm -r x'": "x", "env '--split-string=A=b rm -r x'": "x", "su -c 'rm -r x'": "x", "su - root '--command=rm -r x'": "x", "runuser -c 'git clean -f' me": "!", "script -qc 'rm -r x'": "x", "watch 'rm -r x'": "x", "flock l -c 'rm -r x'": "x", "trap 'rm -r x' EXIT": "x", "alias 'a=rm -r x'": "x",
		"ssh h <<< 'rm -r x'": "x", "busybox sh -c 'rm -r x'": "xx", "docker exec c sh -c 'rm -r x'": "x", "parallel 'rm -r {}' ::: x": "{}", "parallel ::: 'rm -r x' ls": "x", "echo 'rm -r x' | parallel": "x", "echo x | parallel rm -r": "!", "echo 'rm -r x' | xargs -I% sh -c %": "x", "ls | xargs -I% sh -c 'rm -r %'": "%%",
		"cat f | sh": "!", "curl u | sudo bash -s -- a": "!", "base64 -d f | sh": "!", "{ echo ls; cat f; } | sh": "!", "bash -c \"$(cat f)\"": "!", "bash <(cat f)": "!", "source <(cat f)": "!", "eval \"$(cat f)\"": "!", "su -c \"$x\"": "!", "env -S \"$x\"": "!", "cat f | parallel": "!", "cat f | busybox sh": "!", "cat f | xargs -I% sh -c %": "!", "cat f | xargs sh -c": "!", "cat f | while read l; do $l; done": "!", "cat f | while read l; do eval \"$l\"; done": "!",
		"git $s": "!", "git $(cat f) --hard": "!", "git \"$s\" x": "!", "s='reset --hard'; git $s": "!", "s=status; git $s": "", "git -C \"$d\" status": "", "git push origin $b": "",
		"echo 'rm -r x'": "", "echo 'rm -r x' | cat": "", "echo 'rm -r x' | grep rm | wc -l": "", "echo ls | sh": "", "printf '%d' 1 | sh": "", "bash f": "", "bash f 'a b'": "", "bash < f": "", "cat f | bash g": "", "cat f | python3": "", "ls | xargs -I% cp % d": "", "watch ls -l": "", "su -c 'ls -l'": "", "ls | parallel gzip": "", "$x": "",
		"taskset 1 rm -r a": "a", "busybox rm -r a": "a", "unbuffer /usr/bin/git push -f": "!", "npm run rm": "", "pnpm rm -r a": "", "git rm -r a": "", "git commit -m rm -r": "", "arch -x86_64 rm -r a": "a",
	} {
		got := ""
		for _, c := range Parse(line).Commands {
			if c.Destroys != "" {
				got = "!"
			}
			got += strings.Join(c.Deletes, " ")
			if len(c.Discards) > 0 {
				got += "?" + strings.Join(c.Discards, " ")
			}
			if (c.Destroys != "" || len(c.Deletes) > 0) && c.Key != "" {
				t.Errorf("%q has the key %q", line, c.Key)
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
