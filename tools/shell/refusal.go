package shell

import (
	"cmp"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// maxSearched is the number of bytes at the end of stderr that are searched for refusals.
const maxSearched = 4 << 10

// refusal is an access that the sandbox refused.
type refusal struct {
	what string // a description; empty if nothing was refused
	path string // the file that the command could not use, if any
	host string // the host that it could not reach, if any
	port string // the port of a server of this machine that it could not reach, if any
}

// refusalIn returns the access that the sandbox refused to a failed command, according to the messages
// of the command. Programs report refusals in different ways, so this is a guess. A path counts only if
// eca itself can write there.
func refusalIn(p sandbox.Policy, code int, stderr string) refusal {
	const cannotExecute, notFound = 126, 127 // exit codes of shells
	if !p.Bounds() || code == 0 || code == cannotExecute || code == notFound {
		return refusal{}
	}
	if len(stderr) > maxSearched {
		stderr = stderr[len(stderr)-maxSearched:]
	}
	uncertain := refusal{}
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if !p.Network {
			if r := refusedConnection(line); r.what != "" {
				return r
			}
		}
		if p.Network && !p.UnixSockets && refusedService(line) {
			return refusal{what: "use of a Unix socket refused"}
		}
		if p.Loopback {
			if port := refusedLocalServer(line); port != "" {
				return refusal{what: "connection to your own server at localhost:" + port + " refused (toolCall.sandboxPorts)", port: port}
			}
		}
		r, certain := refusedFile(line)
		if certain {
			return r
		}
		uncertain = cmp.Or(uncertain, r)
	}
	return uncertain
}

// refusedConnection recognizes messages of programs that cannot leave the network of the sandbox.
func refusedConnection(line string) refusal {
	for _, phrase := range []string{
		"could not resolve host", "temporary failure in name resolution", "name or service not known", "network is unreachable", "getaddrinfo", "eai_again", "enetunreach",
		"socket: operation not permitted", "socket: permission denied", "no such host", "dns error", "failed to lookup address", "unable to resolve host",
	} {
		if !strings.Contains(strings.ToLower(line), phrase) {
			continue
		}
		if m := regexp.MustCompile(`(?i)(?:https?://|host:? '?|lookup |resolve host '?|getaddrinfo [A-Z_]+ |address )([a-z0-9-]+(?:\.[a-z0-9-]+)+)`).FindStringSubmatch(line); m != nil {
			return refusal{what: "connection to " + m[1] + " refused", host: m[1]}
		}
		return refusal{what: "connection refused: there is no network"}
	}
	return refusal{}
}

// refusedService recognizes messages of programs that may not use Unix sockets.
func refusedService(line string) bool {
	low := strings.ToLower(line)
	return slices.ContainsFunc([]string{
		"permission denied (publickey", // ssh could not ask its agent
		"dial unix", "unix://", "docker daemon", "authentication agent", "gpg-agent", "dbus", "d-bus", "listen eperm", "connect eperm /", "socket: operation not permitted", "socket(2)",
	}, func(phrase string) bool { return strings.Contains(low, phrase) })
}

// refusedLocalServer returns the port of a server of this machine to which a command could not connect,
// although eca itself can, because the sandbox has its own loopback interface.
func refusedLocalServer(line string) (port string) {
	if low := strings.ToLower(line); !strings.Contains(low, "refused") && !strings.Contains(low, "connect to server") {
		return ""
	}
	m := regexp.MustCompile(`(?i)(?:localhost|127\.0\.0\.1|::1)[\])"']*(?::|,? port )(\d{1,5})\b`).FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	const dialTimeout = time.Second
	for _, host := range []string{"127.0.0.1", "::1"} {
		if conn, err := net.DialTimeout("tcp", net.JoinHostPort(host, m[1]), dialTimeout); err == nil {
			_ = conn.Close()
			return m[1]
		}
	}
	return ""
}

// refusedFile recognizes messages of programs that could not use a file or a terminal. certain is true
// if the message says what was refused: a path that eca can write, git's configuration or a terminal.
// Otherwise, a later line may say more.
func refusedFile(line string) (r refusal, certain bool) {
	low := strings.ToLower(line)
	has := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(low, text) })
	}
	if has("config file", "config.lock") && has("device or resource busy") { // git renames a file over a mount point
		return refusal{what: "writing to git's configuration refused"}, true
	}
	readOnly := has("read-only file system", "erofs")
	if !readOnly && !has("permission denied", "operation not permitted", "eacces", "eperm") {
		return refusal{}, false
	}
	if has("pseudo-terminal", "pseudo terminal", "/dev/pts", "/dev/ptmx", "openpty") {
		return refusal{what: "a pseudo terminal refused"}, true
	}
	line = regexp.MustCompile(`^\S+: line \d+: `).ReplaceAllString(line, "") // the path of the shell
	paths := regexp.MustCompile(`(?:^|[\s'"‘`+"`"+`:,;(=])(/[^\s'"‘’`+"`"+`:,;()]+)`).FindAllStringSubmatch(line, -1)
	for _, m := range paths {
		if path := filepath.Clean(m[1]); len(path) > 1 && writable(path) {
			return refusal{what: "use of " + path + " refused", path: path}, true
		}
	}
	if len(paths) == 0 && readOnly {
		return refusal{what: "writing refused"}, false
	}
	return refusal{}, false
}

// writable reports whether eca can write or create a path, so that only the sandbox forbids it.
func writable(path string) bool {
	for {
		info, err := os.Lstat(path)
		if err == nil {
			if info.IsDir() {
				return writableDir(path)
			}
			f, err := os.OpenFile(path, os.O_WRONLY|nonBlocking, 0)
			if err == nil {
				_ = f.Close()
			}
			return err == nil
		}
		if !os.IsNotExist(err) || filepath.Dir(path) == path {
			return false
		}
		path = filepath.Dir(path)
	}
}
