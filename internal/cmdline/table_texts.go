package cmdline

import (
	"slices"
	"strings"
)

// textReaders are programs that print, cut, sort and compare texts.
func textReaders(name string) (p program, known bool) {
	switch name {
	case "echo", "true", "false", ":":
		return program{noOptions: true, operandsAreText: true, safeForAnyArgs: true}, true
	case "exit", "break", "continue":
		return program{noOptions: true, operandsAreText: true, safeForAnyArgs: true}, true
	case "set":
		return program{noOptions: true, operandsAreText: true, check: checkSet}, true
	case "base64": // -i and -o are files on some systems
		return program{options: "-d,-D,--decode ~-i,--ignore-garbage -w,--wrap=COLS >-o=FILE --help --version"}, true
	case "printf":
		return program{noOptions: true, operandsAreText: true, check: checkPrintf}, true
	case "cut":
		return program{safeForAnyArgs: true, options: `-b,--bytes=LIST -c,--characters=LIST -d,--delimiter=TEXT -f,--fields=LIST -n --complement -s,--only-delimited --output-delimiter=TEXT -w -z,--zero-terminated
			--help --version`}, true
	case "tr":
		return program{safeForAnyArgs: true, operandsAreText: true, options: "-c,-C,--complement -d,--delete -s,--squeeze-repeats -t,--truncate-set1 -u --help --version"}, true
	case "nl":
		return program{safeForAnyArgs: true, options: `-b,--body-numbering=STYLE -d,--section-delimiter=CC -f,--footer-numbering=STYLE -h,--header-numbering=STYLE -i,--line-increment=N -l,--join-blank-lines=N -n,--number-format=FORMAT
			-p,--no-renumber -s,--number-separator=TEXT -v,--starting-line-number=N -w,--number-width=N --help --version`}, true
	case "tac":
		return program{safeForAnyArgs: true, options: "-b,--before -r,--regex -s,--separator=TEXT --help --version"}, true
	case "rev":
		return program{safeForAnyArgs: true, options: "-h,--help -V,--version -0,--zero"}, true
	case "fold":
		return program{safeForAnyArgs: true, options: "-NUM -b,--bytes -c,--characters -s,--spaces -w,--width=N --help --version"}, true
	case "paste":
		return program{safeForAnyArgs: true, options: "-d,--delimiters=LIST -s,--serial -z,--zero-terminated --help --version"}, true
	case "join":
		return program{safeForAnyArgs: true, options: `-a=N -e=TEXT -i,--ignore-case -j=FIELD -o=FORMAT -t=CHAR -v=N -1=FIELD -2=FIELD --check-order --nocheck-order --header -z,--zero-terminated --help --version`}, true
	case "expand", "unexpand":
		return program{safeForAnyArgs: true, options: "-NUM -a,--all --first-only -i,--initial -t,--tabs=LIST --help --version"}, true
	case "column":
		return program{safeForAnyArgs: true, options: `-t,--table -s,--separator=TEXT -o,--output-separator=TEXT -c,--output-width=N --columns=N -x,--fillrows -J,--json ~-n,--table-name=NAME -N,--table-columns=NAMES
			~-l,--table-columns-limit=N -H,--table-hide=COLUMNS -R,--table-right=COLUMNS -T,--table-truncate=COLUMNS -W,--table-wrap=COLUMNS -E,--table-noextreme=COLUMNS -O,--table-order=COLUMNS
			-d,--table-noheadings -e,--table-header-repeat -i,--tree-id=COLUMN -p,--tree-parent=COLUMN ~-r,--tree=COLUMN -L,--keep-empty-lines -h,--help -V,--version`}, true
	case "cmp":
		return program{safeForAnyArgs: true, options: "-b,--print-bytes -i,--ignore-initial=SKIP -l,--verbose -n,--bytes=LIMIT -s,--quiet,--silent -x -v,--version --help"}, true
	case "comm":
		return program{safeForAnyArgs: true, options: "-1 -2 -3 -i --check-order --nocheck-order --output-delimiter=TEXT --total -z,--zero-terminated --help --version"}, true
	case "od":
		return program{safeForAnyArgs: true, options: `-A,--address-radix=RADIX --endian=ORDER -j,--skip-bytes=N -N,--read-bytes=N -S=N --strings[=N] -t,--format=TYPE -v,--output-duplicates -w,--width[=N] --traditional
			-a -b -B -c -d -D -e -f -F -h -H -i -I -l -L -o -O -s -x -X --help --version`}, true
	case "strings": // an argument @x stands for arguments in the file x
		return program{safeForAnyArgs: true, check: checkStrings, options: `-NUM -a,--all -d,--data -f,--print-file-name -n,--bytes=N -t,--radix=RADIX -o -e,--encoding=ENCODING -s,--output-separator=TEXT -T,--target=NAME -U,--unicode=HOW
			-w,--include-all-whitespace -h,-H,--help -v,-V,--version`}, true
	case "seq":
		return program{safeForAnyArgs: true, operandsAreText: true, options: "-NUM -f,--format=FORMAT -s,--separator=TEXT -t=TEXT -w,--equal-width --help --version"}, true
	case "sort":
		return program{options: `-b,--ignore-leading-blanks -d,--dictionary-order -f,--ignore-case -g,--general-numeric-sort -i,--ignore-nonprinting -M,--month-sort -h,--human-numeric-sort -n,--numeric-sort
			-R,--random-sort --random-source=FILE -r,--reverse --sort=WORD -V,--version-sort --batch-size=N -c --check[=HOW] -C !--compress-program=PROGRAM --debug !--files0-from=FILE -k,--key=KEY -m,--merge
			>-o,--output=FILE -s,--stable -S,--buffer-size=SIZE -t,--field-separator=CHAR !-T,--temporary-directory=FILE --parallel=N -u,--unique -z,--zero-terminated --help --version`}, true
	case "uniq":
		return program{stopAtOperand: true, check: checkUniq, options: `-c,--count -d,--repeated -D --all-repeated[=HOW] -f,--skip-fields=N --group[=HOW] -i,--ignore-case -s,--skip-chars=N -u,--unique -w,--check-chars=N -z,--zero-terminated
			--help --version`}, true
	case "xxd":
		return program{singleDash: true, stopAtOperand: true, check: checkUniq, options: "-a -b -c=N -d -E -e -g=N -i -l=N -o=N -p -ps -s=N -u"}, true
	case "diff":
		return program{followsLinks: true, check: checkDiff, options: `-NUM --normal -q,--brief -s,--report-identical-files -c -C,--context=N -u -U,--unified=N -e,--ed -f,--forward-ed -n,--rcs -y,--side-by-side -W,--width=N --left-column --suppress-common-lines
			-p,--show-c-function -F,--show-function-line=REGEX --label=TEXT -L=TEXT -t,--expand-tabs -T,--initial-tab --tabsize=N --suppress-blank-empty !-l,--paginate -r,--recursive --no-dereference -N,--new-file
			-P --unidirectional-new-file --ignore-file-name-case --no-ignore-file-name-case -x,--exclude=PATTERN -X,--exclude-from=FILE -S,--starting-file=TEXT --from-file=FILE --to-file=FILE -i,--ignore-case
			-E,--ignore-tab-expansion -Z,--ignore-trailing-space -b,--ignore-space-change -w,--ignore-all-space -B,--ignore-blank-lines -I,--ignore-matching-lines=REGEX -a,--text --strip-trailing-cr
			-D,--ifdef=NAME --old-group-format=FORMAT --new-group-format=FORMAT --unchanged-group-format=FORMAT --changed-group-format=FORMAT --line-format=FORMAT --old-line-format=FORMAT --new-line-format=FORMAT
			--unchanged-line-format=FORMAT -d,--minimal --horizon-lines=N -H,--speed-large-files --color[=WHEN] --palette=TEXT --binary -v,--version --help`}, true
	}
	return program{}, false
}

