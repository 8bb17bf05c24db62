package config

import (
	"bytes"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/pattern"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// launcher describes programs that run another program or a script that their arguments name. Each
// string is a list of words, separated by spaces.
type launcher struct {
	names       string
	commands    string // subcommands that precede the script or command
	values      string // options whose value is not run
	loads       string // options whose file is run, too
	script      string // options with the file to run; the rest are its arguments
	code        string // options with the program text itself, so that no file follows
	lines       bool   // the program text is a command line
	runs        bool   // it runs a command, not a script
	optionsOnly bool   // only options name the file to run
}

func launchers() []launcher {
	node := launcher{
		names: "node nodejs tsx ts-node", code: "-e --eval -p --print", loads: "-r --require --import --loader --experimental-loader",
		values: "-C --conditions --env-file --env-file-if-exists --title --input-type --icu-data-dir --openssl-config --tsconfig -P --project --watch-path --inspect-port",
	}
	return []launcher{
		node,
		{names: "sh bash zsh dash ksh fish ash busybox . source", commands: "sh ash", values: "-o +o -O +O", loads: "--rcfile --init-file", code: "-c", lines: true},
		{names: "cmd", code: "/c /k /C /K", lines: true},
		{names: "powershell pwsh", values: "-executionpolicy -ExecutionPolicy -ep -windowstyle -WindowStyle -workingdirectory -WorkingDirectory", script: "-file -File -f", code: "-command -Command -c", lines: true},
		{names: "python pythonw pypy py", values: "-W -X --check-hash-based-pycs", code: "-c"},
		{names: "deno", commands: "run serve", values: "-c --config --import-map --env-file --lock", loads: "--preload", code: "eval"},
		{names: "bun", commands: "run x", values: "-c --config --env-file --cwd", loads: "-r --preload", code: "-e --eval"},
		{names: "ruby jruby", values: "-I -C -E", loads: "-r", code: "-e"},
		{names: "perl", values: "-I", code: "-e -E"},
		{names: "php", values: "-c -d -t -z", script: "-f --file", code: "-r"},
		{names: "lua luajit", loads: "-l", code: "-e"},
		{names: "java", script: "-jar", loads: "-cp -classpath --class-path -p --module-path", values: "--add-modules -m --module"},
		{names: "go", commands: "run", values: "-C -tags -ldflags -exec"},
		{names: "dotnet", commands: "run exec", values: "--project -c -f --configuration --framework"},
		{names: "bb clojure clj", values: "-Sdeps -m --main -M -X -A", loads: "-cp --classpath -i --init", script: "-f --file", code: "-e --eval"},
		{names: "emacs", script: "--script", loads: "-l --load", code: "--eval", optionsOnly: true},
		{names: "julia rscript elixir mix erl escript swift kotlin kotlinc scala groovy guile racket sbcl janet tclsh wish expect osascript gjs qjs nu xonsh mono wasmtime wasmer wine swipl octave crystal nim vite-node esno ts-node-esm", values: "-L --project --manifest", code: "-e --eval"},
		{names: "awk gawk mawk", values: "-v -F", loads: "-f --file", optionsOnly: true},
		{names: "make gmake just", values: "-C --directory -j", loads: "-f --file --makefile --justfile", optionsOnly: true},
		{names: "docker podman docker-compose podman-compose", loads: "-f --file", optionsOnly: true},
		{names: "env", values: "-u --unset -C --chdir", code: "-S --split-string", lines: true, runs: true},
		{names: "sudo doas", values: "-u -g -h -p -C -D --user --group --chdir", runs: true},
		{names: "exec command builtin nohup time setsid xargs caffeinate", runs: true},
		{names: "nice ionice stdbuf timeout", values: "-n -c -p -i -o -e -k -s --adjustment --signal --kill-after", runs: true},
		{names: "npx bunx pnpx npm pnpm yarn", commands: "exec x dlx --", values: "-p --package --prefix --dir --cwd -w --workspace --filter", code: "-c --call", lines: true, runs: true},
		{
			names: "uv uvx pipx poetry pdm hatch rye pipenv conda mamba micromamba mise direnv nix-shell", commands: "tool run exec x --", runs: true,
			values: "--directory --project --with --with-editable --with-requirements --from --python -p --extra --group --index --index-url --env-file --config-file -C -n --name --prefix --spec",
		},
	}
}

// launcherNamed returns the launcher for a program's path.
func launcherNamed(program string) (launcher, bool) {
	name := strings.ToLower(filepath.Base(filepath.FromSlash(program)))
	for _, suffix := range []string{".exe", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, suffix)
	}
	if name != "." {
		name = strings.TrimRight(name, "0123456789.-") // python3.12
	}
	for _, l := range launchers() {
		if slices.Contains(strings.Fields(l.names), name) {
			return l, true
		}
	}
	return launcher{}, false
}

// assignment matches a variable assignment before a command. duration matches the argument of commands
// such as timeout, which precedes the command that they run.
var (
	assignment = pattern.Lazy(`^[A-Za-z_]\w*=`)
	duration   = pattern.Lazy(`^[0-9.]+[smhd]?$`)
)

