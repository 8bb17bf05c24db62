package cmdline

// gitReader returns how a subcommand of git parses its arguments. Older versions of git do not
// accept some abbreviations and some separate values of options. So abbreviations are refused, and
// so are separate values that begin with a dash, which an older git would take for options.
func gitReader(sub string) (p program, known bool) {
	p, known = gitTable(sub)
	p.noAbbreviations, p.noDash = true, true
	return p, known
}

// gitTable returns the options with which a subcommand only reads. It does not know subcommands that
// always change something.
func gitTable(sub string) (p program, known bool) {
	switch sub {
	case "log", "show", "whatchanged", "rev-list", "diff-tree", "reflog":
		return program{options: gitHistory + gitDiff + "--count --timestamp --objects --objects-edge --use-bitmap-index --disk-usage[=HOW] --header --no-commit-header --commit-header --always --root --no-commit-id --stdin -v"}, true
	case "shortlog":
		return program{options: "-n,--numbered -s,--summary -e,--email --group=TYPE -w[=WIDTH] -c,--committer " + gitHistory + gitDiff}, true
	case "diff", "diff-index", "diff-files":
		return program{options: "--cached,--staged --no-index --merge-base -m -0 -1,--base -2,--ours -3,--theirs -q -c --cc " + gitDiff}, true
	case "status":
		return program{options: `-s,--short -b,--branch --show-stash --porcelain[=VERSION] --long -v,--verbose -u,--untracked-files[=MODE] --ignore-submodules[=WHEN] --ignored[=MODE] -z --column[=OPTIONS] --no-column
			--ahead-behind --no-ahead-behind --renames --no-renames -M,--find-renames[=N] --no-show-stash`}, true
	case "blame", "annotate":
		return program{options: `-b --root --show-stats -L=RANGE -l -t -S=FILE --reverse -p,--porcelain --line-porcelain --incremental --encoding=NAME --first-parent --date=FORMAT -M[=N] -C[=N] -c --score-debug
			-f,--show-name -n,--show-number -s -e,--show-email -w --abbrev=N --ignore-rev=REV --ignore-revs-file=FILE --color-lines --color-by-age --progress --no-progress --minimal --since=DATE !--contents=FILE`}, true
	case "grep":
		return program{firstIsText: true, patternOptions: "-e -f", options: `--cached --untracked --exclude-standard --no-exclude-standard -a,--text !--textconv --no-textconv -i,--ignore-case -I --max-depth=N -r,--recursive --no-recursive
			-w,--word-regexp -v,--invert-match -h -H --full-name -E,--extended-regexp -G,--basic-regexp -P,--perl-regexp -F,--fixed-strings -n,--line-number --column -l,--files-with-matches,--name-only
			-L,--files-without-match !-O,--open-files-in-pager[=PAGER] !--recurse-submodules -z,--null -o,--only-matching -c,--count --color[=WHEN] --no-color --break --heading -p,--show-function -NUM
			-C,--context=N -A,--after-context=N -B,--before-context=N -W,--function-context -m,--max-count=N --threads=N -f=FILE -e=PATTERN --and --or --not --all-match -q,--quiet`}, true
	case "config":
		return program{operandsAreText: true, check: checkGitConfig, options: "--get --get-all --local"}, true
	case "ls-files":
		return program{options: `-c,--cached -d,--deleted -o,--others -i,--ignored -s,--stage -u,--unmerged -k,--killed -m,--modified --resolve-undo -z --directory --no-empty-directory --empty-directory --eol --deduplicate
			-x,--exclude=PATTERN -X,--exclude-from=FILE --exclude-per-directory=NAME --exclude-standard --error-unmatch --with-tree=TREE -t -v -f --full-name !--recurse-submodules --abbrev[=N] --debug
			--sparse --format=FORMAT`}, true
	case "ls-tree":
		return program{options: "-d -r -t -l,--long -z --name-only --name-status --object-only --full-name --full-tree --abbrev[=N] --format=FORMAT"}, true
	case "describe":
		return program{options: `!--dirty[=MARK] !--broken[=MARK] --all --tags --contains --abbrev[=N] --candidates=N --exact-match --debug --long --match=PATTERN --exclude=PATTERN --always --first-parent`}, true
	case "rev-parse":
		return program{options: `--default=ARG --revs-only --no-revs --flags --no-flags --verify -q,--quiet --sq --short[=N] --not --abbrev-ref[=MODE] --symbolic --symbolic-full-name --all --branches[=P] --tags[=P] --remotes[=P]
			--glob=P --exclude=P --disambiguate=P --local-env-vars --path-format=FORMAT --git-dir --git-common-dir --absolute-git-dir --git-path=NAME --show-toplevel --show-superproject-working-tree
			--shared-index-path --is-inside-git-dir --is-inside-work-tree --is-bare-repository --is-shallow-repository --show-cdup --show-prefix --show-object-format[=WHAT] --since=DATE --until=DATE`}, true
	case "merge-base":
		return program{options: "-a,--all --octopus --independent --is-ancestor --fork-point"}, true
	case "name-rev":
		return program{options: "--tags --refs=P --exclude=P --all --name-only --no-undefined --always --stdin --annotate-stdin"}, true
	case "branch":
		return program{operandsAreText: true, check: checkGitList, options: `-a,--all -r,--remotes -v,-vv,--verbose -q,--quiet -l --list --show-current --color[=WHEN] --no-color -i,--ignore-case --column[=OPTIONS] --no-column --sort=KEY --format=FORMAT
			--abbrev=N --no-abbrev --contains=C --no-contains=C --merged=C --no-merged=C --points-at=O`}, true
	case "tag":
		return program{operandsAreText: true, check: checkGitList, options: `--list,-l -n[=N] --color[=WHEN] -i,--ignore-case --column[=OPTIONS] --no-column --sort=KEY --format=FORMAT --contains=C --no-contains=C --merged=C --no-merged=C
			--points-at=O`}, true
	case "remote":
		return program{options: "-v,--verbose --all --push"}, true
	case "stash":
		return program{options: gitHistory + gitDiff}, true
	case "worktree":
		return program{options: "--porcelain -v,--verbose -z"}, true
	case "cat-file":
		return program{options: "-t -s -e -p !--textconv !--filters --batch[=FORMAT] --batch-check[=FORMAT] --batch-all-objects --buffer --unordered -z --allow-unknown-type"}, true
	case "for-each-ref":
		return program{options: `--count=N -s,--shell -p,--perl --python --tcl --format=FORMAT --color[=WHEN] --sort=KEY --points-at=O --merged=C --no-merged=C --contains=C --no-contains=C --ignore-case --exclude=P
			--omit-empty`}, true
	case "show-ref":
		return program{options: "--head --heads --branches --tags -d,--dereference -s,--hash[=N] --verify --exists -q,--quiet --abbrev[=N]"}, true
	case "count-objects":
		return program{options: "-v,--verbose -H,--human-readable"}, true
	case "check-ignore":
		return program{options: "-q,--quiet -v,--verbose --stdin -z -n,--non-matching --no-index"}, true
	case "cherry":
		return program{options: "-v,--verbose --abbrev[=N]"}, true
	case "symbolic-ref":
		return program{options: "--short -q,--quiet"}, true
	case "show-branch":
		return program{options: "-a,--all -r,--remotes"}, true
	case "var", "version", "--version":
		return program{options: "--build-options"}, true
	}
	return program{}, false
}

