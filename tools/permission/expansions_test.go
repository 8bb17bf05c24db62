package permission

import (
	"encoding/json"
	"testing"

	"github.com/seed-dec29ce4/eca/tools"
)

// rulesFor returns a configuration with allow and deny patterns for commands.
func rulesFor(t *testing.T, allow, deny []string) string {
	t.Helper()
	tool := func(patterns []string) map[string]any {
		return map[string]any{"eca__shell_command": map[string]any{"argsMatchers": map[string]any{"command": patterns}}}
	}
	rules := map[string]any{"allow": tool(allow)}
	if deny != nil {
		rules["deny"] = tool(deny)
	}
	data, err := json.Marshal(map[string]any{"toolCall": map[string]any{"approval": rules}})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A pattern must name an option that does more than read, also if the text does not show the option.
func TestHiddenOptionsAreNotAllowed(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a": "", "src/b": "", "odd/--output=x": ""})
	p := policyFor(t, rulesFor(t, []string{"git (status|diff|log|push|commit).*", "find .*", "tar .*", "go test.*", "sed -n.*", "curl .*", "npm .*", "xargs git log.*", "echo .*"}, nil), dir)
	for command, want := range map[string]tools.Decision{
		"git log$IFS--output=x":                          tools.Ask,
		"git log {--output=x,-1}":                        tools.Ask,
		"git log $'--output=x'":                          tools.Ask,
		"git log $(echo --output=x)":                     tools.Ask,
		"git log`echo`--output=x":                        tools.Ask,
		"git log ${x:---output=x}":                       tools.Ask,
		"git log -1 $x--output=x":                        tools.Ask,
		`git log "$x"`:                                   tools.Ask,
		`git log \--output="$x"`:                         tools.Ask,
		`git "$x" log`:                                   tools.Ask,
		"for o in --bad --output=x; do git log $o; done": tools.Ask,
		"find . -name v -{delete,print}":                 tools.Ask,
		"find . -name v $'-delete'":                      tools.Ask,
		`find "$x" -name v`:                              tools.Ask,
		`find . -maxdepth 0 $(echo -exec rm a \;)`:       tools.Ask,
		"tar xf a$IFS--to-command=rm":                    tools.Ask,
		`tar "x$y" a`:                                    tools.Ask,
		"go test$IFS-exec=rm":                            tools.Ask,
		"sed -n$IFS-i$IFS-e${IFS}1d a":                   tools.Ask,
		`git push "$(echo --receive-pack=x)"`:            tools.Ask,
		"echo --output=x | xargs git log":                tools.Ask,
		`curl $x https://example.org`:                    tools.Ask,

		`git commit -m "$(cat a)"`:    tools.Allow,
		`git commit -m "$message"`:    tools.Allow,
		`git log -- $x`:               tools.Allow,
		`git log "v$x"`:               tools.Allow,
		`find "$HOME/src" -name "$x"`: tools.Allow,
		`find . -name "$(cat a)"`:     tools.Allow,
		`curl -H "Authorization: $x" -d "$y" https://example.org`: tools.Allow,
		"npm $(echo --output=x)":                                  tools.Allow,
		"cd odd && git log -1 *":                                  tools.Allow, // it runs with ./--output=x
		"git log {-1,-2}":                                         tools.Allow,
	} {
		if v := judge(t, p, "code", dir, command); v.Decision != want {
			t.Errorf("%s: %s, want %s: %s", command, v.Decision, want, v.Reason)
		}
	}
}

// Rules apply to the programs that git runs.
func TestCommandsOfGitAreJudged(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a": ""})
	p := policyFor(t, rulesFor(t, []string{"git .*"}, []string{"rm .*"}), dir)
	for command, want := range map[string]tools.Decision{
		"git bisect run rm a":                      tools.Deny,
		"git -C . bisect run rm a":                 tools.Deny,
		"git -c a.b=c bisect run rm a":             tools.Deny,
		"git bisect run make":                      tools.Ask,
		"git submodule foreach rm a":               tools.Deny,
		"git submodule foreach --recursive 'rm a'": tools.Deny,
		"git filter-branch --tree-filter 'rm a'":   tools.Deny,
		"git bisect good":                          tools.Allow,
		"git submodule status":                     tools.Allow,
	} {
		if v := judge(t, p, "code", dir, command); v.Decision != want {
			t.Errorf("%s: %s, want %s: %s", command, v.Decision, want, v.Reason)
		}
	}
}

// Work is lost irreversibly, or a protected file is written, also if the option or the name appears only
// when the shell expands a word.
func TestExpandedWordsAreAlwaysAsked(t *testing.T) {
	dir := makeFiles(t, map[string]string{"src/a": "", "a": "", "b": ""})
	withRules := policyFor(t, rulesFor(t, []string{"git .*output.*", "git (mv|archive|bundle|restore|checkout|rm|format-patch).*", "cp .*", "echo .*>.*", "tee.*", "sed .*w .*", "awk .*"}, nil), dir)
	withoutRules := policyFor(t, `{}`, dir) // a rule may allow a command that loses work
	for command, want := range map[string]string{
		"git reset $'--hard'":      RuleIrreversible,
		"git reset --{hard,quiet}": RuleIrreversible,
		"git reset $(echo --hard)": RuleIrreversible,
		"rm -r{f,} src":            RuleIrreversible,
		"rm $(echo -rf) src":       RuleIrreversible,
		"rm ${X:--rf} src":         RuleIrreversible,
		"find src -{delete,print}": RuleIrreversible,
		"find src $'-delete'":      RuleIrreversible,
		"find src $(echo -delete)": RuleIrreversible,
		"git checkout $(echo .)":   RuleIrreversible,

		"git log -1 --format=format:x --output=AGENTS.md": RuleProtected,
		"git log --outp=AGENTS.md":                        RuleProtected,
		"git diff --output=.git/hooks/pre-commit":         RuleProtected,
		"git diff --output .eca/config.json":              RuleProtected,
		"git archive -o .vscode/tasks.json HEAD":          RuleProtected,
		"git archive -o.vscode/tasks.json HEAD":           RuleProtected,
		"git format-patch -o .vscode -1":                  RuleProtected,
		"git mv a AGENTS.md":                              RuleProtected,
		"git bundle create AGENTS.md HEAD":                RuleProtected,
		"git checkout other -- .vscode/tasks.json":        RuleProtected,
		"git -C src mv a AGENTS.md":                       RuleProtected,
		"cp a $(echo AGENTS.md)":                          RuleProtected,
		"cp a ${x:-AGENTS.md}":                            RuleProtected,
		"cp a AGENTS$x.md":                                RuleProtected,
		"cp a {AGENTS,b}.md":                              RuleProtected,
		"echo x > $(echo AGENTS.md)":                      RuleProtected,
		"echo x > AGENTS$x.md":                            RuleProtected,
		"echo x | tee $(echo AGENTS.md)":                  RuleProtected,
		`sed -n "w AGENTS.md" a`:                          RuleProtected,
		`awk '{print > "AGENTS.md"}' a`:                   RuleProtected,

		"git add AGENTS.md":              "",
		"git restore --staged AGENTS.md": "",
		"git rm --cached AGENTS.md":      "",
		"git checkout main":              "",
		"git reset $commit":              "",
		"rm $file":                       "",
		`cp a "$x"`:                      "",
		"find src -{print,ls}":           "",
	} {
		p := withRules
		if want == RuleIrreversible {
			p = withoutRules
		}
		if v := judge(t, p, "code", dir, command); v.AlwaysAsk != (want != "") || want != "" && v.Rule != want {
			t.Errorf("%s: %+v, want %q", command, v, want)
		}
	}
}
