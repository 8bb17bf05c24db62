package cmdline

import (
	"strings"
)

// searchers are programs that look for something in files.
func searchers(name string) (p program, known bool) {
	switch name {
	case "grep", "egrep", "fgrep":
		return program{safeForAnyArgs: true, firstIsText: true, patternOptions: "-e -f", options: `-NUM -E,--extended-regexp -F,--fixed-strings -G,--basic-regexp -P,--perl-regexp -e,--regexp=PATTERN -f,--file=FILE -i,--ignore-case -y --no-ignore-case
			-v,--invert-match -w,--word-regexp -x,--line-regexp -c,--count --color[=WHEN] --colour[=WHEN] -L,--files-without-match -l,--files-with-matches -m,--max-count=N -o,--only-matching
			-q,--quiet,--silent -s,--no-messages -b,--byte-offset -H,--with-filename -h,--no-filename --label=TEXT -n,--line-number -T,--initial-tab -Z,--null -A,--after-context=N -B,--before-context=N
			~-C,--context=N --group-separator=TEXT --no-group-separator -a,--text --binary-files=TYPE -D,--devices=ACTION -d,--directories=ACTION --exclude=GLOB --exclude-from=FILE --exclude-dir=GLOB
			-I --include=GLOB --include-dir=GLOB -r,--recursive !-R,--dereference-recursive --line-buffered -U,--binary -u,--unix-byte-offsets -z,--null-data -V,--version --help`}, true
	case "rg":
		return program{noAbbreviations: true, noDash: true, firstIsText: true, patternOptions: "-e -f --files --type-list", options: ripgrepOptions}, true
	case "jq":
		return program{noAbbreviations: true, safeForAnyArgs: true, firstIsText: true, check: checkJq, options: `-n,--null-input -R,--raw-input -s,--slurp -c,--compact-output -r,--raw-output --raw-output0 -j,--join-output -a,--ascii-output -S,--sort-keys
			-C,--color-output -M,--monochrome-output --tab --indent=N --unbuffered --stream --stream-errors --seq !-f,--from-file !-L,--library-path=DIR -e,--exit-status --arg=NAME:TEXT --argjson=NAME:TEXT
			--slurpfile=NAME:FILE --rawfile=NAME:FILE --argfile=NAME:FILE --args --jsonargs -h,--help -V,--version --build-configuration`}, true
	case "awk": // only options that all implementations have
		return program{noAbbreviations: true, stopAtOperand: true, runsScript: true, firstIsText: true, check: checkAwk, options: "~-F=TEXT"}, true
	case "sed":
		return program{runsScript: true, firstIsText: true, patternOptions: "-e", check: checkSed, options: sedOptions}, true
	}
	return program{}, false
}

