package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/workspace"
)

// LanguageServer is the command-line argument that makes a test program a language server on its
// standard streams. For this, TestMain must call ServeLanguage first. The server knows a toy language
// with errors (ERR word), warnings (WARN word), definitions (DEF name) and uses (USE name). A use
// without a definition in the project is an error. Further arguments choose how the server behaves:
//
//	unversioned  reports have no document version
//	staged       the server repeats the previous report before each new one
//	pull         the client has to request diagnostics
//	dependent    with pull: the diagnostics of a file depend on other files
//	mute         the server reports nothing
//	stuck        the server does not answer initialize
//	crash        the server exits when a document changes
//	crash-start  the server exits immediately
//	flood        the server sends messages without end after initialize
//	many         the server reports 100,000 errors in each file
//	others       the server reports diagnostics of files outside the workspace
//	deaf         the server stops reading after initialize
const LanguageServer = "serve-test-language"

// ServeLanguage serves the language if the program's arguments request it.
func ServeLanguage(args []string) bool {
	if len(args) < 2 || args[1] != LanguageServer {
		return false
	}
	s := &languageServer{modes: args[2:], texts: map[string]string{}, versions: map[string]int{}, lastReports: map[string]any{}}
	if s.hasMode("crash-start") {
		fmt.Fprintln(os.Stderr, "cannot start")
		os.Exit(3)
	}
	s.conn = jsonrpc.NewConn(os.Stdin, os.Stdout, jsonrpc.Options{FirstID: 1})
	s.conn.Start(context.Background(), s.handle)
	<-s.conn.Done()
	return true
}

type languageServer struct {
	modes       []string
	conn        *jsonrpc.Conn
	root        string
	texts       map[string]string // by URI
	versions    map[string]int
	lastReports map[string]any
}

func (s *languageServer) hasMode(mode string) bool {
	return slices.Contains(s.modes, mode)
}

func (s *languageServer) handle(_ context.Context, req *jsonrpc.Request) (any, error) {
	var p struct {
		RootURI      string
		TextDocument struct {
			URI, Text string
			Version   int
		}
		ContentChanges []struct{ Text string }
		Position       struct{ Line int }
	}
	_ = json.Unmarshal(req.Params, &p) // p stays empty for invalid parameters
	uri := p.TextDocument.URI
	switch req.Method {
	case "initialize":
		return s.initialize(p.RootURI)
	case "initialized":
		if s.hasMode("flood") {
			go func() {
				line := map[string]string{"message": strings.Repeat("x", 1<<16)}
				for s.conn.Notify(context.Background(), "window/logMessage", line) == nil {
				}
			}()
		}
		if s.hasMode("deaf") {
			select {}
		}
	case "textDocument/didOpen":
		s.texts[uri], s.versions[uri] = p.TextDocument.Text, p.TextDocument.Version
		s.reportAll()
	case "textDocument/didChange":
		if s.hasMode("crash") {
			os.Exit(1)
		}
		s.texts[uri], s.versions[uri] = p.ContentChanges[0].Text, p.TextDocument.Version
		s.reportAll()
	case "textDocument/didClose":
		delete(s.versions, uri)
	case "workspace/didChangeWatchedFiles":
		s.read()
	case "textDocument/diagnostic":
		return map[string]any{"kind": "full", "items": s.check(uri)}, nil
	case "textDocument/definition", "textDocument/references":
		return s.locations(uri, p.Position.Line, req.Method), nil
	case "textDocument/documentSymbol":
		return s.symbols(uri), nil
	case "workspace/symbol":
		var all []any
		for _, uri := range slices.Sorted(maps.Keys(s.texts)) {
			all = append(all, s.symbols(uri)...)
		}
		return all, nil
	case "exit":
		os.Exit(0)
	}
	return nil, nil
}

func (s *languageServer) initialize(root string) (any, error) {
	if s.hasMode("stuck") {
		return jsonrpc.Deferred, nil
	}
	s.root = workspace.FromURI(root)
	s.read()
	capabilities := map[string]any{"textDocumentSync": map[string]any{"openClose": true, "change": 1, "save": true}}
	if s.hasMode("pull") {
		capabilities["diagnosticProvider"] = map[string]any{"interFileDependencies": s.hasMode("dependent")}
	}
	return map[string]any{"capabilities": capabilities}, nil
}

