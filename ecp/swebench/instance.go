// Package swebench reads instances of SWE-bench (an issue of a repository, and the tests that a
// solution has to pass), and writes them as scenarios of a manifest, each with a folder of hidden
// tests.
//
// Guarantees: Read returns an error that names the instance, the column and the reason if a manifest
// cannot express an instance. The package runs no programs and sends no requests.
package swebench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/seed-dec29ce4/eca/ecp/grade"
	"github.com/seed-dec29ce4/eca/internal/pattern"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Instance is a row of the data set, or a folder of a task repository.
type Instance struct {
	ID          string    `json:"instance_id"`
	BaseCommit  string    `json:"base_commit"`
	Problem     string    `json:"problem_statement"`
	Hints       string    `json:"hints_text"`
	Patch       string    `json:"patch"` // the solution
	TestPatch   string    `json:"test_patch"`
	FailToPass  testNames `json:"FAIL_TO_PASS"`
	PassToPass  testNames `json:"PASS_TO_PASS"`
	Image       string    `json:"image"`
	Script      string    `json:"eval_script"`
	Parser      string    `json:"log_parser"`
	Type        string    `json:"eval_type"`
	ImageAssets any       `json:"image_assets"`
	prediction  *string   // a patch that is graded instead of an agent's changes
	assets      []string  // files in test_assets of the task's folder
}

// testNames are names of tests. In JSON, they are a list, or a string that contains a JSON list.
type testNames []string

// UnmarshalJSON implements json.Unmarshaler.
func (n *testNames) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		data = []byte(text)
	}
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return errors.New("not a list of names")
	}
	*n = list
	return nil
}

// Defaults has values for columns that older data sets lack. The values of a row take precedence.
type Defaults struct {
	Image       string // {id} is replaced with the id of the instance
	TestCommand string // {files} is replaced with the files in test_patch
	Parser      string
}

// maxSource bounds the size of a source file, in bytes.
const maxSource = 1 << 30

// Read reads instances from a file with a JSON array or JSON lines, or from a task repository. The
// error lists the problems of all instances.
func Read(ctx context.Context, source string, d Defaults) ([]Instance, error) {
	info, err := os.Stat(source)
	if err != nil {
		return nil, err
	}
	var list []Instance
	switch {
	case info.IsDir():
		list, err = readFolder(source)
	case filepath.Ext(source) == ".parquet":
		return nil, fmt.Errorf("%s: Parquet is not read; convert it first: python3 -c \"import pandas; pandas.read_parquet('%[1]s').to_json('instances.jsonl', orient='records', lines=True)\"", source)
	case info.Size() > maxSource:
		return nil, fmt.Errorf("%s is larger than %d MiB", source, maxSource>>20)
	default:
		list, err = readRows[Instance](ctx, source)
	}
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no instances", source)
	}
	var problems []error
	seen := map[string]bool{}
	for i := range list {
		in := &list[i]
		in.applyDefaults(d)
		for _, p := range in.problems() {
			problems = append(problems, fmt.Errorf("%s: instance %d (%.80q): %s", source, i+1, in.ID, p))
		}
		if seen[in.ID] {
			problems = append(problems, fmt.Errorf("%s: two instances have the instance_id %.80q", source, in.ID))
		}
		seen[in.ID] = true
	}
	return list, errors.Join(problems...)
}

// readRows reads a JSON array, or a sequence of JSON values.
func readRows[T any](ctx context.Context, path string) (out []T, err error) {
	data, err := safeio.ReadInput(ctx, path, maxSource)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		if err := json.Unmarshal(data, &out); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return out, nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		var row T
		if err := dec.Decode(&row); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", path, len(out)+1, err)
		}
		out = append(out, row)
	}
}

// readFolder reads a task repository. Each folder tasks/ID contains a task.yaml, and files with the
// longer columns.
func readFolder(dir string) (out []Instance, err error) {
	if _, err := os.Stat(filepath.Join(dir, "sweb.yaml")); err != nil {
		return nil, fmt.Errorf("%s is not a task repository of SWE-bench: %w", dir, err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "tasks"))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		in, err := readTask(filepath.Join(dir, "tasks", e.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, in)
	}
	return out, nil
}

