package cmdline

import (
	"slices"
	"strings"
)

// keyRule lists the arguments with which a command can be remembered. Any other argument may make the
// program run something else, so such a command is not remembered.
type keyRule struct {
	known    bool
	letters  string // options of one letter, alone or in groups
	options  string // other options, without "=" and value
	operands string // the only operands that are allowed; empty: any; "-": none
	remote   bool   // the first operand is the name of a git remote
	forwards bool   // unknown options are passed to a script of the project
}

// keyRuleFor returns what can be remembered in addition to commands that only read: programs with
// their subcommands that run no code from their arguments. Other programs are never remembered.
func keyRuleFor(name string) (keyRule, bool) {
	for _, table := range []func(string) keyRule{fileKeys, gitKeys, goKeys, projectKeys, checkerKeys, listingKeys} {
		if k := table(name); k.known {
			return k, true
		}
	}
	return keyRule{}, false
}

// fileKeys are programs that change the files which their arguments name.
func fileKeys(name string) keyRule {
	switch name {
	case "mkdir":
		return keyRule{known: true, letters: "pv", options: "--parents --verbose"}
	case "exit":
		return keyRule{known: true}
	case "rmdir":
		return keyRule{known: true, letters: "pv"}
	case "touch":
		return keyRule{known: true, letters: "acm"}
	case "rm":
		return keyRule{known: true, letters: "fv"}
	case "ln":
		return keyRule{known: true, letters: "sfnrv"}
	case "chmod":
		return keyRule{known: true, letters: "Rcfv"}
	case "cp":
		return keyRule{known: true, letters: "afinprRuv", options: "--recursive --archive"}
	case "mv":
		return keyRule{known: true, letters: "finuv"}
	case "tar":
		return keyRule{known: true, letters: "cxtzjJvfpkC", options: "--exclude --strip-components"}
	}
	return keyRule{}
}

func gitKeys(name string) keyRule {
	sub, isGit := strings.CutPrefix(name, "git ")
	if !isGit {
		return keyRule{}
	}
	switch sub {
	case "add":
		return keyRule{known: true, letters: "AufnvN", options: "--all --update --force --dry-run --verbose --intent-to-add --"}
	case "mv":
		return keyRule{known: true, letters: "knv"}
	case "rm":
		return keyRule{known: true, letters: "rqn", options: "--cached --quiet --"}
	case "commit":
		return keyRule{known: true, letters: "amqvsn", options: "--all --message --quiet --verbose --amend --no-edit --signoff --no-verify --allow-empty --author --date --"}
	case "checkout":
		return keyRule{known: true, letters: "bqt", options: "--quiet --track --detach --"}
	case "switch":
		return keyRule{known: true, letters: "cqtd", options: "--create --quiet --track --detach"}
	case "branch":
		return keyRule{known: true, letters: "arvm", options: "--all --list --move --show-current --set-upstream-to"}
	case "tag":
		return keyRule{known: true, letters: "almn", options: "--annotate --list --message"}
	case "merge":
		return keyRule{known: true, letters: "q", options: "--quiet --no-edit --ff --ff-only --no-ff --squash --abort"}
	case "revert":
		return keyRule{known: true, letters: "n", options: "--no-edit --no-commit --abort"}
	case "cherry-pick":
		return keyRule{known: true, letters: "xn", options: "--no-commit --abort"}
	case "stash":
		return keyRule{known: true, letters: "ukqm", options: "--include-untracked --keep-index --quiet --message --index"}
	case "reset":
		return keyRule{known: true, letters: "qN", options: "--soft --mixed --quiet --"}
	case "restore":
		return keyRule{known: true, letters: "SWq", options: "--staged --worktree --quiet --"}
	case "init":
		return keyRule{known: true, letters: "qb", options: "--quiet --initial-branch"}
	case "push":
		return keyRule{known: true, remote: true, letters: "uqvn", options: "--set-upstream --tags --follow-tags --dry-run --quiet --verbose --porcelain"}
	case "pull":
		return keyRule{known: true, remote: true, letters: "qvpt", options: "--rebase --no-rebase --ff --ff-only --no-ff --prune --tags --quiet --verbose --autostash"}
	case "fetch":
		return keyRule{known: true, remote: true, letters: "qvpta", options: "--all --prune --tags --quiet --verbose --depth --unshallow"}
	}
	return keyRule{}
}

func goKeys(name string) keyRule {
	switch name {
	case "go test":
		return keyRule{known: true, options: "-v -race -run -skip -count -short -timeout -cover -covermode -coverprofile -bench -benchmem -benchtime -cpu -parallel -failfast -json -list -shuffle -tags -trimpath -p -n -x"}
	case "go build":
		return keyRule{known: true, options: "-v -race -tags -trimpath -o -p -n -x"}
	case "go vet":
		return keyRule{known: true, options: "-v -tags -n -x -json"}
	case "go list":
		return keyRule{known: true, options: "-m -json -f -deps -test -e -u -tags"}
	case "go fmt":
		return keyRule{known: true, options: "-n -x"}
	case "go mod tidy", "go mod download", "go mod why":
		return keyRule{known: true, options: "-v -x -json -m"}
	case "go version", "go mod verify", "go mod graph":
		return keyRule{known: true}
	case "gofmt":
		return keyRule{known: true, options: "-l -d -w -s -e"}
	}
	return keyRule{}
}