// read reads the files of the project that the client has not opened.
func (s *languageServer) read() {
	paths, _ := filepath.Glob(filepath.Join(s.root, "*.toy")) // the pattern is valid
	for _, path := range paths {
		if _, open := s.versions[workspace.ToURI(path)]; open {
			continue
		}
		if data, err := os.ReadFile(path); err == nil {
			s.texts[workspace.ToURI(path)] = string(data)
		}
	}
}

func toyWords() *regexp.Regexp { return regexp.MustCompile(`(ERR|WARN|DEF|USE) (\w+)`) }

func (s *languageServer) check(uri string) []any {
	if s.hasMode("many") {
		out := make([]any, 100_000)
		for i := range out {
			out[i] = toyDiagnostic(i, 0, 1, fmt.Sprintf("error %d", i))
		}
		return out
	}
	out := []any{}
	s.words(uri, func(kind, name string, line, column int) {
		switch {
		case kind == "ERR":
			out = append(out, toyDiagnostic(line, column, 1, name))
		case kind == "WARN":
			out = append(out, toyDiagnostic(line, column, 2, name))
		case kind == "USE" && !s.defined(name):
			out = append(out, toyDiagnostic(line, column, 1, "undefined: "+name))
		}
	})
	return out
}

func (s *languageServer) words(uri string, visit func(kind, name string, line, column int)) {
	words := toyWords()
	for i, line := range strings.Split(s.texts[uri], "\n") {
		for _, at := range words.FindAllStringSubmatchIndex(line, -1) {
			visit(line[at[2]:at[3]], line[at[4]:at[5]], i, at[4])
		}
	}
}

func (s *languageServer) defined(name string) bool {
	for _, text := range s.texts {
		if regexp.MustCompile(`DEF ` + name + `\b`).MatchString(text) {
			return true
		}
	}
	return false
}

func toyDiagnostic(line, column, severity int, message string) any {
	return map[string]any{"range": toyRange(line, column), "severity": severity, "message": message, "source": "toy", "code": 7}
}

func toyRange(line, column int) any {
	at := map[string]int{"line": line, "character": column}
	return map[string]any{"start": at, "end": at}
}

// reportAll reports the diagnostics of all files. Open files come last.
func (s *languageServer) reportAll() {
	if s.hasMode("mute") || s.hasMode("pull") {
		return
	}
	if s.hasMode("others") {
		s.report("file:///etc/passwd", []any{toyDiagnostic(0, 0, 1, "elsewhere")}, nil)
		s.report(workspace.ToURI(filepath.Join(filepath.Dir(s.root), "beside.toy")), []any{toyDiagnostic(0, 0, 1, "elsewhere")}, nil)
	}
	uris := slices.SortedFunc(maps.Keys(s.texts), func(a, b string) int { return s.versions[a] - s.versions[b] })
	for _, uri := range uris {
		list := s.check(uri)
		if s.hasMode("staged") {
			if last, ok := s.lastReports[uri]; ok {
				s.report(uri, last, nil)
			}
			time.Sleep(50 * time.Millisecond) // the stages are apart
			s.lastReports[uri] = list
		}
		var version any
		if v, open := s.versions[uri]; open && !s.hasMode("unversioned") && !s.hasMode("staged") {
			version = v
		}
		s.report(uri, list, version)
	}
}

func (s *languageServer) report(uri string, list, version any) {
	p := map[string]any{"uri": uri, "diagnostics": list}
	if version != nil {
		p["version"] = version
	}
	_ = s.conn.Notify(context.Background(), "textDocument/publishDiagnostics", p) // the client may be gone
}

// locations finds the definitions, or the uses, of the name on a line.
func (s *languageServer) locations(uri string, line int, method string) (out []any) {
	target := ""
	s.words(uri, func(_, name string, l, _ int) {
		if l == line {
			target = name
		}
	})
	for _, other := range slices.Sorted(maps.Keys(s.texts)) {
		s.words(other, func(kind, name string, l, column int) {
			if name == target && (kind == "DEF") == (method == "textDocument/definition") {
				out = append(out, map[string]any{"uri": other, "range": toyRange(l, column)})
			}
		})
	}
	return out
}

func (s *languageServer) symbols(uri string) (out []any) {
	s.words(uri, func(kind, name string, line, column int) {
		if kind == "DEF" {
			out = append(out, map[string]any{"name": name, "kind": 12, "location": map[string]any{"uri": uri, "range": toyRange(line, column)}})
		}
	})
	return out
}
