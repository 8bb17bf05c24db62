package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/proc"
)

// ecosystem is a small project with its usual commands.
type ecosystem struct {
	name     string
	programs map[string]string // that it needs, with the packages that have them
	fill     string            // fills the caches, with the network and without a sandbox
	clean    []string          // removed after that, so that the build has to use the caches
	build    string            // builds and tests
	files    string            // txtar
}

var ecosystems = []ecosystem{
	{
		name: "go", programs: map[string]string{"go": "golang"},
		fill: `go mod tidy && go test ./...`, build: `go vet ./... && go build ./... && go test -count=1 ./...`,
		files: `
-- go.mod --
module example.org/small

go 1.24

require github.com/google/go-cmp v0.7.0
-- small.go --
package small

import "net/http"

// Hello answers requests.
func Hello(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }
-- small_test.go --
package small

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHello(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(Hello))
	defer s.Close()
	res, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(res.Body)
	if diff := cmp.Diff("hello", string(got)); diff != "" || err != nil {
		t.Error(diff, err)
	}
}
`,
	},
	{
		name: "cargo", programs: map[string]string{"cargo": "cargo"},
		fill: `cargo test`, clean: []string{"target"}, build: `cargo build --offline && cargo test --offline`,
		files: `
-- Cargo.toml --
[workspace]
members = ["inner"]

[package]
name = "small"
version = "0.1.0"
edition = "2021"

[dependencies]
inner = { path = "inner" }
-- inner/Cargo.toml --
[package]
name = "inner"
version = "0.1.0"
edition = "2021"
-- inner/src/lib.rs --
pub fn twice(n: u32) -> u32 { 2 * n }
-- src/lib.rs --
//! A small crate.

/// Doubles twice.
///
/// ` + "```" + `
/// assert_eq!(small::four(1), 4);
/// ` + "```" + `
pub fn four(n: u32) -> u32 { inner::twice(inner::twice(n)) }

#[cfg(test)]
mod tests {
    use std::io::Write;

    #[test]
    fn works() {
        assert_eq!(super::four(2), 8);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut s = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        s.write_all(b"x").unwrap();
    }
}
`,
	},
	{
		name: "npm", programs: map[string]string{"npm": "npm"},
		fill: `npm install --no-audit --no-fund`, clean: []string{"node_modules"}, build: `npm ci --offline --no-audit --no-fund && npm run build && npm test`,
		files: nodeProject,
	},
	{
		name: "pnpm", programs: map[string]string{"pnpm": "npm, then: npm install -g pnpm"},
		fill: `pnpm install`, clean: []string{"node_modules"}, build: `pnpm install --offline --frozen-lockfile && pnpm run build && pnpm test`,
		files: nodeProject,
	},
	{
		name: "pip", programs: map[string]string{"python3": "python3-venv"},
		fill: `python3 -m venv .venv && .venv/bin/pip install pytest && .venv/bin/pip download -d wheels pytest`, clean: []string{".venv"},
		build: `python3 -m venv .venv && .venv/bin/pip install --no-index --find-links wheels pytest && .venv/bin/python -m pytest`,
		files: pythonProject,
	},
	{
		name: "uv", programs: map[string]string{"uv": "pipx, then: pipx install uv"},
		fill: `uv sync`, clean: []string{".venv"}, build: `uv sync --offline && uv run --offline pytest`,
		files: pythonProject,
	},
	{
		name: "maven", programs: map[string]string{"mvn": "maven"},
		fill: `mvn -q -B package`, clean: []string{"target"}, build: `mvn -o -q -B package`,
		files: `
-- pom.xml --
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.example</groupId>
  <artifactId>small</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.source>11</maven.compiler.source>
    <maven.compiler.target>11</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.13.2</version><scope>test</scope></dependency>
  </dependencies>
</project>
` + javaSources,
	},
	{
		name: "gradle", programs: map[string]string{"gradle": "gradle"},
		// Java takes the home folder from the system's list of users, not from HOME.
		fill: `GRADLE_USER_HOME="$HOME/.gradle" gradle --no-daemon build`, clean: []string{"build", ".gradle"}, build: `GRADLE_USER_HOME="$HOME/.gradle" gradle --offline --no-daemon build`,
		files: `
-- settings.gradle --
rootProject.name = 'small'
-- build.gradle --
apply plugin: 'java'
repositories { mavenCentral() }
dependencies {
    def new_names = configurations.findByName('testImplementation') != null
    add(new_names ? 'testImplementation' : 'testCompile', 'junit:junit:4.13.2')
}
` + javaSources,
	},
	{
		name: "make", programs: map[string]string{"make": "make", "cc": "gcc"},
		build: `make -j2 && make test`,
		files: `
-- Makefile --
small: main.o twice.o
	$(CC) -o $@ $^

%.o: %.c
	$(CC) -c -o $@ $<

test: small
	test "$$(./small)" = 4
.PHONY: test
` + cSources,
	},
	{
		name: "cmake", programs: map[string]string{"cmake": "cmake", "make": "make", "cc": "gcc"},
		build: `cmake -S . -B build && cmake --build build -j 2 && ctest --test-dir build --output-on-failure`,
		files: `
-- CMakeLists.txt --
cmake_minimum_required(VERSION 3.16)
project(small C)
enable_testing()
add_executable(small main.c twice.c)
add_test(NAME small COMMAND small)
set_tests_properties(small PROPERTIES PASS_REGULAR_EXPRESSION "4")
` + cSources,
	},
	{
		name: "bundler", programs: map[string]string{"bundle": "bundler", "rake": "rake ruby-minitest"},
		build: `bundle install --local && bundle exec rake test`,
		files: `
-- Gemfile --
source "https://rubygems.org"
gem "rake"
gem "minitest"
-- Rakefile --
require "rake/testtask"
Rake::TestTask.new { |t| t.pattern = "test/*_test.rb" }
-- test/small_test.rb --
require "minitest/autorun"
require "socket"
class SmallTest < Minitest::Test
  def test_twice
    assert_equal 4, 2 * 2
  end

  def test_server
    server = TCPServer.new("127.0.0.1", 0)
    client = TCPSocket.new("127.0.0.1", server.addr[1])
    client.close
    server.close
  end
end
`,
	},
}

