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

// NodeTools returns the node to use and the folder of the installed packages. It skips the test
// if none are found, or one of those that the test names is not among them.
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
	t.Fatal("there is no node")
	return "", ""
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// NodeServer returns the entry point of a reference server: everything, filesystem or memory.
func NodeServer(modules, name string) string {
	return filepath.Join(modules, "@modelcontextprotocol", "server-"+name, "dist", "index.js")
}

// Everything starts the server everything over HTTP (streamableHttp or sse) and returns its
// address. The server stops when the test ends.
func Everything(t testing.TB, node, modules, transport string) (url string) {
	t.Helper()
	address := OnPort(t, " on port ", func(port string) []string { return []string{node, NodeServer(modules, "everything"), transport} })
	path := "/mcp"
	if transport == "sse" {
		path = "/sse"
	}
	return address + path
}

// OnPort starts a server on a port of this machine, which it passes in argv and in the variable
// PORT, and returns its address. It waits until the server prints ready with the port. The server
// stops when the test ends.
func OnPort(t testing.TB, ready string, argv func(port string) []string) (address string) {
	t.Helper()
	said := ""
	for range 3 { // another process may take the port before the server does
		if address, said = onPort(t, ready, argv); address != "" {
			return address
		}
	}
	t.Fatalf("the server does not start:\n%s", said)
	return ""
}

// onPort is one attempt; the address is empty if the server exits.
func onPort(t testing.TB, ready string, argv func(port string) []string) (address, said string) {
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
	for !strings.Contains(said, ready+port) {
		line, err := lines.ReadString('\n')
		if said += line; err != nil {
			return "", said
		}
	}
	work.Go(func() { _, _ = io.Copy(io.Discard, lines) })
	return "http://127.0.0.1:" + port, said
}
