package testkit

import (
	"bufio"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// NodeTools returns the path of node and the folder of the installed npm packages. It skips the test
// if ECA_NODE_TOOLS is not set or one of the given packages is missing.
func NodeTools(t testing.TB, getenv func(string) string, packages ...string) (node, modules string) {
	t.Helper()
	const install = "mkdir -p DIR && cp .ci/node/package*.json DIR && npm ci --ignore-scripts --prefix DIR"
	dir := getenv("ECA_NODE_TOOLS")
	if dir == "" {
		t.Skip("NOT TESTED: packages from npm are missing; set ECA_NODE_TOOLS to a folder DIR made with: " + install)
	}
	modules = filepath.Join(dir, "node_modules")
	for _, name := range packages {
		if !fileExists(filepath.Join(modules, name)) {
			t.Skipf("NOT TESTED: %s is not installed in ECA_NODE_TOOLS; run: %s", name, install)
		}
	}
	if found, _ := filepath.Glob(filepath.Join(modules, "node-*", "bin", "node")); len(found) > 0 {
		return found[0], modules
	}
	for _, dir := range filepath.SplitList(getenv("PATH")) { // npm has no package of node for every system
		if path := filepath.Join(dir, "node"); fileExists(path) {
			return path, modules
		}
	}
	t.Fatal("node is neither installed in ECA_NODE_TOOLS nor on PATH")
	return "", ""
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// NodeServer returns the entry point of an MCP reference server: everything, filesystem or memory.
func NodeServer(modules, name string) string {
	return filepath.Join(modules, "@modelcontextprotocol", "server-"+name, "dist", "index.js")
}

// Everything starts the MCP reference server "everything" over HTTP (streamableHttp or sse) and
// returns its address. The server stops when the test ends.
func Everything(t testing.TB, node, modules, transport string) (url string) {
	t.Helper()
	address := OnPort(t, " on port ", func(port string) []string { return []string{node, NodeServer(modules, "everything"), transport} })
	path := "/mcp"
	if transport == "sse" {
		path = "/sse"
	}
	return address + path
}

// OnPort starts a server on a free port of this machine and returns its address. The server gets the
// port through argv and the environment variable PORT. OnPort waits until the server prints ready,
// followed by the port. The server stops when the test ends.
func OnPort(t testing.TB, ready string, argv func(port string) []string) (address string) {
	t.Helper()
	output := ""
	for range 3 { // another process may take the port before the server listens on it
		if address, output = tryOnPort(t, ready, argv); address != "" {
			return address
		}
	}
	t.Fatalf("the server does not start:\n%s", output)
	return ""
}

// tryOnPort is one attempt; the address is empty if the server exits.
func tryOnPort(t testing.TB, ready string, argv func(port string) []string) (address, output string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	_ = l.Close() // for the server
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.StartProcess(argv(port)[0], argv(port), &os.ProcAttr{
		Env: append(os.Environ(), "PORT="+port), Files: []*os.File{nil, w, w},
	})
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	t.Cleanup(func() {
		_ = p.Kill()
		_, _ = p.Wait()
		work.Wait()
		_ = r.Close()
	})
	lines := bufio.NewReader(r)
	for !strings.Contains(output, ready+port) {
		line, err := lines.ReadString('\n')
		if output += line; err != nil {
			return "", output
		}
	}
	work.Go(func() { _, _ = io.Copy(io.Discard, lines) })
	return "http://127.0.0.1:" + port, output
}
