// Package layers holds no code: its tests keep the rules about who may import whom, and what
// documents say about tests.
package layers

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/seed-dec29ce4/eca"

// level of a package: imports go to higher numbers, and within a level only where allowed
// says so. A package that matches no entry fails the test: give it a place first.
//
//	1 commands, examples, repomap/history (a command too)   2 faces, daemon   3 engine
//	4 models, tools, contexts, mcp, extensions, repomap, journal, graders, reports
//	5 workspace, config, auth, artifact   6 event, wire types, mechanisms
func level(room string) int {
	switch {
	case strings.HasPrefix(room, "cmd/"), strings.HasPrefix(room, "examples/"), room == "repomap/history":
		return 1
	case strings.HasPrefix(room, "daemon/"), slices.Contains([]string{"server", "daemon", "ecp/agent", "ecp/cluster", "ecp/runtime", "ecp/viewer", "e2a/turn", "e2a/gateway", "e2a/acp", "e2a/a2a", "esrp/service", "editors/web", "remote"}, room):
		return 2
	case room == "chat", strings.HasPrefix(room, "chat/") && room != "chat/event" && room != "chat/eventlog" && room != "chat/transcript", room == "ecp/runfile":
		return 3
	case room == "llm", strings.HasPrefix(room, "llm/"), room == "tools", strings.HasPrefix(room, "tools/"), room == "contexts",
		room == "mcp", room == "mcp/login", room == "extensions", strings.HasPrefix(room, "extensions/"), room == "repomap", strings.HasPrefix(room, "repomap/"),
		room == "esrp/journal", room == "ecp/grade", room == "ecp/report", room == "ecp/harbor", room == "ecp/swebench", room == "ecp/cache":
		return 4
	case room == "workspace", room == "config", room == "auth", room == "auth/oauth", room == "esrp/artifact":
		return 5
	case slices.Contains([]string{"chat/event", "chat/eventlog", "chat/transcript", "server/protocol", "esrp", "ecp", "ecp/stats", "e2a", "examples"}, room), strings.HasPrefix(room, "internal/"):
		return 6
	}
	return 0
}

// mayImportOwn reports whether code of a package may import another of our packages.
func mayImportOwn(from, to string) bool {
	switch {
	case from == "chat" && to == "chat/history":
		return true
	case from == "chat/command" && (to == "chat/search" || to == "chat/budget"):
		return true // it shows what was found and spent
	case strings.HasPrefix(from, "chat/") && level(from) == 3 && from != "chat/history" && to == "chat":
		return true // they implement its interfaces, or share them
	case from == "daemon" && strings.HasPrefix(to, "daemon/"):
		return true // it wires them
	case to == "daemon/login":
		return from == "daemon/providers" || from == "daemon/servers"
	case from == "daemon/judge" && (to == "daemon/providers" || to == "daemon/settings"):
		return true // it is to evaluations what the daemon is to editors
	case to == "auth" && strings.HasPrefix(from, "daemon/"):
		return slices.Contains([]string{"daemon/judge", "daemon/login", "daemon/providers", "daemon/servers", "daemon/settings"}, from)
	case to == "auth":
		return slices.Contains([]string{"daemon", "server", "llm", "chat/command", "cmd/eca", "mcp/login"}, from) // all but the first and the last for what a login is called
	case to == "auth/oauth":
		return slices.Contains([]string{"daemon/login", "daemon/providers", "mcp/login"}, from)
	case to == "server/protocol":
		return from == "server" || from == "remote" // the engine knows no wire types
	case from == "repomap" && to == "repomap/lang":
		return true
	case from == "ecp/cluster" && to == "ecp/runtime":
		return true // it has a run's attempts made elsewhere
	case from == "ecp/swebench" && to == "ecp/grade":
		return true // the grader says which logs can be read, and where patches are
	case from == "ecp/cache" && to == "ecp/grade":
		return true // it is a judge that asks another
	case strings.HasPrefix(from, "e2a/") && to == "e2a/turn":
		return true // ACP, A2A and E2A are adapters over it
	case level(from) == 4 && level(to) == 4:
		return to == "llm" || to == "tools" // siblings meet in the root packages
	case from == "chat" && level(to) == 4:
		return slices.Contains([]string{"llm", "tools", "contexts", "extensions/hooks"}, to)
	case from == "chat/inline" && level(to) == 4:
		return to == "llm"
	case to == "chat/event" && (from == "chat/transcript" || from == "chat/eventlog"):
		return true // they fold and keep events
	case level(from) == 6:
		return level(to) == 6 && strings.HasPrefix(to, "internal/")
	case level(from) == 5:
		return level(to) == 6
	}
	return level(from) < level(to)
}

// mayImport says whether a package may import a foreign package.
func mayImport(from, path string) bool {
	if (from == "ecp/runfile" || from == "chat/search" || from == "llm/spending") && (strings.HasPrefix(path, "modernc.org/") || path == "database/sql") {
		return true // they have records of their own, beside that of chats
	}
	if from == "editors/web" && strings.HasPrefix(path, "github.com/coder/websocket") {
		return true // it carries messages of another protocol
	}
	if strings.HasPrefix(path, "github.com/nats-io/nats-server") {
		return from == "internal/jet/embed" // so that who uses the client links no server
	}
	only := onlyImporter(path)
	return only == "" || only == from
}

