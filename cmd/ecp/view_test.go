package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// startView starts ecp view, and returns its first page.
func startView(t *testing.T, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	code := make(chan int, 1)
	var errs strings.Builder
	go func() {
		code <- run(ctx, append([]string{"view", "--no-open"}, args...), streams{writer, &errs})
		_ = writer.Close()
	}()
	address, _ := bufio.NewReader(reader).ReadString('\n')
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	body := ""
	if address != "" {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSpace(address), nil)
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		body = string(data)
	}
	stop()
	if got := <-code; got != 0 {
		t.Errorf("exit %d: %s", got, errs.String())
	}
	return body
}

// ecp view shows run files and JSON reports, or by default the run files of its folder.
func TestView(t *testing.T) {
	isolateEnvironment(t)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	m := manifest(t, agentTarget(t, "fail:bad"), scenario("first", has("x"), "x")+scenario("second", has("other"), "y"))
	out, _ := evaluateManifest(t, m, "--run-file", file("a.ecprun"), "--json-out", file("a.json"), "--repeat", "2")
	if out.code != exitFailed {
		t.Fatalf("exit %d: %s", out.code, out.err)
	}
	for _, name := range []string{"a.ecprun", "a.json"} {
		if body := startView(t, file(name)); !strings.Contains(body, "2 of 2 scenarios") || !strings.Contains(body, "text_match: Expected to contain &#39;other&#39;") {
			t.Errorf("%s: %s", name, body)
		}
	}
	if body := startView(t, file("a.ecprun"), file("a.json")); !strings.Contains(body, "/run/1/") {
		t.Error(body)
	}
	t.Chdir(dir)
	if body := startView(t); !strings.Contains(body, "2 of 2 scenarios") {
		t.Error(body)
	}
	if left, err := filepath.Glob(file("*")); err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestViewRefused(t *testing.T) {
	isolateEnvironment(t)
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, "not.json", "{}")
	for want, args := range map[string][]string{
		"there is no run file (*.ecprun) in this folder": {},
		"ecp view takes run files":                       {"not.json"},
		"open the run file":                              {"missing.ecprun"},
		"--http: at 0.0.0.0 other machines could":        {"--http", "0.0.0.0:0"},
		"--http: the address must be host":               {"--http", "x"},
	} {
		got := invoke(t, append([]string{"view", "--no-open"}, args...)...)
		if got.code == 0 || !strings.Contains(got.err, want) {
			t.Errorf("%v: exit %d: %s", args, got.code, got.err)
		}
	}
}
