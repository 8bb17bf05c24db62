package permission

import (
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
)

// unsafeKey returns the first key of a git configuration that is not known to be harmless for a command
// that only reads; empty if all are. contents is true if the command reads the contents of files. inside
// reports whether a setting that names a file or folder leads into the workspace.
func unsafeKey(settings []setting, contents bool, inside func(setting) bool) string {
	for _, s := range settings {
		switch {
		case namesFile(s) && (s.value == "" || inside(s)):
		case !contents && (s.section == "filter" || s.section == "diff"):
		case s.section == "alias" && (cmdline.GitReads(s.key) || cmdline.GitReads(strings.ToLower(s.name))), // git may let an alias replace a deprecated subcommand
			(s.section == "branch" || s.section == "tag") && s.key == "sort" && strings.Contains(strings.ToLower(s.value), "signature"), // gpg checks it
			namesFile(s), !harmlessSection(s.section), !harmlessKey(s.section, s.key):
			return s.section + "." + s.key
		}
	}
	return ""
}

// namesFile reports whether git uses the file or folder that a setting names while it only reads, and
// may print its lines.
func namesFile(s setting) bool {
	return s.section == "core" && (s.key == "worktree" || s.key == "excludesfile") || s.section == "blame" && s.key == "ignorerevsfile"
}

// harmlessSection reports whether a section has harmless keys.
func harmlessSection(section string) bool {
	return slices.Contains([]string{
		"core", "remote", "branch", "submodule", "user", "color", "pull", "push", "init", "lfs", "gc", "rerere", "status", "log", "diff", "fetch",
		"advice", "extensions", "merge", "rebase", "commit", "tag", "pack", "index", "feature", "maintenance", "github", "gitlab", "column", "format", "help", "i18n", "blame", "grep", "versionsort",
		// Commands that only read ignore these: they are for commands that change something or
		// connect, and for other programs.
		"alias", "am", "apply", "author", "checkout", "clone", "committer", "credential", "difftool", "gitflow", "gitk", "gitreview", "gui", "http", "hub", "mergetool",
		"notes", "receive", "repack", "sendemail", "sequence", "stash", "svn", "svn-remote", "transfer", "url", "worktree",
	}, section)
}

// harmlessKey reports whether a key is harmless: git starts no program because of it while git only reads.
func harmlessKey(section, key string) bool {
	switch section {
	case "core":
		return slices.Contains([]string{
			"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks", "autocrlf", "eol",
			"safecrlf", "abbrev", "quotepath", "untrackedcache", "splitindex", "preloadindex", "commitgraph", "multipackindex", "longpaths", "sharedrepository",
			"compression", "sparsecheckout", "sparsecheckoutcone", "whitespace", "hidedotfiles", "protecthfs", "protectntfs",
			"bigfilethreshold", "checkstat", "commentchar", "commentstring", "deltabasecachelimit", "fscache", "fsync", "fsyncmethod", "fsyncobjectfiles", "ignorestat",
			"loosecompression", "maxtreedepth", "notesref", "packedgitlimit", "packedgitwindowsize", "trustctime", "usereplacerefs", "warnambiguousrefs",
			"hookspath", "fsmonitor", // switched off
			"askpass", "editor", "sshcommand", // not used by commands that only read
		}, key)
	case "remote":
		return slices.Contains([]string{
			"url", "fetch", "pushurl", "push", "tagopt", "prune", "prunetags", "gh-resolved", "skipdefaultupdate", "skipfetchall", "mirror", "followremotehead",
			"proxy", "proxyauthmethod", "pushdefault",
		}, key)
	case "extensions":
		return key == "objectformat" || key == "refstorage" || key == "worktreeconfig"
	case "diff":
		return slices.Contains([]string{
			"renames", "renamelimit", "algorithm", "colormoved", "colormovedws", "mnemonicprefix", "noprefix", "context", "submodule", "wserrorhighlight", "indentheuristic",
			"tool", "guitool", "interhunkcontext", "suppressblankempty", "relative", "dirstat", "statgraphwidth", "statnamewidth",
			"binary", "funcname", "wordregex", "xfuncname", // of a driver
		}, key)
	case "log":
		return key != "showsignature" && key != "diffmerges"
	case "grep":
		return key != "fallbacktonoindex"
	case "format": // format.pretty may have gpg check signatures
		return false
	}
	return true
}