// onlyImporter names, for foreign packages, the one package that may import them.
func onlyImporter(path string) string {
	for prefix, room := range map[string]string{
		"go.lsp.dev/jsonrpc2":         "internal/jsonrpc/scanner",
		"github.com/mark3labs/mcp-go": "mcp",
		"github.com/aws/":             "llm/bedrock",
		"github.com/openai/openai-go": "llm/openai",
		"modernc.org/":                "chat/store",
		"database/sql":                "chat/store",
		"os/exec":                     "internal/proc",
		"mvdan.cc/sh":                 "internal/cmdline",
		"github.com/fsnotify":         "internal/watch",
		"golang.org/x/oauth2":         "auth/oauth",
		"github.com/zalando":          "internal/keychain",
		"github.com/BurntSushi/toml":  "ecp/harbor",
		"golang.org/x/term":           "cmd/eca",
		"github.com/landlock-lsm":     "internal/sandbox",
		"github.com/JohannesKaufmann": "tools/web",
		"github.com/ledongthuc/pdf":   "internal/pdftext",
		"golang.org/x/net/idna":       "internal/fetch",
		"golang.org/x/net/netutil":    "cmd/eca",
		"github.com/coder/websocket":  "e2a/gateway",
		"github.com/nats-io":          "internal/jet",
		"rsc.io/qr":                   "cmd/eca",
		"google.golang.org/protobuf":  "internal/otlp",
	} {
		if strings.HasPrefix(path, prefix) {
			return room
		}
	}
	return ""
}

// forTests says whether a package is for tests only.
func forTests(room string) bool {
	return slices.Contains([]string{"editors/fake", "editors/nvim", "internal/needs", "internal/testkit", "internal/testkit/daemontest"}, room)
}

type pkg struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", module+"/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// remedy says what to do instead of an import that is not allowed, if that is known.
func remedy(from, to string) string {
	if strings.HasPrefix(from, "llm/") && strings.HasPrefix(to, "llm/") {
		return ": packages below llm import llm, but not each other; put a variant of a wire format into a file of the format's package"
	}
	return ""
}

func TestImports(t *testing.T) {
	list := packages(t)
	if len(list) < 20 {
		t.Fatalf("only %d packages found; the test sees nothing", len(list))
	}
	for _, p := range list {
		from := strings.TrimPrefix(p.ImportPath, module+"/")
		testOnly := forTests(from)
		if level(from) == 0 && !testOnly {
			t.Errorf("%s has no level: add it to level() in this file", from)
		}
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, module+"/")
			switch {
			case ours && !testOnly && forTests(to):
				t.Errorf("%s imports %s, which is for tests", from, to)
			case ours && !testOnly && !mayImportOwn(from, to):
				t.Errorf("%s (level %d) must not import %s (level %d)%s", from, level(from), to, level(to), remedy(from, to))
			case !ours && !testOnly && !mayImport(from, imp):
				t.Errorf("%s imports %s; only %s may", from, imp, onlyImporter(imp))
			}
		}
		for _, imp := range slices.Concat(p.TestImports, p.XTestImports) {
			to, ours := strings.CutPrefix(imp, module+"/")
			helper := forTests(to) || to == "daemon" || strings.HasPrefix(to, from+"/") || // tests of a package may put it together
				from == "remote" && (to == "server" || to == "editors/web") ||
				from == "tools/lsp" && to == "tools/diagnostics" // and see what edits report of its servers
			if ours && !helper && to != from && !mayImportOwn(from, to) && level(from) >= level(to) {
				t.Errorf("tests of %s must not import %s", from, to)
			}
		}
	}
}

// The rules themselves, on examples of what they forbid.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"server", "chat", true},
		{"server", "daemon", false},
		{"daemon", "server", false},
		{"chat", "server/protocol", false},
		{"server", "server/protocol", true},
		{"chat", "llm", true},
		{"chat", "llm/openai", false},
		{"chat", "tools/permission", false},
		{"chat", "extensions/hooks", true},
		{"extensions/hooks", "tools", true},
		{"chat/inline", "chat", true},
		{"chat/inline", "llm", true},
		{"chat/inline", "tools", false},
		{"chat", "chat/inline", false},
		{"llm/openai", "llm", true},
		{"llm/openai", "llm/cassette", false},
		{"tools/fs", "tools/shell", false},
		{"mcp", "tools", true},
		{"mcp", "contexts", false},
		{"chat", "mcp", false},
		{"server", "mcp", true},
		{"tools/permission", "config", true},
		{"config", "chat", false},
		{"chat/event", "config", false},
		{"internal/proc", "internal/bug", true},
		{"internal/proc", "workspace", false},
		{"workspace", "config", false},
		{"llm", "auth", true},
		{"auth", "config", false},
		{"repomap", "repomap/lang", true},
		{"contexts", "repomap", false},
	} {
		if mayImportOwn(c.from, c.to) != c.want {
			t.Errorf("%s -> %s: %v", c.from, c.to, !c.want)
		}
	}
}
