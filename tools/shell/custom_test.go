package shell

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/tools"
)

// hostile are values that would do something if they became code.
func hostile() []string {
	return []string{
		"plain", "two words", "", "$(touch pwned)", "`touch pwned`", "; touch pwned", "& touch pwned", "| touch pwned", "\ntouch pwned\n", "' ; touch pwned ; '", `" ; touch pwned ; "`,
		"${HOME}", "$PATH", "*", "~", "{a,b}", "!!", "\\", "--", "> pwned", "$((1+1))", "a[$(touch pwned)]", "\xff\xfe", "é👋", "'", `"`, "ECA_ARG_1", "{{x}}",
	}
}

// The command gets each argument exactly as the model gave it, and the shell runs no part of it. The
// commands have the argument at different positions.
func TestCustomTool(t *testing.T) {
	posix(t)
	for _, c := range []struct{ command, want string }{
		{`printf '<%s>' {{x}}`, "<$>"},
		{`printf '<%s>' {{ x }} {{x}}`, "<$><$>"},
		{`printf '<%s>' "{{x}}"`, "<$>"},
		{`printf '<%s>' '{{x}}'`, "<$>"},
		{`printf '<%s>' a{{x}}b "c{{x}}d" 'e{{x}}f'`, "<a$b><c$d><e$f>"},
		{`V={{x}}; printf '<%s>' "$V"`, "<$>"},
		{`printf '<%s>' "$(printf '%s' {{x}}; printf .)"`, "<$.>"},
		{`sh -c 'printf "<%s>" "$1"' name {{x}}`, "<$>"},
		{`if true; then printf '<%s>' {{x}} | cat; fi`, "<$>"},
		{`env A=1 printf '<%s>' {{x}}`, "<$>"},
	} {
		tool, err := CustomTool(Options{}, Custom{Name: "mine", Command: c.command, Schema: map[string]any{"properties": map[string]any{"x": map[string]any{"type": "string"}}, "required": []any{"x"}}})
		if err != nil {
			t.Errorf("%s: %v", c.command, err)
			continue
		}
		root := t.TempDir()
		for _, value := range hostile() {
			value = strings.ToValidUTF8(value, "�") // as JSON has it
			raw, _ := json.Marshal(map[string]string{"x": value})
			call := tools.Call{Roots: []string{root}, Arguments: raw}
			if _, err := tool.Plan(t.Context(), call); err != nil {
				t.Fatal(err)
			}
			res, err := tool.Run(t.Context(), call, nil)
			want := "Exit code: 0|Stdout:\n" + strings.ReplaceAll(c.want, "$", value)
			if got := strings.Join(res.Outputs, "|"); err != nil || got != want {
				t.Errorf("%s with %q: %q, %v", c.command, value, got, err)
			}
		}
		if _, err := os.Stat(filepath.Join(root, "pwned")); err == nil {
			t.Errorf("%s ran an argument", c.command)
		}
	}
}