func readTask(dir string) (in Instance, err error) {
	in.ID = filepath.Base(dir)
	var columns map[string]any
	for _, name := range []string{"task.yaml", "tests.json"} {
		data, err := safeio.Read(filepath.Join(dir, name), maxSource)
		if err != nil {
			return in, err
		}
		if err := yaml.Unmarshal(data, &columns); err != nil { // JSON is YAML
			return in, fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
		}
		text, err := json.Marshal(columns)
		if err == nil {
			err = json.Unmarshal(text, &in)
		}
		if err != nil {
			return in, fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
		}
	}
	for name, into := range map[string]*string{"problem_statement.md": &in.Problem, "hints.md": &in.Hints, "gold.patch": &in.Patch, "test.patch": &in.TestPatch, "eval.sh": &in.Script} {
		data, err := safeio.Read(filepath.Join(dir, name), maxSource)
		if err == nil {
			*into = string(data)
		} else if !errors.Is(err, os.ErrNotExist) {
			return in, err
		}
	}
	assets, err := os.ReadDir(filepath.Join(dir, "test_assets"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return in, err
	}
	for _, a := range assets {
		in.assets = append(in.assets, a.Name())
	}
	return in, nil
}

// applyDefaults fills in missing columns from the defaults.
func (in *Instance) applyDefaults(d Defaults) {
	if in.Image == "" && d.Image != "" {
		id := strings.ToLower(in.ID)
		if strings.Contains(d.Image, "/") { // names in registries cannot contain two underscores
			id = strings.ReplaceAll(id, "__", "_1776_")
		}
		in.Image = strings.ReplaceAll(d.Image, "{id}", id)
	}
	if in.Parser == "" {
		in.Parser = d.Parser
	}
	if in.Type == "" {
		in.Type = "pass_and_fail"
	}
	if in.Script == "" && d.TestCommand != "" && in.TestPatch != "" && commit().MatchString(in.BaseCommit) {
		in.Script = testScript(*in, d.TestCommand)
	}
}

var (
	instanceID = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$`)
	commit     = pattern.Lazy(`^[0-9a-f]{7,64}$`)
)

// problems lists the columns that are missing, invalid, or cannot be expressed in a manifest.
func (in *Instance) problems() (out []string) {
	reject := func(refuse bool, why string, args ...any) {
		if refuse {
			out = append(out, fmt.Sprintf(why, args...))
		}
	}
	reject(!instanceID().MatchString(in.ID), "instance_id: it is missing, or not a name of letters, digits, dots, dashes and underscores")
	reject(!commit().MatchString(in.BaseCommit), "base_commit: %.70q is not a commit", in.BaseCommit)
	reject(strings.TrimSpace(in.Problem) == "", "problem_statement: it is missing")
	reject(len(in.FailToPass) == 0, "FAIL_TO_PASS: it is missing")
	reject(in.Image == "", "image: it is missing; --image-template names it")
	reject(in.Script == "", "eval_script: it is missing; --test-command makes it from test_patch")
	reject(in.Parser == "", "log_parser: it is missing; --log-parser names it")
	reject(in.Parser != "" && !slices.Contains(grade.LogParsers(), in.Parser), "log_parser: %.60q cannot be read; these can: %s", in.Parser, strings.Join(grade.LogParsers(), ", "))
	reject(in.Type != "pass_and_fail" && in.Type != "fail_only", "eval_type: %.60q is not pass_and_fail or fail_only", in.Type)
	reject(hasAssets(in.ImageAssets), "image_assets: agents get no images with their instruction")
	reject(len(in.assets) > 0, "test_assets: the image has to contain them")
	return out
}

// hasAssets reports whether the value of a column is not empty.
func hasAssets(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case string:
		return v != "" && v != "{}" && v != "[]" && v != "null"
	case []any:
		return len(v) > 0
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), hasAssets)
	}
	return true
}

// Predict sets the patches that are graded instead of an agent's changes. If from is "gold", these
// are the solutions of the instances. Any other from is the path of a file with rows of Prediction.
// Predict returns the instances that have a patch.
func Predict(ctx context.Context, list []Instance, from string) ([]Instance, error) {
	if from == "gold" {
		for i := range list {
			if list[i].Patch == "" {
				return nil, fmt.Errorf("instance %q has no patch", list[i].ID)
			}
			list[i].prediction = &list[i].Patch
		}
		return list, nil
	}
	rows, err := readRows[Prediction](ctx, from)
	if err != nil {
		return nil, err
	}
	patches := map[string]*string{}
	for _, r := range rows {
		if patches[r.ID] != nil {
			return nil, fmt.Errorf("%s: two rows have the instance_id %.80q", from, r.ID)
		}
		patches[r.ID] = &r.Patch
	}
	var out []Instance
	for _, in := range list {
		if in.prediction = patches[in.ID]; in.prediction != nil {
			out = append(out, in)
		}
		delete(patches, in.ID)
	}
	for id := range patches {
		return nil, fmt.Errorf("%s: there is no instance %.80q", from, id)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no predictions", from)
	}
	return out, nil
}

// Prediction is a row of a predictions file of the original harness.
type Prediction struct {
	ID    string `json:"instance_id"`
	Model string `json:"model_name_or_path"`
	Patch string `json:"model_patch"`
}