const nodeProject = `
-- package.json --
{"name": "small", "version": "1.0.0", "private": true, "scripts": {"build": "node build.js", "test": "node --test"}, "dependencies": {"is-number": "7.0.0"}}
-- build.js --
require("fs").writeFileSync("built.js", "module.exports = " + require("is-number")(5) + ";\n");
-- small.test.js --
const test = require("node:test");
const assert = require("node:assert");
const http = require("node:http");
test("is built", () => assert.ok(require("./built.js")));
test("serves", (t, done) => {
  const server = http.createServer((_, res) => res.end("hello")).listen(0, "127.0.0.1", () => {
    http.get({ port: server.address().port, host: "127.0.0.1" }, (res) => {
      res.resume().on("end", () => server.close(done));
    });
  });
});
`

const pythonProject = `
-- pyproject.toml --
[project]
name = "small"
version = "0.1"
requires-python = ">=3.9"
dependencies = ["pytest"]
-- small.py --
def twice(n):
    return 2 * n
-- test_small.py --
import multiprocessing
import socket
import small

def test_twice(tmp_path):
    (tmp_path / "x").write_text("x")
    assert small.twice(2) == 4

def test_processes():
    with multiprocessing.Pool(2) as pool:
        assert pool.map(small.twice, [1, 2]) == [2, 4]

def test_server():
    server = socket.create_server(("127.0.0.1", 0))
    socket.create_connection(server.getsockname()).close()
`