// A list is several words, an absent one is left out, other values are JSON.
func TestCustomToolArguments(t *testing.T) {
	posix(t)
	tool, err := CustomTool(Options{}, Custom{Name: "mine", Command: `printf '<%s>' - {{list}} {{n}} {{opt}} "{{list}}"`, Schema: map[string]any{
		"properties": map[string]any{"list": map[string]any{"type": "array", "items": map[string]any{"type": "string"}}, "n": map[string]any{"type": "integer"}, "opt": map[string]any{"type": "string"}},
		"required":   []any{"n"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		`{"n": 1, "list": ["a b", "$c"], "opt": "o"}`: "<-><a b><$c><1><o><a b $c>",
		`{"n": 1}`: "<-><1><>",
		`{"n": 1, "opt": "", "list": null, "more": 2}`: "<-><1><>",
		`{"n": "x"}`:                 "!INVALID_ARGS: mine",
		`{}`:                         "!INVALID_ARGS: mine",
		`[]`:                         "!INVALID_ARGS: the arguments",
		`{"n": 1, "opt": "a\u0000"}`: "!INVALID_ARGS: opt: it has a zero byte",
		`{"n": 1, "opt": "` + strings.Repeat("x", 100<<10+1) + `"}`: "!INVALID_ARGS: opt: it is longer",
	} {
		res, err := tool.Run(t.Context(), tools.Call{Roots: []string{t.TempDir()}, Arguments: json.RawMessage(args)}, nil)
		if cause, failed := strings.CutPrefix(want, "!"); failed {
			if err == nil || !strings.HasPrefix(err.Error(), cause) {
				t.Errorf("%.60s: %v", args, err)
			}
		} else if err != nil || res.Outputs[1] != "Stdout:\n"+want {
			t.Errorf("%s: %q, %v", args, res.Outputs, err)
		}
	}
}

// A call is refused if an argument would become an option of the command.
func TestCustomToolArgumentIsNoOption(t *testing.T) {
	posix(t)
	for _, c := range []struct {
		command, args string
		refused       bool
	}{
		{`rm {{x}}`, `"-rf"`, true},
		{`rm "{{x}}"`, `"-rf"`, true},
		{`rm '{{x}}'`, `"--recursive"`, true},
		{`rm {{x}}a`, `"-r"`, true},
		{`rm a {{x}}`, `["b", "-rf"]`, true},
		{`if true; then cat <(git log {{x}}); fi`, `"--output=y"`, true},
		{`cp -- {{x}} b`, `"-rf"`, false},
		{`cp a; rm -- a; cp {{x}} b`, `"-rf"`, true},
		{`git log --author={{x}}`, `"-rf"`, false},
		{`cat a{{x}}`, `"-rf"`, false},
		{`V={{x}} env`, `"-rf"`, false},
		{`cat > {{x}}`, `"-rf"`, false},
		{`cat {{x}}`, `"-"`, false},
		{`cat {{x}}`, `"a-b"`, false},
		{`cat {{x}}`, `-5`, true},
	} {
		tool, err := CustomTool(Options{}, Custom{Name: "mine", Command: c.command, Schema: map[string]any{"properties": map[string]any{"x": map[string]any{}}}})
		if err != nil {
			t.Errorf("%s: %v", c.command, err)
			continue
		}
		_, err = tool.Plan(t.Context(), tools.Call{Roots: []string{t.TempDir()}, Arguments: json.RawMessage(`{"x": ` + c.args + `}`)})
		if (err != nil) != c.refused {
			t.Errorf("%s with %s: %v", c.command, c.args, err)
		}
	}
}

// The command line of a custom tool is judged with its arguments in it. The plan says whether it
// writes.
func TestCustomToolIsJudgedAsACommand(t *testing.T) {
	posix(t)
	for command, writes := range map[string]bool{`cat {{x}}`: false, `cat "{{x}}"`: false, `cat '{{x}}'`: false, `cat -- "c"'{{x}}'`: false, `echo {{x}} > "{{x}}"`: true} {
		tool, err := CustomTool(Options{}, Custom{Name: "mine", Command: command, Schema: map[string]any{"properties": map[string]any{"x": map[string]any{"type": "string"}}}})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := tool.Plan(t.Context(), tools.Call{Roots: []string{t.TempDir()}, Arguments: json.RawMessage(`{"x": "a b"}`)})
		if err != nil || plan.Command == nil {
			t.Errorf("%s: %+v, %v", command, plan, err)
			continue
		}
		program := plan.Command.Program
		last := program.Commands[len(program.Commands)-1]
		if writes && (len(program.Writes) != 1 || program.Writes[0] != "a b") {
			t.Errorf("%s: %+v", command, program)
		}
		if !strings.Contains(" "+strings.Join(last.Args, "|")+"|", "a b|") || len(program.Commands) != 1 {
			t.Errorf("%s: %q is %+v", command, plan.Command.Text, last)
		}
	}
}

// A tool that cannot be served safely is refused when it is configured.
func TestCustomToolRefused(t *testing.T) {
	posix(t)
	schema := map[string]any{"properties": map[string]any{"x": map[string]any{"type": "string"}}}
	for _, c := range []Custom{
		{Name: "", Command: "true"},
		{Name: "a b", Command: "true"},
		{Name: "a", Command: " "},
		{Name: "a", Command: "echo {{y}}", Schema: schema},
		{Name: "a", Command: "echo 'unclosed", Schema: schema},
		{Name: "a", Command: `sh -c "echo {{x}}"`, Schema: schema},
		{Name: "a", Command: `bash -lc 'echo {{x}}'`, Schema: schema},
		{Name: "a", Command: `sudo /bin/sh -c {{x}}`, Schema: schema},
		{Name: "a", Command: `python3 -c "print('{{x}}')"`, Schema: schema},
		{Name: "a", Command: `awk {{x}} file`, Schema: schema},
		{Name: "a", Command: `sed -e {{x}} file`, Schema: schema},
		{Name: "a", Command: `eval echo {{x}}`, Schema: schema},
		{Name: "a", Command: `ssh host cat {{x}}`, Schema: schema},
		{Name: "a", Command: `echo $(({{x}}))`, Schema: schema},
		{Name: "a", Command: `echo ${V:-{{x}}}`, Schema: schema},
		{Name: "a", Command: `[[ {{x}} -eq 1 ]]`, Schema: schema},
		{Name: "a", Command: "cat <<EOF\n{{x}}\nEOF", Schema: schema},
		{Name: "a", Command: `echo $'{{x}}'`, Schema: schema},
		{Name: "a", Command: `f{{x}}() { true; }`, Schema: schema},
		{Name: "a", Command: `echo # {{x}}`, Schema: schema},
		{Name: "a", Command: `{{x}} --version`, Schema: schema},
		{Name: "a", Command: `true && "{{x}}"`, Schema: schema},
		{Name: "a", Command: "true", Schema: map[string]any{"properties": 7}},
	} {
		if _, err := CustomTool(Options{}, c); err == nil {
			t.Errorf("%q is accepted", c.Command)
		}
	}
	// An argument does not determine which program runs, and the programs that run others get arguments
	// otherwise.
	for _, command := range strings.Split(strings.TrimSpace(`
timeout 5 {{x}} f
timeout -s KILL 5 "{{x}}"
env {{x}}
env A=1 {{x}}
env -S {{x}}
env -S 'rm {{x}}'
nice {{x}}
nice -n 5 {{x}}
nohup '{{x}}'
setsid {{x}}
stdbuf -o0 {{x}}
time {{x}}
ionice -c 3 {{x}}
sudo {{x}}
sudo -u root bin/{{x}}
doas {{x}}
command {{x}}
builtin {{x}}
exec {{x}}
timeout 5 env nice {{x}}
ls | xargs {{x}}
ls | xargs -0 -n 1 {{x}} -f
find . -exec {{x}} {} \;
find . -name a -execdir '{{x}}' {} +
find . -ok {{x}} \;
tar -xf a --to-command={{x}}
tar -xf a --to-command {{x}}
tar -I {{x}} -xf a
tar xfI a {{x}}
rsync -e {{x}} a b
git -c {{x}} log
git -c core.pager={{x}} log
git difftool -x {{x}}
git rebase -x {{x}}
go test -exec {{x}} ./...
flock f {{x}}
chroot / {{x}}
strace {{x}}
taskset 1 {{x}}
busybox {{x}}
p={{x}}; $p f
p={{x}}; timeout 5 $p
echo {{x}} | sh
bash <<< {{x}}
sh < {{x}}
cat {{x}} | python3 -
if true; then timeout 5 {{x}}; fi
echo $(timeout 5 {{x}})`), "\n") {
		if _, err := CustomTool(Options{}, Custom{Name: "a", Command: command, Schema: schema}); err == nil {
			t.Errorf("%q is accepted", command)
		}
	}
	for _, command := range strings.Split(strings.TrimSpace(`
timeout 5 grep {{x}} f
timeout {{x}} make
env A={{x}} make
env -u A make {{x}}
nice -n {{x}} make
find {{x}} -name a -exec wc -l {} +
find . -name {{x}} -exec wc -l {} +
find {{x}} -type f | xargs wc -l
tar -xf {{x}}
tar -I zstd -xf {{x}}
git log --author={{x}}
git -c core.pager=cat log -- {{x}}
git commit -m {{x}}
"$HOME/bin/tool" {{x}}
p={{x}}; make "$p"
python3 script.py {{x}}
python3 {{x}}
sh script.sh {{x}}
sh -c 'echo "$1"' name {{x}}
go test -run {{x}} ./...
docker run image {{x}}
curl -s {{x}} | python3 -m json.tool`), "\n") {
		if _, err := CustomTool(Options{}, Custom{Name: "a", Command: command, Schema: schema}); err != nil {
			t.Errorf("%q is refused: %v", command, err)
		}
	}
}
