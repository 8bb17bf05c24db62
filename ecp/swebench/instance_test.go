package swebench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const row = `{"instance_id": "a__b-1", "base_commit": "0123456789", "problem_statement": "p", "FAIL_TO_PASS": "[\"f\"]", "PASS_TO_PASS": [], "image": "i", "eval_script": "s", "log_parser": "parse_log_pytest"}`

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Rows come as an array, as lines, or as a task repository.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	repo := filepath.Join(dir, "repo")
	write(t, filepath.Join(repo, "sweb.yaml"), "")
	task := filepath.Join(repo, "tasks", "a__b-1")
	write(t, filepath.Join(task, "task.yaml"), "base_commit: \"0123456789\"\nimage: i\nlog_parser: parse_log_pytest\n")
	write(t, filepath.Join(task, "tests.json"), `{"FAIL_TO_PASS": ["f"], "PASS_TO_PASS": []}`)
	write(t, filepath.Join(task, "problem_statement.md"), "p")
	write(t, filepath.Join(task, "eval.sh"), "s")
	for _, source := range []string{write(t, filepath.Join(dir, "a.json"), "["+row+"]"), write(t, filepath.Join(dir, "a.jsonl"), row+"\n"), repo} {
		list, err := Read(t.Context(), source, Defaults{})
		if err != nil || len(list) != 1 || list[0].ID != "a__b-1" || list[0].FailToPass[0] != "f" || list[0].Problem != "p" || list[0].Script != "s" || list[0].Type != "pass_and_fail" {
			t.Errorf("%s: %v: %+v", source, err, list)
		}
	}
}

// Instances that cannot be expressed are refused with the column.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	for want, text := range map[string]string{
		"instance_id: ":        strings.Replace(row, "a__b-1", "../x", 1),
		"base_commit: ":        strings.Replace(row, "0123456789", "main; rm -rf /", 1),
		"problem_statement: ":  strings.Replace(row, `"p"`, `" "`, 1),
		"FAIL_TO_PASS: ":       strings.Replace(row, `"[\"f\"]"`, `[]`, 1),
		"not a list of names":  strings.Replace(row, `"[\"f\"]"`, `"f"`, 1),
		"--image-template":     strings.Replace(row, `"image"`, `"x"`, 1),
		"--test-command":       strings.Replace(row, `"eval_script"`, `"x"`, 1),
		"--log-parser":         strings.Replace(row, `"log_parser"`, `"x"`, 1),
		`"parse_log_tap" cann`: strings.Replace(row, "parse_log_pytest", "parse_log_tap", 1),
		"eval_type: ":          strings.Replace(row, `"image"`, `"eval_type": "other", "image"`, 1),
		"image_assets: ":       strings.Replace(row, `"image"`, `"image_assets": {"problem_statement": ["x.png"]}, "image"`, 1),
		"two instances have":   row + row,
		"row 2: ":              row + "{",
		"has no instances":     "[]",
	} {
		if _, err := Read(t.Context(), write(t, filepath.Join(dir, "rows.jsonl"), text), Defaults{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := Read(t.Context(), write(t, filepath.Join(dir, "rows.parquet"), ""), Defaults{}); err == nil || !strings.Contains(err.Error(), "to_json") {
		t.Error(err)
	}
	if _, err := Read(t.Context(), dir, Defaults{}); err == nil || !strings.Contains(err.Error(), "not a task repository") {
		t.Error(err)
	}
	for want, text := range map[string]string{
		"there is no instance":  `{"instance_id": "x", "model_patch": ""}`,
		"two rows have":         strings.Repeat(`{"instance_id": "a__b-1", "model_patch": ""}`, 2),
		"rows.jsonl has no pre": "",
	} {
		if _, err := Predict(t.Context(), []Instance{{ID: "a__b-1"}}, write(t, filepath.Join(dir, "rows.jsonl"), text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// A script that is made from test_patch restores what the patch changes, and runs what it leaves.
func TestTestScript(t *testing.T) {
	patch := "diff --git a/t/a b.py b/t/a b.py\n--- a/t/a b.py\t\n+++ b/t/a b.py\t\n@@ -1 +1 @@\n--- a/not.py\n+++ b/not.py\ndiff --git a/new.py b/new.py\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x\ndiff --git a/old.py b/old.py\n--- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x"
	got := testScript(Instance{BaseCommit: "abc1234", TestPatch: patch}, "test {files}")
	for _, want := range []string{"\ngit checkout abc1234 -- 't/a b.py' 'old.py'\nrm -f -- 'new.py'\ngit apply", "\n-x\nECP_END_OF_TEST_PATCH\n", "Start Test Output'\ntest 't/a b.py' 'new.py'\necho '>>>>> End"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	if strings.Contains(strings.ReplaceAll(got, patch, ""), "not.py") {
		t.Error(got)
	}
}
