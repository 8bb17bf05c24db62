package cmdline

import (
	"strings"
	"testing"
)

// Destroying work for good differs from work that git, or an undo, brings back; it is never
// remembered.
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
				t.Errorf("%q is remembered as %q", line, c.Key)
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
