package cmdline

import (
	"slices"
	"strings"
)

// fileReaders are programs that show files, folders and their metadata.
//
// Tables have the options of GNU and BSD programs that are harmless in both. An entry is marked with ~
// if only one of them takes a value.
func fileReaders(name string) (p program, known bool) {
	switch name {
	case "ls":
		return program{safeForAnyArgs: true, check: checkLs, options: `-a,--all -A,--almost-all --author -b,--escape --block-size=SIZE -B,--ignore-backups -c -C --color[=WHEN] -d,--directory ~-D,--dired
			-e -f -F,--classify[=WHEN] --file-type --format=WORD --full-time -g -G,--no-group --group-directories-first -h,--human-readable --si -H,--dereference-command-line --dereference-command-line-symlink-to-dir
			--hide=PATTERN --hyperlink[=WHEN] --indicator-style=WORD -i,--inode ~-I,--ignore=PATTERN -k,--kibibytes -l -L,--dereference -m -n,--numeric-uid-gid -N,--literal -o -O -p
			-q,--hide-control-chars --show-control-chars -Q,--quote-name --quoting-style=WORD -r,--reverse -R,--recursive -s,--size -S --sort=WORD --time=WORD --time-style=STYLE -t ~-T,--tabsize=COLS -u -U -v
			~-w,--width=COLS -x -X -Z,--context --zero -1 -@ --help --version`}, true
	case "cat":
		return program{safeForAnyArgs: true, options: "-A,--show-all -b,--number-nonblank -e -E,--show-ends -n,--number -s,--squeeze-blank -t -T,--show-tabs -u -v,--show-nonprinting --help --version"}, true
	case "head":
		return program{safeForAnyArgs: true, options: "-NUM -c,--bytes=NUM -n,--lines=NUM -q,--quiet,--silent -v,--verbose -z,--zero-terminated --help --version"}, true
	case "tail":
		return program{safeForAnyArgs: true, options: `-NUM -c,--bytes=NUM -n,--lines=NUM -f,--follow[=HOW] -F --max-unchanged-stats=N --pid=PID --retry -q,--quiet,--silent -r ~-s,--sleep-interval=N -v,--verbose
			-z,--zero-terminated --help --version`}, true
	case "stat":
		return program{safeForAnyArgs: true, options: "-L,--dereference ~-f,--file-system --cached=MODE -c,--format=FORMAT --printf=FORMAT ~-t,--terse -F -l -n -q -r -s -x --help --version"}, true
	case "du":
		return program{safeForAnyArgs: true, options: `-0,--null -a,--all -A --apparent-size -B,--block-size=SIZE -b,--bytes -c,--total -D,--dereference-args -d,--max-depth=N !--files0-from=FILE -g -h,--human-readable -H --inodes
			-k !-L,--dereference -l,--count-links -m -n -P,--no-dereference -S,--separate-dirs --si -s,--summarize -t,--threshold=SIZE --time[=WORD] --time-style=STYLE -X,--exclude-from=FILE --exclude=PATTERN
			-x,--one-file-system --help --version`}, true
	case "wc":
		return program{safeForAnyArgs: true, options: "-c,--bytes -m,--chars -l,--lines !--files0-from=FILE -L,--max-line-length -w,--words --total=WHEN --help --version"}, true
	case "realpath":
		return program{safeForAnyArgs: true, options: `-e,--canonicalize-existing -m,--canonicalize-missing -L,--logical -P,--physical -q,--quiet --relative-to=FILE --relative-base=FILE -s,--strip,--no-symlinks
			-z,--zero --help --version`}, true
	case "readlink":
		return program{safeForAnyArgs: true, options: "-f,--canonicalize -e,--canonicalize-existing -m,--canonicalize-missing -n,--no-newline -q,--quiet -s,--silent -v,--verbose -z,--zero --help --version"}, true
	case "file":
		return program{options: `-b,--brief !-c,--checking-printout !-C,--compile -d,--debug -e,--exclude=TEST --exclude-quiet=TEST --extension --apple -F,--separator=TEXT !-f,--files-from=FILE -h,--no-dereference
			-i,--mime -I --mime-type --mime-encoding -k,--keep-going -l,--list -L,--dereference !-m,--magic-file=FILE -N,--no-pad -n,--no-buffer !-p,--preserve-date -P,--parameter=TEXT -r,--raw -s,--special-files
			!-S,--no-sandbox -v,--version !-z,--uncompress !-Z,--uncompress-noreport -0,--print0 --help`}, true
	case "tree": // its letters have their values in the next words
		return program{noAbbreviations: true, separateValues: true, options: `-a -d !-l -f -x -L=N !-R -P=PATTERN -I=PATTERN --gitignore --ignore-case --matchdirs --metafirst --prune ~--filelimit=N ~--timefmt=FORMAT -q -N -Q -p -u -g -s -h --si
			--du -D -F --inodes --device -v -t -c -U -r --dirsfirst --filesfirst ~--sort=TYPE -i -A -S -n -C -X -J -H=TEXT -T=TEXT --nolinks --noreport ~--charset=NAME >-o=FILE >--output=FILE --version --help`}, true
	case "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum":
		return program{safeForAnyArgs: true, options: "-b,--binary !-c,--check -l,--length=BITS --tag -t,--text -z,--zero --ignore-missing --quiet --status --strict -w,--warn --help --version"}, true
	case "cksum":
		return program{safeForAnyArgs: true, options: `-a,--algorithm=TYPE -b,--base64 --raw !-c,--check --debug -l,--length=BITS --tag --untagged -z,--zero --ignore-missing --quiet --status --strict -w,--warn
			--help --version`}, true
	case "zcat":
		return program{options: "-f --help --version"}, true
	case "hexdump":
		return program{options: "-b -c -C,--canonical -d -o -x -n,--length=N -s,--skip=N -v,--no-squeezing -e,--format=FORMAT !-f,--format-file=FILE -h,--help -V,--version"}, true
	case "cd":
		return program{options: "-L -P -e", stopAtOperand: true, safeForAnyArgs: true, check: func(g parsedWords) (string, string) {
			if len(g.operands) != 1 {
				return "", "eca does not know the target of cd"
			}
			return "", ""
		}}, true
	case "test", "[":
		return program{noOptions: true, check: checkTest}, true
	}
	return program{}, false
}

// checkLs refuses options that follow symlinks into folders.
func checkLs(g parsedWords) (option, why string) {
	if g.has("-L") && g.has("-R") {
		return "", "ls would follow symlinks to folders"
	}
	return "", ""
}

// checkTest refuses operators that evaluate their operand, in any position.
func checkTest(g parsedWords) (option, why string) {
	for _, w := range g.operands {
		switch {
		case w.mayBecomeOption():
			return "", "arguments of test may become operators"
		case w.known && len(w.text) > 1 && w.text[0] == '-' && strings.Trim(w.text[1:], "0123456789") != "" && !slices.Contains(testOperators(), w.text):
			return w.text, w.text + " is unknown, or makes test do more than look"
		}
	}
	return "", ""
}

func testOperators() []string {
	return strings.Fields("-a -b -c -d -e -f -g -h -k -p -r -s -t -u -w -x -G -L -N -O -S -z -n -o -eq -ne -lt -le -gt -ge -nt -ot -ef")
}