// addCommand adds the files that a command runs: its program, the script of an interpreter, and
// arguments that are executables. It omits files that the command only processes, because those
// change.
func (n *fileCollector) addCommand(words []string) {
	for len(words) > 0 && (assignment().MatchString(words[0]) || words[0] == "" || words[0] == "!") {
		words = words[1:]
	}
	if len(words) == 0 {
		return
	}
	n.addFile(words[0])
	l, known := launcherNamed(words[0])
	if !known {
		n.addExecutables(words[1:])
		return
	}
	has := func(list, word string) bool { return slices.Contains(strings.Fields(list), word) }
	for i := 1; i < len(words); i++ {
		word := words[i]
		option, value, attached := strings.Cut(word, "=")
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch {
		case word == "<":
		case has(l.code, word), l.lines && !l.runs && groupedC().MatchString(word):
			if l.lines {
				n.addCommandLine(next)
				i++
			}
			n.addExecutables(words[min(i+1, len(words)):])
			return
		case has(l.script, word):
			n.addPathList(next)
			n.addExecutables(words[min(i+2, len(words)):])
			return
		case attached && has(l.loads, option):
			n.addPathList(value)
		case has(l.loads, word):
			n.addPathList(next)
			i++
		case word == "-m" && strings.HasPrefix(l.names, "python"):
			n.addScript(filepath.FromSlash(strings.ReplaceAll(next, ".", "/")))
			n.addExecutables(words[min(i+2, len(words)):])
			return
		case has(l.values, word):
			i++
		case has(l.commands, word):
		case strings.HasPrefix(word, "-") && word != "-" || l.runs && (assignment().MatchString(word) || duration().MatchString(word)):
		case l.optionsOnly:
			n.addExecutables(words[i : i+1])
		case l.runs:
			n.addCommand(words[i:])
			return
		default:
			n.addScript(word)
			n.addExecutables(words[i+1:])
			return
		}
	}
}

// groupedC matches the shell option -c combined with others: -lc, -ec.
var groupedC = pattern.Lazy(`^-[a-zA-Z]*c$`)

// addCommandLine adds the files that a command line runs.
func (n *fileCollector) addCommandLine(text string) {
	for _, command := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(";|&()`{}\n", r) }) {
		var words []string
		for _, word := range strings.Fields(command) {
			words = append(words, strings.Trim(word, `"'$`))
		}
		n.addCommand(words)
	}
}

// addScript adds a file that an interpreter runs. As interpreters do, it also looks for the path with
// the suffix of a module, and for the main file of a folder.
func (n *fileCollector) addScript(path string) {
	if path == "" {
		return
	}
	for _, suffix := range []string{"", ".js", ".py", "/index.js", "/__main__.py", "/__init__.py"} {
		if n.addFile(path + filepath.FromSlash(suffix)) {
			return
		}
	}
}

// addPathList adds the files of a list in the format of PATH.
func (n *fileCollector) addPathList(list string) {
	for _, path := range filepath.SplitList(list) {
		n.addScript(path)
	}
}

// addExecutables adds the executables among arguments.
func (n *fileCollector) addExecutables(words []string) {
	for _, word := range words {
		for _, path := range append(strings.Fields(word), word) {
			if _, value, ok := strings.Cut(path, "="); ok {
				path = value
			}
			if at, ok := n.find(path); ok && executable(at) {
				n.add(at)
			}
		}
	}
}

// executable reports whether a file is a program: by its first bytes, on Windows also by its extension.
// The executable bit alone is not enough, because on some mounts all files have it.
func executable(path string) bool {
	f, err := safeio.Open("", path)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false
	}
	begin := make([]byte, 4)
	size, _ := io.ReadFull(f, begin)
	begin = begin[:size]
	for _, magic := range []string{"\x7fELF", "MZ", "\xfe\xed\xfa", "\xcf\xfa\xed\xfe", "\xce\xfa\xed\xfe", "\xca\xfe\xba\xbe", "\x00asm"} {
		if bytes.HasPrefix(begin, []byte(magic)) {
			return true
		}
	}
	if runtime.GOOS == "windows" {
		return slices.Contains([]string{".bat", ".cmd", ".ps1", ".com"}, strings.ToLower(filepath.Ext(path)))
	}
	return bytes.HasPrefix(begin, []byte("#!")) && info.Mode()&0o111 != 0
}

// addEnvironment adds the files that programs run because of environment variables, such as LD_PRELOAD.
func (n *fileCollector) addEnvironment(env map[string]any) {
	for _, key := range sortedKeys(env) {
		text, _ := env[key].(string)
		switch name := strings.ToUpper(key); {
		case name == "NODE_OPTIONS":
			n.addCommand(append([]string{"node"}, strings.Fields(text)...))
		case name == "PERL5OPT" || name == "RUBYOPT":
			n.addCommand(append([]string{"ruby"}, strings.Fields(text)...))
		case strings.HasPrefix(name, "JAVA_TOOL_OPTIONS") || strings.HasSuffix(name, "JAVA_OPTIONS"):
			n.addCommand(append([]string{"java"}, strings.Fields(text)...))
		case name == "BASH_ENV" || name == "ENV" || name == "PYTHONSTARTUP" || name == "LD_PRELOAD" || name == "LD_AUDIT" || name == "DYLD_INSERT_LIBRARIES":
			for _, path := range strings.FieldsFunc(text, func(r rune) bool { return r == ':' || r == ' ' }) {
				n.addFile(path)
			}
		case slices.ContainsFunc([]string{"COMMAND", "CMD", "EDITOR", "PAGER", "SHELL", "ASKPASS"}, func(s string) bool { return strings.HasSuffix(name, s) }):
			n.addText(text)
		default:
			n.addExecutables([]string{text})
		}
	}
}
