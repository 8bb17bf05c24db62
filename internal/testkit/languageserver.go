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

// LanguageServer is the name of the argument that makes a test program serve a language on its
// standard streams: call ServeLanguage first in TestMain. The language has errors (ERR word), warnings (WARN word),
// definitions (DEF name) and uses (USE name), which are errors in files of a project without such a
// definition. Further arguments choose how the server behaves:
//
//	unversioned  its reports do not say about which version they are
//	staged       each report comes after a repetition of the one before
//	pull         it is asked for diagnostics; dependent says that those of a file depend on others
//	mute         it reports nothing
//	stuck        it does not answer initialize
//	crash        it ends when a document changes; crash-start ends at once
//	flood        it sends messages without end after initialize
//	many         it reports 100,000 errors in each file
//	others       it reports about files outside the workspace
//	deaf         it stops reading after initialize
const LanguageServer = "serve-test-language"

// ServeLanguage serves the language if the program's arguments request it.
func ServeLanguage(args []string) bool {
	if len(args) < 2 || args[1] != LanguageServer {
		return false
	}
	s := &languageServer{modes: args[2:], texts: map[string]string{}, versions: map[string]int{}, last: map[string]any{}}
	if s.is("crash-start") {
		fmt.Fprintln(os.Stderr, "cannot start")
		os.Exit(3)
	}
	s.conn = jsonrpc.NewConn(os.Stdin, os.Stdout, jsonrpc.Options{FirstID: 1})
	s.conn.Start(context.Background(), s.handle)
	<-s.conn.Done()
	return true
}

type languageServer struct {
	modes    []string
	conn     *jsonrpc.Conn
	root     string
	texts    map[string]string // by URI
	versions map[string]int
	last     map[string]any
}

func (s *languageServer) is(mode string) bool {
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
	_ = json.Unmarshal(req.Params, &p) // then it is empty
	uri := p.TextDocument.URI
	switch req.Method {
	case "initialize":
		return s.initialize(p.RootURI)
	case "initialized":
		if s.is("flood") {
			go func() {
				line := map[string]string{"message": strings.Repeat("x", 1<<16)}
				for s.conn.Notify(context.Background(), "window/logMessage", line) == nil {
				}
			}()
		}
		if s.is("deaf") {
			select {}
		}
	case "textDocument/didOpen":
		s.texts[uri], s.versions[uri] = p.TextDocument.Text, p.TextDocument.Version
		s.reportAll()
	case "textDocument/didChange":
		if s.is("crash") {
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
		return s.places(uri, p.Position.Line, req.Method), nil
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
	if s.is("stuck") {
		return jsonrpc.Deferred, nil
	}
	s.root = workspace.FromURI(root)
	s.read()
	can := map[string]any{"textDocumentSync": map[string]any{"openClose": true, "change": 1, "save": true}}
	if s.is("pull") {
		can["diagnosticProvider"] = map[string]any{"interFileDependencies": s.is("dependent")}
	}
	return map[string]any{"capabilities": can}, nil
}

// read reads the files of the project that no client has open.
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
	if s.is("many") {
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

// reportAll reports about all files, the open ones last.
func (s *languageServer) reportAll() {
	if s.is("mute") || s.is("pull") {
		return
	}
	if s.is("others") {
		s.report("file:///etc/passwd", []any{toyDiagnostic(0, 0, 1, "elsewhere")}, nil)
		s.report(workspace.ToURI(filepath.Join(filepath.Dir(s.root), "beside.toy")), []any{toyDiagnostic(0, 0, 1, "elsewhere")}, nil)
	}
	uris := slices.SortedFunc(maps.Keys(s.texts), func(a, b string) int { return s.versions[a] - s.versions[b] })
	for _, uri := range uris {
		list := s.check(uri)
		if s.is("staged") {
			if last, ok := s.last[uri]; ok {
				s.report(uri, last, nil)
			}
			time.Sleep(50 * time.Millisecond) // the stages are apart
			s.last[uri] = list
		}
		var version any
		if v, open := s.versions[uri]; open && !s.is("unversioned") && !s.is("staged") {
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

// places finds the definitions, or the uses, of the name on a line.
func (s *languageServer) places(uri string, line int, method string) (out []any) {
	wanted := ""
	s.words(uri, func(_, name string, l, _ int) {
		if l == line {
			wanted = name
		}
	})
	for _, other := range slices.Sorted(maps.Keys(s.texts)) {
		s.words(other, func(kind, name string, l, column int) {
			if name == wanted && (kind == "DEF") == (method == "textDocument/definition") {
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