// projectKeys are programs that build and test the project in which they run.
func projectKeys(name string) keyRule {
	switch name {
	case "cargo build", "cargo test", "cargo check", "cargo clippy", "cargo fmt", "cargo doc", "cargo bench", "cargo tree", "cargo metadata":
		return keyRule{known: true, letters: "vqpj", options: "--release --workspace --all --all-features --no-default-features --features --lib --bins --bin --tests --test --doc --examples --example --all-targets " +
			"--package --exclude --verbose --quiet --offline --locked --frozen --no-run --no-fail-fast --no-deps --message-format --check --nocapture --test-threads --ignored -- -D -W"}
	case "npm test", "npm start", "npm run *", "pnpm test", "pnpm start", "pnpm run *", "yarn test", "yarn start", "yarn run *":
		return keyRule{known: true, forwards: true}
	case "npm ci", "npm install", "pnpm install", "yarn install", "bun install", "uv sync", "uv lock", "poetry install", "poetry lock", "composer install", "bundle install":
		return keyRule{
			known: true, letters: "qv", operands: "-",
			options: "--frozen-lockfile --immutable --offline --prefer-offline --ignore-scripts --no-audit --no-fund --locked --frozen --all-extras --dev --no-dev --quiet --verbose --no-interaction",
		}
	case "mvn":
		return keyRule{known: true, letters: "qBoeU", options: "-ntp -DskipTests -Dtest", operands: "clean validate compile test-compile test package verify"}
	case "gradle":
		return keyRule{known: true, letters: "qis", options: "--offline --no-daemon --info --stacktrace --console --tests", operands: "clean classes compileJava jar assemble build check test lint"}
	case "dotnet build", "dotnet test":
		return keyRule{known: true, letters: "cvf", options: "--configuration --no-restore --no-build --filter --framework --verbosity --nologo"}
	case "swift build", "swift test", "mix test", "mix compile", "mix format", "dart analyze", "dart format", "dart test", "flutter analyze", "flutter test", "deno fmt", "deno lint", "deno check", "bundle check", "bundle list":
		return keyRule{known: true, options: "--verbose --filter --parallel --trace --failed --only --check --check-formatted"}
	}
	return keyRule{}
}

// checkerKeys are programs that test, check and format files.
func checkerKeys(name string) keyRule {
	switch name {
	case "pytest":
		return keyRule{known: true, letters: "qvxskmnrl", options: "--lf --ff --co --tb --maxfail --durations --no-header --disable-warnings --cov --cov-report --collect-only --last-failed --failed-first --exitfirst"}
	case "ruff check", "ruff format":
		return keyRule{known: true, letters: "qv", options: "--fix --check --diff --select --ignore --statistics"}
	case "black":
		return keyRule{known: true, letters: "qvl", options: "--check --diff --quiet --line-length"}
	case "mypy":
		return keyRule{known: true, letters: "pm", options: "--strict --ignore-missing-imports --show-error-codes --no-error-summary"}
	case "flake8":
		return keyRule{known: true, options: "--select --ignore --max-line-length --count"}
	case "tsc":
		return keyRule{known: true, letters: "pb", options: "--noEmit --project --build --pretty"}
	case "eslint":
		return keyRule{known: true, options: "--fix --quiet --ext --max-warnings --cache"}
	case "prettier":
		return keyRule{known: true, letters: "cwl", options: "--check --write --list-different"}
	case "rustfmt":
		return keyRule{known: true, options: "--check --edition"}
	case "shellcheck":
		return keyRule{known: true, letters: "xfSeso", options: "--severity --exclude --shell"}
	case "terraform fmt", "terraform validate":
		return keyRule{known: true, options: "-check -diff -recursive -json -no-color"}
	}
	return keyRule{}
}

// listingKeys are programs that show the state of services and package managers.
func listingKeys(name string) keyRule {
	switch name {
	case "gh pr view", "gh pr list", "gh pr status", "gh pr checks", "gh pr diff", "gh issue view", "gh issue list", "gh issue status", "gh run list", "gh run view", "gh repo view",
		"docker ps", "docker images", "docker logs", "docker inspect", "docker version", "docker info", "kubectl get", "kubectl describe", "kubectl logs", "kubectl version",
		"npm ls", "npm list", "npm outdated", "pnpm list", "pip list", "pip show", "pip freeze", "pip check", "pip3 list", "pip3 show", "pip3 freeze", "pip3 check", "uv tree", "poetry show", "poetry check",
		"systemctl status", "systemctl is-active":
		return keyRule{
			known: true, letters: "anqlofAL",
			options: "--all --filter --format --no-trunc --tail --since --follow --namespace --all-namespaces --output --selector --container --state --limit --json --repo --comments --outdated --depth --no-pager",
		}
	}
	return keyRule{}
}

