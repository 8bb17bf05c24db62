package cmdline

import (
	"slices"
	"strings"
)

// leadsAway returns the option, or the word, with which a command that reads looks at what
// its words do not name: links that it finds on its way, files that a file names, the
// environment.
func leadsAway(name string, args []word) string {
	for _, a := range args {
		if a.text == "--" && name != "jq" && name != "strings" {
			break
		}
		long := strings.HasPrefix(a.text, "--")
		letters := ""
		if strings.HasPrefix(a.text, "-") && !long {
			letters = a.text[1:]
		}
		found := false
		switch name {
		case "grep", "egrep", "fgrep":
			found = strings.HasPrefix(a.text, "--der") || strings.Contains(letters, "R")
		case "rg":
			found = strings.HasPrefix(a.text, "--fo") || strings.Contains(letters, "L")
		case "find":
			found = slices.Contains([]string{"-L", "-follow", "-files0-from"}, a.text)
		case "ls": // with both it descends into links
			found = strings.HasPrefix(a.text, "--deref") || strings.Contains(letters, "L")
			found = found && slices.ContainsFunc(args, func(o word) bool {
				return strings.HasPrefix(o.text, "--recu") || strings.HasPrefix(o.text, "-") && !strings.HasPrefix(o.text, "--") && strings.Contains(o.text, "R")
			})
		case "diff": // descends into links, unless it is told not to
			found = (strings.HasPrefix(a.text, "--rec") || strings.Contains(letters, "r")) && firstOf(args, "--no-dereference") == ""
		case "tree":
			found = strings.Contains(letters, "l")
		case "du":
			found = strings.HasPrefix(a.text, "--f") || strings.HasPrefix(a.text, "--deref") || strings.Contains(letters, "L")
		case "wc", "sort":
			found = strings.HasPrefix(a.text, "--f") && !strings.HasPrefix(a.text, "--fie")
		case "file":
			found = strings.HasPrefix(a.text, "--fi") || strings.Contains(letters, "f")
		case "md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum":
			found = strings.HasPrefix(a.text, "--c") || strings.Contains(letters, "c")
		case "strings": // of @x, the words are in the file x
			found = strings.HasPrefix(a.text, "@") || a.glob && a.loose()
		case "jq": // programs see the environment, and may be in files that see it
			found = strings.HasPrefix(a.text, "--from") || strings.ContainsAny(letters, "fL") ||
				slices.ContainsFunc([]string{"env", "ENV", "import", "include", "modulemeta"}, func(s string) bool { return strings.Contains(a.text, s) })
		}
		if found {
			return a.text
		}
	}
	return ""
}
