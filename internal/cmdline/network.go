package cmdline

import (
	"slices"
	"strings"
)

// NeedsNetwork reports whether a command is known to be useless without a network or a local service.
// The loopback interface does not count, because sandboxed commands have a private one. hosts is true
// if the user listed hosts that the proxy reaches; that is enough for commands that fetch packages and
// commits.
func (c Command) NeedsNetwork(hosts bool) bool {
	switch programName(c.Name) {
	case "curl", "wget":
		return !onlyLoopback(c.Args)
	case "ssh", "scp", "sftp", "rsync", "nc", "ncat", "telnet", "ftp", "ping", "dig", "nslookup", "host", "whois", "traceroute",
		"gh", "glab", "hub", "docker", "docker-compose", "podman", "kubectl", "helm", "aws", "gcloud", "az", "heroku", "vercel", "netlify", "fly", "flyctl", "gsutil", "ansible", "terraform",
		"apt", "apt-get", "dnf", "yum", "pacman", "apk", "brew", "snap", "psql", "mysql", "redis-cli", "mongosh":
		return true
	}
	sub := map[string][]string{
		"git": {"clone", "fetch", "pull", "push", "ls-remote"},
		"npm": {"install", "i", "ci", "add", "update", "publish", "login", "audit", "outdated", "view"}, "pnpm": {"install", "i", "add", "update", "publish", "dlx"},
		"yarn": {"install", "add", "upgrade", "publish", "dlx"}, "bun": {"install", "add", "update"},
		"pip": {"install", "download"}, "pip3": {"install", "download"}, "poetry": {"add", "update", "publish"}, "uv": {"add", "publish"}, "conda": {"install", "create", "update"},
		"cargo": {"install", "publish", "search", "login"}, "go": {"get", "install"}, "gem": {"install", "push"}, "bundle": {"update"}, "composer": {"require", "update"}, "rustup": {"install", "update"},
	}[programName(c.Name)]
	// The subcommand may follow options with values.
	const searchedArgs = 4
	has := func(list []string) bool {
		return slices.ContainsFunc(c.Args[:min(len(c.Args), searchedArgs)], func(word string) bool { return slices.Contains(list, word) })
	}
	sends := []string{"push", "publish", "login"}
	return has(sub) && !slices.Contains(c.Args, "--offline") && (!hosts || has(sends))
}

// onlyLoopback reports whether the words of curl or wget name addresses of this machine and no
// others. A host that is written without a scheme may also be the value of an option; without a
// network it is merely not reached.
func onlyLoopback(words []string) bool {
	found := false
	for _, word := range words {
		_, rest, isURL := strings.Cut(word, "://")
		if !isURL {
			rest = word
		}
		host := rest
		if i := strings.IndexAny(host, "/?#"); i >= 0 {
			host = host[:i]
		}
		host = host[strings.LastIndexByte(host, '@')+1:]
		if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
			host = host[:i]
		}
		local := slices.Contains([]string{"localhost", "127.0.0.1", "[::1]", "0.0.0.0"}, host)
		if isURL && !local {
			return false
		}
		found = found || local
	}
	return found
}