// checkSet allows only the options with which scripts stop at errors and print their commands.
func checkSet(g parsedWords) (option, why string) {
	for i := 0; i < len(g.operands); i++ {
		w := g.operands[i].text
		letters, isOption := strings.CutPrefix(w, "-")
		named := strings.HasSuffix(letters, "o")
		if !isOption || letters == "" || strings.Trim(strings.TrimSuffix(letters, "o"), "eux") != "" || named && i+1 == len(g.operands) {
			return w, "set " + w + " changes what a shell does"
		}
		if named {
			i++
			if !slices.Contains([]string{"errexit", "nounset", "pipefail", "xtrace"}, g.operands[i].text) {
				return g.operands[i].text, "set -o " + g.operands[i].text + " changes what a shell does"
			}
		}
	}
	if len(g.operands) == 0 {
		return "", "set shows all variables"
	}
	return "", ""
}

// checkPrintf refuses formats and options that set a variable.
func checkPrintf(g parsedWords) (option, why string) {
	args := g.operands
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	} else if len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		return args[0].text, args[0].text + " makes printf do more than print"
	}
	if len(args) > 0 && (args[0].mayBecomeOption() || args[0].glob) {
		return "", "eca does not know the format of printf"
	}
	if len(args) > 0 && assignsLength(args[0].text) {
		return "%n", "%n makes printf set a variable"
	}
	return "", ""
}

// checkStrings refuses arguments that stand for the contents of a file.
func checkStrings(g parsedWords) (option, why string) {
	for _, o := range g.options {
		if strings.HasPrefix(o.value, "@") {
			return "", "strings reads arguments from " + o.value
		}
	}
	for _, w := range g.operands {
		if strings.HasPrefix(w.text, "@") || w.mayBecomeOption() {
			return "", "strings may read arguments from a file"
		}
	}
	return "", ""
}

// checkUniq refuses a second operand, which is the output file.
func checkUniq(g parsedWords) (option, why string) {
	for i, w := range g.operands {
		if i > 0 || w.glob {
			return "", "the second file is written"
		}
	}
	if g.globValue {
		return "", "the second file is written"
	}
	return "", ""
}

// checkDiff refuses options that follow symlinks into folders.
func checkDiff(g parsedWords) (option, why string) {
	if g.has("-r") && !g.has("--no-dereference") {
		return "", "diff would follow symlinks in the folders"
	}
	return "", ""
}
