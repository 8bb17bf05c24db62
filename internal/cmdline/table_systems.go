package cmdline

import (
	"strings"
)

// systemReaders are programs that show information about the system, users and time.
func systemReaders(name string) (p program, known bool) {
	switch name {
	case "pwd":
		return program{safeForAnyArgs: true, options: "-L,--logical -P,--physical -W --help --version"}, true
	case "whoami", "arch":
		return program{safeForAnyArgs: true, options: "--help --version"}, true
	case "df":
		return program{safeForAnyArgs: true, options: `-a,--all -b -B,--block-size=SIZE -c -g -h,--human-readable -H,--si -i,--inodes -I -k -l,--local -m -n --no-sync --output[=FIELDS] -P,--portability !--sync --total
			~-t,--type=TYPE ~-T,--print-type -x,--exclude-type=TYPE -Y --help --version`}, true
	case "id":
		return program{safeForAnyArgs: true, operandsAreText: true, options: "-a -A -F -M -P -p -Z,--context -g,--group -G,--groups -n,--name -r,--real -u,--user -z,--zero --help --version"}, true
	case "uname":
		return program{safeForAnyArgs: true, operandsAreText: true, options: `-a,--all -s,--kernel-name -n,--nodename -r,--kernel-release -v,--kernel-version -m,--machine -p,--processor -i,--hardware-platform -o,--operating-system
			--help --version`}, true
	case "hostname": // with a word, it sets the name
		return program{check: checkNoOperands, options: "-s,--short --help --version -V"}, true
	case "nproc":
		return program{safeForAnyArgs: true, options: "--all --ignore=N --help --version"}, true
	case "which", "type":
		return program{safeForAnyArgs: true, operandsAreText: true, options: "-a,--all -s -f -p -P -t"}, true
	case "basename":
		return program{safeForAnyArgs: true, operandsAreText: true, options: "-a,--multiple -s,--suffix=TEXT -z,--zero --help --version"}, true
	case "dirname":
		return program{safeForAnyArgs: true, operandsAreText: true, options: "-z,--zero --help --version"}, true
	case "sleep":
		return program{safeForAnyArgs: true, operandsAreText: true, options: "--help --version"}, true
	case "free":
		return program{operandsAreText: true, options: "-b,--bytes -k,--kibi,--kilo -m,--mebi,--mega -g,--gibi,--giga -h,--human -w,--wide -c,--count=N -s,--seconds=N -t,--total -l,--lohi --si -V,--version --help"}, true
	case "uptime":
		return program{operandsAreText: true, options: "-p,--pretty -s,--since -h,--help -V,--version"}, true
	case "date":
		// -s, and on some systems -d, set the time; -r takes a file on some systems, a number on others.
		return program{operandsAreText: true, check: checkDate, options: `!-d,--date=TEXT --debug !-f,--file=FILE -I[=WHAT] --iso-8601[=WHAT] -R,--rfc-email,--rfc-2822 --rfc-3339=WHAT -r,--reference=FILE --resolution !-s,--set=TEXT
			-u,--utc,--universal,--uct --help --version`}, true
	}
	return program{}, false
}

// checkNoOperands refuses operands.
func checkNoOperands(g parsedWords) (option, why string) {
	if len(g.operands) > 0 {
		return "", "eca does not know what it does with " + g.operands[0].text
	}
	return "", ""
}

// checkDate refuses operands that are not a format, because they set the time.
func checkDate(g parsedWords) (option, why string) {
	if g.optionAfterOperand || g.globValue {
		return "", "arguments of date may set the time"
	}
	for _, w := range g.operands {
		if w.mayBecomeOption() || w.glob || !strings.HasPrefix(w.text, "+") {
			return w.text, "date may set the time to '" + w.text + "'"
		}
	}
	return "", ""
}
