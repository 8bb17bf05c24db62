package swebench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/seed-dec29ce4/eca/ecp/grade"
)

// Options has the settings of a manifest that do not come from the instances.
type Options struct {
	Name    string   // of the manifest
	Target  string   // command line of the agent, in the container
	Engine  string   // docker or podman
	Read    []string // files and folders that the agent may read
	Env     []string // names of environment variables that are passed to the agent
	Network bool     // for the agent and the tests
	Hints   bool     // add hints_text to the instruction
}

// workdir is the path of the repository in the images.
const workdir = "/testbed"

// agentTime and testsTime bound the agent and the tests, in seconds.
const (
	agentTime = 3600
	testsTime = 1800
)

// scriptName is the name of the test script among the hidden tests.
const scriptName = "eval.sh"

// Manifest returns the text of a manifest. The scenarios refer to the hidden tests that WriteTests
// writes.
func Manifest(list []Instance, o Options) ([]byte, error) {
	var scenarios []yaml.MapSlice
	for _, in := range list {
		scenarios = append(scenarios, in.scenario(o))
	}
	text, err := yaml.MarshalWithOptions(yaml.MapSlice{
		{Key: "manifest_version", Value: "v1"}, {Key: "name", Value: o.Name}, {Key: "target", Value: o.Target}, {Key: "scenarios", Value: scenarios},
	}, yaml.IndentSequence(true))
	if err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	return text, nil
}

func testsFolder(id string) string { return "tests/" + id }

// scenario returns the scenario for an instance.
func (in *Instance) scenario(o Options) yaml.MapSlice {
	agent := yaml.MapSlice{{Key: "network", Value: o.Network}}
	if len(o.Read) > 0 {
		agent = append(agent, yaml.MapItem{Key: "read", Value: o.Read})
	}
	if len(o.Env) > 0 {
		agent = append(agent, yaml.MapItem{Key: "env", Value: o.Env})
	}
	input := in.Problem
	if o.Hints && strings.TrimSpace(in.Hints) != "" {
		input += "\n\nHints:\n" + in.Hints
	}
	check := yaml.MapSlice{
		{Key: "type", Value: grade.SWEBench},
		{Key: "run", Value: "bash /tests/" + scriptName},
		{Key: "timeout_s", Value: testsTime},
		{Key: "parser", Value: in.Parser},
		{Key: "fail_to_pass", Value: in.FailToPass},
		{Key: "pass_to_pass", Value: slices.Concat([]string{}, in.PassToPass)},
	}
	if in.Type == "fail_only" {
		check = append(check, yaml.MapItem{Key: "fail_only", Value: true})
	}
	return yaml.MapSlice{{Key: "name", Value: in.ID}, {Key: "steps", Value: []yaml.MapSlice{{
		{Key: "input", Value: input},
		{Key: "constraints", Value: yaml.MapSlice{
			{Key: "timeout_s", Value: agentTime},
			{Key: "scenario", Value: yaml.MapSlice{{Key: "id", Value: in.ID}, {Key: "tests", Value: testsFolder(in.ID)}, {Key: "environment", Value: yaml.MapSlice{
				{Key: "kind", Value: o.Engine},
				{Key: "in_image", Value: true},
				{Key: "image", Value: in.Image},
				{Key: "workdir", Value: workdir},
				{Key: "agent", Value: agent},
				{Key: "graders", Value: yaml.MapSlice{{Key: "network", Value: o.Network}}},
			}}}},
			{Key: "checks", Value: []yaml.MapSlice{check}},
		}},
	}}}}
}

// WriteTests writes the hidden tests, and the predictions, of the instances below dir.
func WriteTests(list []Instance, dir string) error {
	for _, in := range list {
		folder := filepath.Join(dir, filepath.FromSlash(testsFolder(in.ID)))
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, scriptName), []byte(grade.WithExitCode(in.Script)), 0o644); err != nil {
			return err
		}
		if in.prediction == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, grade.PredictionFile), []byte(*in.prediction), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Idle is a shell script of an agent that does nothing. It is used to grade predictions.
const Idle = `while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
  *agent/initialize*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"name":"predictions","protocol_version":"1.0","capabilities":{}}}' ;;
  *agent/step*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"status":"done"}}' ;;
  esac
done
`

// testScript returns a test script for a row without one. The script restores the files of
// test_patch, applies the patch, runs the test command between the two markers, and restores the
// files again.
func testScript(in Instance, command string) string {
	existing, added, tests := patchedFiles(in.TestPatch)
	var restore strings.Builder
	if len(existing) > 0 {
		restore.WriteString("git checkout " + in.BaseCommit + " -- " + strings.Join(existing, " ") + "\n")
	}
	if len(added) > 0 {
		restore.WriteString("rm -f -- " + strings.Join(added, " ") + "\n")
	}
	patch := in.TestPatch
	if !strings.HasSuffix(patch, "\n") {
		patch += "\n"
	}
	end := "ECP_END_OF_TEST_PATCH"
	for strings.Contains(patch, end) {
		end += "_"
	}
	return "#!/bin/bash\nset -uo pipefail\n" +
		"if [ -e /opt/miniconda3/bin/activate ]; then set +u; source /opt/miniconda3/bin/activate; conda activate testbed; set -u; fi\n" +
		"cd " + workdir + "\ngit config --global --add safe.directory " + workdir + "\n" +
		restore.String() + "git apply -v - <<'" + end + "' || exit 1\n" + patch + end + "\n" +
		"echo '>>>>> Start Test Output'\n" +
		strings.ReplaceAll(command, "{files}", strings.Join(tests, " ")) + "\n" +
		"echo '>>>>> End Test Output'\n" + restore.String()
}

// patchedFiles lists the files that a patch modifies or removes, the files that it adds, and the files
// that exist after it, all quoted for the shell.
func patchedFiles(patch string) (existing, added, after []string) {
	before := ""
	header := true // before the first hunk of a file
	for line := range strings.Lines(patch) {
		line, _, _ = strings.Cut(strings.TrimRight(line, "\r\n"), "\t")
		switch {
		case strings.HasPrefix(line, "diff --git "):
			header = true
		case strings.HasPrefix(line, "@@"):
			header = false
		case header && strings.HasPrefix(line, "--- "):
			before = line[len("--- "):]
		case header && strings.HasPrefix(line, "+++ "):
			now := line[len("+++ "):]
			if before == "/dev/null" {
				added = append(added, shellPath(now))
			} else {
				existing = append(existing, shellPath(before))
			}
			if now != "/dev/null" {
				after = append(after, shellPath(now))
			}
		}
	}
	return existing, added, after
}

// shellPath returns the path from a header line of a patch, without a/ or b/, quoted for the shell.
func shellPath(path string) string {
	_, path, _ = strings.Cut(path, "/")
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