const ripgrepOptions = `-A,--after-context=N --auto-hybrid-regex --no-auto-hybrid-regex -B,--before-context=N --binary --no-binary --block-buffered --no-block-buffered -b,--byte-offset --no-byte-offset -s,--case-sensitive
	--color=WHEN --colors=SPEC --column --no-column -C,--context=N --context-separator=TEXT --no-context-separator -c,--count --count-matches --crlf --no-crlf --debug --dfa-size-limit=N -E,--encoding=NAME --no-encoding
	--engine=NAME --field-context-separator=TEXT --field-match-separator=TEXT -f,--file=FILE --files -l,--files-with-matches --files-without-match -F,--fixed-strings --no-fixed-strings !-L,--follow --no-follow
	--generate=KIND -g,--glob=GLOB --glob-case-insensitive --no-glob-case-insensitive --heading --no-heading -h,--help -.,--hidden --no-hidden !--hostname-bin=PROGRAM --hyperlink-format=FORMAT --iglob=GLOB
	-i,--ignore-case --ignore-file=FILE --ignore-file-case-insensitive --no-ignore-file-case-insensitive --include-zero --no-include-zero -v,--invert-match --no-invert-match --json --no-json --line-buffered
	--no-line-buffered -n,--line-number -N,--no-line-number -x,--line-regexp -M,--max-columns=N --max-columns-preview --no-max-columns-preview -m,--max-count=N -d,--max-depth=N --maxdepth=N --max-filesize=N --mmap
	--no-mmap -U,--multiline --no-multiline --multiline-dotall --no-multiline-dotall --no-config --no-ignore --ignore --no-ignore-dot --ignore-dot --no-ignore-exclude --ignore-exclude --no-ignore-files --ignore-files
	--no-ignore-global --ignore-global --no-ignore-messages --ignore-messages --no-ignore-parent --ignore-parent --no-ignore-vcs --ignore-vcs --no-messages --messages --no-pcre2-unicode --pcre2-unicode --no-require-git
	--require-git --no-unicode --unicode -0,--null --null-data --one-file-system --no-one-file-system -o,--only-matching --passthru --passthrough --path-separator=TEXT -P,--pcre2 --no-pcre2 --pcre2-version !--pre=PROGRAM
	!--no-pre --pre-glob=GLOB -p,--pretty -q,--quiet --regex-size-limit=N -e,--regexp=PATTERN -r,--replace=TEXT !-z,--search-zip --no-search-zip -S,--smart-case --sort=KEY --sortr=KEY --sort-files --no-sort-files
	--stats --no-stats --stop-on-nonmatch -a,--text --no-text -j,--threads=N --trace --trim --no-trim -t,--type=NAME -T,--type-not=NAME --type-add=SPEC --type-clear=NAME --type-list -u,--unrestricted -V,--version
	--vimgrep -H,--with-filename -I,--no-filename -w,--word-regexp`

const sedOptions = `-n,--quiet,--silent --debug -e,--expression=SCRIPT !-f,--file=FILE -E,-r,--regexp-extended >-i,--in-place[=SUFFIX] !-l,--line-length=N --posix -s,--separate --sandbox !--follow-symlinks
	-u,--unbuffered -z,--null-data,--zero-terminated --help --version`

// findExpression has the tests and actions of find, except those that run programs (findWords).
func findExpression() program {
	return program{singleDash: true, options: `-a -and -o -or -not -true -false -daystart -d -depth !-follow -ignore_readdir_race -noignore_readdir_race -mount -noleaf -nowarn -warn -xdev -regextype=TYPE -maxdepth=N -mindepth=N !-files0-from=FILE
		-amin=N -anewer=FILE -atime=N -cmin=N -cnewer=FILE -ctime=N -empty -executable -fstype=TYPE -gid=N -group=NAME -ilname=PATTERN -iname=PATTERN -inum=N -ipath=PATTERN -iregex=PATTERN -iwholename=PATTERN
		-links=N -lname=PATTERN -mmin=N -mtime=N -name=PATTERN -newer=FILE -nogroup -nouser -path=PATTERN -perm=MODE -readable -regex=PATTERN -samefile=FILE -size=N -type=C -uid=N -used=N -user=NAME
		-wholename=PATTERN -writable -xtype=C -context=PATTERN >-delete >-fls=FILE >-fprint=FILE >-fprint0=FILE >-fprintf=FILE:FORMAT -ls -print -print0 -printf=FORMAT -prune -quit`}
}

// checkJq refuses scripts that read the environment or other files.
func checkJq(g parsedWords) (option, why string) {
	switch {
	case g.ended: // the meaning of -- depends on the version
		return "--", "-- changes how jq reads its arguments"
	case len(g.operands) == 0:
		return "", ""
	case g.operands[0].glob || g.globValue:
		return "", "the program of jq may be the name of a file"
	}
	for _, s := range []string{"env", "ENV", "import", "include", "modulemeta"} {
		if strings.Contains(g.operands[0].text, s) {
			return "", s + " makes jq read files that its arguments do not name"
		}
	}
	return "", ""
}
