package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// referenceFails are the tests of the suite that fail because they expect defects of the reference
// server: of its requests to Ollama (docs/compatibility.md).
var referenceFails = []string{"ollama-test/reasoning-text", "ollama-test/tool-calling"}

// clojureShim replaces Clojure's command line, with which the suite starts its MCP server.
const clojureShim = `#!/bin/sh
if [ "$1" = -Stree ]; then exit 0; fi
exec java -cp "src:$ECA_REFERENCE_CLASSPATH" clojure.main -m mcp-server-sample.main
`

// runReference runs the suite and prints the outcome of each of its tests.
const runReference = `(require 'entrypoint) (in-ns 'entrypoint)
(def failed (atom #{}))
(defn log-tail-report [data]
  (original-report data)
  (case (:type data)
    (:fail :error) (swap! failed conj (first t/*testing-vars*))
    :end-test-var (println (str "\nRESULT " (if (@failed (:var data)) "FAIL " "PASS ") (:var data)))
    nil))
(run-all (System/getenv "ECA_BINARY") {})`

// The integration suite of the reference server is not in any registry; CONTRIBUTING.md says how to
// prepare its checkout and its class path.
func TestReferenceSuite(t *testing.T) {
	suite, classpath := os.Getenv("ECA_REFERENCE"), os.Getenv("ECA_REFERENCE_CLASSPATH")
	if suite == "" || classpath == "" {
		t.Skip("NOT TESTED: set ECA_REFERENCE to a checkout of the reference server and ECA_REFERENCE_CLASSPATH to the class path of its suite; see CONTRIBUTING.md")
	}
	needs.POSIX(t)
	java := needs.Program(t, "java", "openjdk-17-jre-headless")
	work := t.TempDir()
	if err := os.CopyFS(filepath.Join(work, "integration-test"), os.DirFS(filepath.Join(suite, "integration-test"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sample-test", "mcp-server-sample"} { // babashka looks for them beside the sources
		if err := os.Symlink(filepath.Join(work, "integration-test", name), filepath.Join(work, name)); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(work, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "clojure"), []byte(clojureShim), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	eca := filepath.Join(bin, "eca")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", eca, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), java, "-cp", "integration-test:"+classpath, "clojure.main", "-e", runReference)
	cmd.Dir = work
	cmd.Env = append(os.Environ(), "ECA_BINARY="+eca, "HOME="+work, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, _ := cmd.CombinedOutput() // the code is the number of failures
	results := regexp.MustCompile(`(?m)^RESULT (PASS|FAIL) #'(\S+)`).FindAllSubmatch(out, -1)
	if len(results) == 0 {
		t.Fatalf("the suite did not run:\n%s", out)
	}
	failed := 0
	for _, r := range results {
		name := string(r[2])
		if bytes.Equal(r[1], []byte("FAIL")) {
			failed++
			if !slices.ContainsFunc(referenceFails, func(known string) bool { return strings.HasSuffix(name, known) }) {
				t.Errorf("%s fails", name)
			}
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
	t.Logf("%d of %d tests of the reference server pass", len(results)-failed, len(results))
}
