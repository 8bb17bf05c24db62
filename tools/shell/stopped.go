package shell

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/tools"
)

// maxComplaint is how much of the end of stderr is searched for what the sandbox refused.
const maxComplaint = 4 << 10

// stoppedBy says what the sandbox refused a command that failed, as its messages show; empty if
// it failed for reasons of its own. Programs report a refusal in their own words, so this is a
// guess: a path counts only if eca itself could do there what the command could not.
func stoppedBy(p sandbox.Policy, code int, stderr string) string {
	const cannotExecute, notFound = 126, 127 // as shells say
	if !p.Bounds() || code == 0 || code == cannotExecute || code == notFound {
		return ""
	}
	if len(stderr) > maxComplaint {
		stderr = stderr[len(stderr)-maxComplaint:]
	}
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if !p.Network {
			if what := refusedConnection(line); what != "" {
				return what
			}
		}
		if what := refusedFile(p, line); what != "" {
			return what
		}
	}
	return ""
}

// refusedConnection finds what programs say when they cannot leave the sandbox's network.
func refusedConnection(line string) string {
	for _, said := range []string{
		"could not resolve host", "temporary failure in name resolution", "name or service not known", "network is unreachable", "getaddrinfo", "eai_again", "enetunreach",
		"socket: operation not permitted", "socket: permission denied", "no such host", "dns error", "failed to lookup address", "unable to resolve host",
	} {
		if !strings.Contains(strings.ToLower(line), said) {
			continue
		}
		if m := regexp.MustCompile(`(?i)(?:https?://|host:? '?|lookup |resolve host '?|getaddrinfo [A-Z_]+ |address )([a-z0-9-]+(?:\.[a-z0-9-]+)+)`).FindStringSubmatch(line); m != nil {
			return "connection to " + m[1] + " refused"
		}
		return "connection refused: there is no network"
	}
	return ""
}

// refusedFile finds a path that a command could not use, although eca could.
func refusedFile(p sandbox.Policy, line string) string {
	low := strings.ToLower(line)
	readOnly := strings.Contains(low, "read-only file system") || strings.Contains(low, "erofs")
	if !readOnly && !strings.Contains(low, "permission denied") && !strings.Contains(low, "operation not permitted") && !strings.Contains(low, "eacces") && !strings.Contains(low, "eperm") {
		return ""
	}
	if strings.Contains(low, "pseudo") && strings.Contains(low, "terminal") || strings.Contains(low, "/dev/pts") || strings.Contains(low, "/dev/ptmx") || strings.Contains(low, "openpty") {
		return "a pseudo terminal refused"
	}
	if path := regexp.MustCompile(`/[^\s'"‘’` + "`" + `:,;()]+`).FindString(line); path != "" {
		if filepath.Clean(path) != "/" && usable(path) {
			return "use of " + filepath.Clean(path) + " refused"
		}
		return ""
	}
	if readOnly {
		return "writing refused"
	}
	return ""
}

// usable says whether eca can write to a path, or make it, and so only the sandbox forbids it.
func usable(path string) bool {
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

// stopNote is the line that the result of a command ends with if the sandbox stopped it.
func stopNote(p sandbox.Policy, res tools.Result) string {
	code, stderr := 0, ""
	for _, out := range res.Outputs {
		if text, ok := strings.CutPrefix(out, "Stderr:\n"); ok {
			stderr = text
		}
		if text, ok := strings.CutPrefix(out, "Exit code: "); ok {
			code, _ = strconv.Atoi(text)
		}
	}
	what := stoppedBy(p, code, stderr)
	if what == "" {
		return ""
	}
	return "[sandbox: " + what + `; call again with outside: "<why>" to ask the user]`
}