// readerHasKey reports whether a program is remembered by its name, for as long as it only reads.
func readerHasKey(name string) bool {
	_, known := readerTable(name)
	return known || name == "find"
}

// scriptName reports whether a name may be that of a script of a project. Paths, and names of
// interpreters with a version, are not.
func scriptName(name string) bool {
	return plainName(name, "_:-") && !runsCode(name)
}

// findKeyRule returns the entry for the first words of a command, and how many words name it.
func findKeyRule(words []string) (rule keyRule, n int, ok bool) {
	name := strings.Join(words[:min(3, len(words))], " ")
	for n = min(3, len(words)); n > 0; n-- {
		if rule, ok = keyRuleFor(name); ok {
			return rule, n, true
		}
		name = strings.TrimSuffix(name[:len(name)-len(words[n-1])], " ")
	}
	if len(words) > 2 && words[1] == "run" && scriptName(words[2]) {
		rule, ok = keyRuleFor(words[0] + " run *")
	}
	return rule, 3, ok
}

// IsKey reports whether a key is one that commands can have.
func IsKey(key string) bool {
	words := strings.Fields(key)
	if len(words) == 0 {
		return false
	}
	if readerHasKey(key) || len(words) == 2 && words[0] == "git" && GitReads(words[1]) {
		return true
	}
	_, n, ok := findKeyRule(words)
	return ok && n == len(words)
}

// key returns the name under which a command is remembered; empty if it must not be. reads is true if
// the command only reads.
func key(words []word, reads bool) string {
	texts := make([]string, len(words))
	for i, w := range words {
		if !w.known {
			return ""
		}
		texts[i] = w.text
	}
	if reads {
		switch name := texts[0]; {
		case readerHasKey(name):
			return name
		case name == "git" && len(texts) > 1 && GitReads(texts[1]):
			return name + " " + texts[1]
		}
		return ""
	}
	rule, n, ok := findKeyRule(texts)
	if !ok || !rule.covers(words[n:], texts[0] == "tar") {
		return ""
	}
	return strings.Join(texts[:n], " ")
}

// covers reports whether a command with these arguments can be remembered. bundled is true if the
// first argument is a group of option letters without a dash.
func (k keyRule) covers(words []word, bundled bool) bool {
	operands := 0
	for i, w := range words {
		option, _, _ := strings.Cut(w.text, "=")
		letters, isOption := strings.CutPrefix(option, "-")
		switch {
		case w.mayBecomeOption() || strings.HasPrefix(w.text, "@"): // may be another option, or a file of options
			return false
		case k.forwards:
			if isOption && configuresRunner(option) {
				return false
			}
		case bundled && i == 0 && !isOption:
			if strings.Trim(w.text, k.letters) != "" {
				return false
			}
		case isOption && slices.Contains(strings.Fields(k.options), option):
		case isOption && letters != "" && strings.Trim(letters, k.letters+"0123456789") == "":
		case isOption && w.text != "-":
			return false
		case k.operands != "" && !slices.Contains(strings.Fields(k.operands), w.text):
			return false
		case k.remote && !remoteOrRef(w.text, operands):
			return false
		default:
			operands++
		}
	}
	return true
}

// remoteOrRef reports whether operand n is the plain name of a remote (n is 0) or of a ref that is
// transferred. It refuses addresses, which may belong to another account.
func remoteOrRef(text string, n int) bool {
	if n == 0 {
		return plainName(text, "_.-")
	}
	from, to, both := strings.Cut(text, ":")
	return plainName(from, "_./@-") && (!both || plainName(to, "_./-"))
}

// plainName reports whether a name begins with a letter or a digit and otherwise consists of letters,
// digits and the characters in others.
func plainName(name, others string) bool {
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || strings.IndexByte(others, c) < 0) {
			return false
		}
	}
	return name != ""
}

// configuresRunner reports whether an option, or an abbreviation of it, makes a package manager use
// another shell, interpreter, folder or configuration for a script.
func configuresRunner(option string) bool {
	if !strings.HasPrefix(option, "--") {
		return strings.HasPrefix(option, "-C") || strings.HasPrefix(option, "-c")
	}
	name := strings.ToLower(strings.TrimPrefix(option, "--"))
	return strings.HasPrefix(name, "config.") || name != "" && slices.ContainsFunc([]string{
		"script-shell", "shell", "node-options", "node-version", "use-node-version", "prefix", "userconfig", "globalconfig", "location", "dir", "cwd", "use-yarnrc", "require", "call", "config",
	}, func(known string) bool { return strings.HasPrefix(known, name) || strings.HasPrefix(name, known) })
}