const javaSources = `
-- src/main/java/org/example/Small.java --
package org.example;

public class Small {
    public static int twice(int n) { return 2 * n; }
}
-- src/test/java/org/example/SmallTest.java --
package org.example;

import static org.junit.Assert.assertEquals;

import java.net.ServerSocket;
import java.net.Socket;
import org.junit.Test;

public class SmallTest {
    @Test public void twice() { assertEquals(4, Small.twice(2)); }

    @Test public void server() throws Exception {
        try (ServerSocket server = new ServerSocket(0, 1, java.net.InetAddress.getLoopbackAddress());
             Socket client = new Socket(server.getInetAddress(), server.getLocalPort())) {
            client.getOutputStream().write(1);
        }
    }
}
`

const cSources = `
-- twice.c --
int twice(int n) { return 2 * n; }
-- main.c --
#include <stdio.h>
int twice(int n);
int main(void) { printf("%d\n", twice(2)); return 0; }
`

// The usual commands of ten ecosystems build and test small projects in the sandbox like outside
// it: without a question, without network, and from their caches.
func TestEcosystems(t *testing.T) {
	needs.Long(t)
	home := os.Getenv("ECA_ECOSYSTEMS")
	if home == "" {
		t.Skip("NOT TESTED: ECA_ECOSYSTEMS has to name a folder for the caches of build tools, outside the temporary one; they are filled from the network once")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if s := proc.NewPool(self, 0).Bounds(); !s.Holds {
		t.Skipf("NOT TESTED: there is no sandbox here (%s); use Linux 6.2 or newer", s.Without)
	}
	for _, e := range ecosystems {
		t.Run(e.name, func(t *testing.T) { e.try(t, home) })
	}
}

func (e ecosystem) try(t *testing.T, home string) {
	t.Helper()
	for program, pkg := range e.programs {
		needs.Program(t, program, pkg)
	}
	line, err := json.Marshal(`if : 2>/dev/null >"$HOME/outside"; then echo "not in a sandbox"; exit 9; fi; ` + e.build + ` && touch passed`)
	if err != nil {
		t.Fatal(err)
	}
	// eca's own folders are not in the temporary folder, so that commands share that: Java does not obey
	// TMPDIR.
	t.Setenv("TMPDIR", home)
	p := newProvider(t, `
cassette: 1
default:
  steps:
    - calls: [{id: a, tool: eca__shell_command, arguments: {timeout: 600000, command: `+string(line)+`}}]
    - {text: Done.}
turns: []
`)
	here := newPlace(t, p.env()...)
	project := filepath.Join(home, "projects")
	if err := os.MkdirAll(project, 0o755); err != nil {
		t.Fatal(err)
	}
	if here.root, err = os.MkdirTemp(project, e.name+"-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(here.root) })
	here.env = append(here.env, "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, ".cache"), `ECA_CONFIG={"chat":{"title":false},"toolCall":{"sandbox":"required","sandboxNetwork":false}}`)
	for _, name := range []string{"RUSTUP_HOME", "GOCACHE", "GOPROXY", "SSL_CERT_FILE", "UV_NATIVE_TLS"} {
		if value := os.Getenv(name); value != "" {
			here.env = append(here.env, name+"="+value)
		}
	}
	for _, f := range txtar.Parse([]byte(e.files)).Files {
		path := filepath.Join(here.root, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if e.fill != "" {
		cmd := exec.Command("bash", "-c", e.fill)
		cmd.Dir, cmd.Env = here.root, here.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("NOT TESTED: %s does not work outside the sandbox either (%v); it needs the network once:\n%s", e.fill, err, out)
		}
	}
	for _, name := range e.clean {
		if err := os.RemoveAll(filepath.Join(here.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	stdout, stderr, _ := runProgram(t, here, "", "exec", "--approve", "all", "build it")
	if _, err := os.Stat(filepath.Join(here.root, "passed")); err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		last := ""
		if len(p.bodies) > 0 {
			last = p.bodies[len(p.bodies)-1]
			last = last[max(0, strings.LastIndex(last, "Exit code")):]
		}
		t.Errorf("%s\n%s%s\n%s", e.build, stdout, stderr, last)
	}
}