// gitHistory has the options that select commits and format them, without their changes.
const gitHistory = `-NUM -n,--max-count=N --skip=N --since=DATE --after=DATE --until=DATE --before=DATE --since-as-filter=DATE --max-age=N --min-age=N --author=P --committer=P --grep-reflog=P --grep=P --all-match
	--invert-grep -i,--regexp-ignore-case --basic-regexp -E,--extended-regexp -F,--fixed-strings -P,--perl-regexp --remove-empty --merges --no-merges --min-parents=N --max-parents=N --no-min-parents --no-max-parents
	--first-parent --exclude-first-parent-only --not --all --branches[=P] --tags[=P] --remotes[=P] --glob=P --exclude=P --reflog --single-worktree --ignore-missing --cherry-mark --cherry-pick --left-only --right-only
	--cherry -g,--walk-reflogs --merge --boundary --simplify-by-decoration --show-pulls --full-history --dense --sparse --simplify-merges --ancestry-path[=C] --date-order --author-date-order --topo-order --reverse
	--no-walk[=HOW] --do-walk --pretty[=FORMAT] --format=FORMAT --abbrev-commit --no-abbrev-commit --oneline --encoding=NAME --expand-tabs[=N] --no-expand-tabs --notes[=REF] --no-notes --relative-date --date=FORMAT --parents
	--children --left-right --graph --no-graph --show-linear-break[=TEXT] --decorate[=FORMAT] --no-decorate --decorate-refs=P --decorate-refs-exclude=P --clear-decorations --source --mailmap --use-mailmap --no-mailmap
	--no-use-mailmap --log-size -q,--quiet --color[=WHEN] --no-color --abbrev[=N] --no-abbrev !--show-signature `

// gitDiff has the options that show changes, for which git reads the contents of files.
const gitDiff = ` -p,-u,--patch -s,--no-patch -U,--unified=N --raw --patch-with-raw --indent-heuristic --no-indent-heuristic --minimal --patience --histogram --anchored=TEXT --diff-algorithm=NAME --stat[=WIDTH] --stat-width=N
	--stat-name-width=N --stat-count=N --stat-graph-width=N --compact-summary --no-compact-summary --numstat --shortstat -X,--dirstat[=P] --cumulative --dirstat-by-file[=P] --summary --patch-with-stat -z --name-only
	--name-status --color[=WHEN] --no-color --color-moved[=MODE] --no-color-moved --color-moved-ws=MODE --no-color-moved-ws --word-diff[=MODE] --word-diff-regex=REGEX --color-words[=REGEX] --no-renames --rename-empty
	--no-rename-empty --check --ws-error-highlight=KIND --full-index --binary --abbrev[=N] --no-abbrev -B,--break-rewrites[=N] -M,--find-renames[=N] -C,--find-copies[=N] --find-copies-harder -D,--irreversible-delete -l=N
	--diff-filter=KINDS -S=TEXT -G=REGEX --find-object=ID --pickaxe-all --pickaxe-regex !-O=FILE -R --relative[=PATH] --no-relative -a,--text --ignore-cr-at-eol --ignore-space-at-eol -b,--ignore-space-change
	-w,--ignore-all-space --ignore-blank-lines -I,--ignore-matching-lines=REGEX --inter-hunk-context=N -W,--function-context --no-function-context --exit-code --quiet !--ext-diff --no-ext-diff !--textconv --no-textconv
	--ignore-submodules[=WHEN] --src-prefix=TEXT --dst-prefix=TEXT --no-prefix --default-prefix --line-prefix=TEXT --ita-invisible-in-index --ita-visible-in-index >--output=FILE --output-indicator-new=C
	--output-indicator-old=C --output-indicator-context=C !--submodule[=FORMAT] --rotate-to=PATH --skip-to=PATH -m -c --cc -r -t -L=RANGE --follow --full-diff --combined-all-paths --no-diff-merges !--diff-merges=FORMAT
	!--remerge-diff `
