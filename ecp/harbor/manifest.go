package harbor

import (
	"fmt"
	"path/filepath"

	"github.com/goccy/go-yaml"
)

// Options has the settings of a manifest that do not come from the tasks.
type Options struct {
	Name   string   // of the manifest
	Target string   // command line of the agent, in the container
	Engine string   // docker or podman
	Read   []string // files and folders that the agent may read
	Env    []string // names of environment variables that are passed to the agent
}

// Manifest returns the text of a manifest for the folder dir. Its relative paths lead to the folders
// of the tasks.
func Manifest(tasks []Task, dir string, o Options) ([]byte, error) {
	var scenarios []yaml.MapSlice
	for _, t := range tasks {
		s, err := t.scenario(dir, o)
		if err != nil {
			return nil, err
		}
		scenarios = append(scenarios, s)
	}
	text, err := yaml.MarshalWithOptions(yaml.MapSlice{
		{Key: "manifest_version", Value: "v1"}, {Key: "name", Value: o.Name}, {Key: "target", Value: o.Target}, {Key: "scenarios", Value: scenarios},
	}, yaml.IndentSequence(true))
	if err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	return text, nil
}

// scenario returns the scenario for a task. Paths are relative to dir.
func (t *Task) scenario(dir string, o Options) (yaml.MapSlice, error) {
	root, dockerfile := t.Dir, t.Dockerfile
	check := yaml.MapSlice{{Key: "type", Value: "reward"}, {Key: "run", Value: "chmod +x /tests/test.sh && /tests/test.sh"}}
	if t.Older {
		root, dockerfile = filepath.Join(dir, t.copyDir()), "environment/"+t.Dockerfile
		check = yaml.MapSlice{{Key: "type", Value: "command"}, {Key: "run", Value: "TEST_DIR=/tests bash /tests/" + olderTests}}
	}
	relativePath := func(name string) (string, error) {
		from, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return "", err
		}
		base, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		if rel, err := filepath.Rel(base, from); err == nil {
			from = rel
		}
		return filepath.ToSlash(from), nil
	}
	tests, err := relativePath("tests")
	if err != nil {
		return nil, err
	}
	env := yaml.MapSlice{{Key: "kind", Value: o.Engine}, {Key: "in_image", Value: true}}
	if t.Image != "" {
		env = append(env, yaml.MapItem{Key: "image", Value: t.Image})
	} else {
		file, err := relativePath(dockerfile)
		if err != nil {
			return nil, err
		}
		env = append(env, yaml.MapItem{Key: "dockerfile", Value: file})
	}
	add := func(present bool, key string, value any) {
		if present {
			env = append(env, yaml.MapItem{Key: key, Value: value})
		}
	}
	add(t.Workdir != "", "workdir", t.Workdir)
	add(t.CPUs > 0, "cpus", t.CPUs)
	add(t.MemoryMB > 0, "memory_mb", t.MemoryMB)
	agent := yaml.MapSlice{{Key: "network", Value: t.Network}}
	if len(o.Read) > 0 {
		agent = append(agent, yaml.MapItem{Key: "read", Value: o.Read})
	}
	if len(o.Env) > 0 {
		agent = append(agent, yaml.MapItem{Key: "env", Value: o.Env})
	}
	add(true, "agent", agent)
	add(true, "graders", yaml.MapSlice{{Key: "network", Value: t.Network}})
	return yaml.MapSlice{{Key: "name", Value: t.ID}, {Key: "steps", Value: []yaml.MapSlice{{
		{Key: "input", Value: t.Instruction},
		{Key: "constraints", Value: yaml.MapSlice{
			{Key: "timeout_s", Value: t.AgentS},
			{Key: "scenario", Value: yaml.MapSlice{{Key: "id", Value: t.ID}, {Key: "tests", Value: tests}, {Key: "environment", Value: env}}},
			{Key: "checks", Value: []yaml.MapSlice{append(check, yaml.MapItem{Key: "timeout_s", Value: t.TestsS})}},
		}},
	}}}}, nil
}
