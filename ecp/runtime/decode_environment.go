package runtime

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/pattern"
)

// environment reads an environment: the name of a kind, or a mapping.
func (e element) environment() *Environment {
	kinds := []string{KindLocal, KindDocker, KindPodman}
	if e.kind == kindString {
		out := &Environment{Kind: e.oneOf(kinds...)}
		out.check(e)
		return out
	}
	e = e.mapping("kind", "image", "dockerfile", "cpus", "memory_mb", "in_image", "workdir", "agent", "graders")
	out := &Environment{
		Kind: e.required("kind").oneOf(kinds...), Image: e.get("image").nonEmptyText(), Dockerfile: e.get("dockerfile").nonEmptyText(), Workdir: e.get("workdir").nonEmptyText(),
		CPUs: deref(e.get("cpus").nonNegativeNumber()), MemoryMB: deref(e.get("memory_mb").nonNegativeInt()), InImage: deref(e.get("in_image").boolean()),
		Agent: e.get("agent").grants(), Graders: e.get("graders").grants(),
	}
	out.check(e)
	return out
}

// check reports settings that exclude each other.
func (e *Environment) check(at element) {
	switch {
	case e.Kind == KindLocal && (e.Image != "" || e.Dockerfile != "" || e.CPUs > 0 || e.MemoryMB > 0 || e.InImage):
		at.problem("image, dockerfile, cpus, memory_mb and in_image are only for docker and podman, not for local")
	case e.Workdir != "" && (!e.InImage || !strings.HasPrefix(e.Workdir, "/")):
		at.problem("workdir is an absolute path in the image, and needs in_image: true")
	case (e.Kind == KindDocker || e.Kind == KindPodman) && (e.Image == "") == (e.Dockerfile == ""):
		at.problem("%s needs an image or a dockerfile, and only one of them", e.Kind)
	}
	if e.Kind == KindLocal {
		return
	}
	for _, g := range []Grants{e.Agent, e.Graders} {
		if len(g.BuildCaches) > 0 {
			at.problem("build_caches is for local; an image contains what its tools need")
		}
		var names []string
		for _, p := range g.Read {
			name := filepath.Base(p)
			if slices.Contains(names, name) {
				at.problem("two entries of read are called %q, and would both be %s/%[2]s in the container", name, containerReads)
			}
			names = append(names, name)
		}
	}
}

// variableName matches names of environment variables.
var variableName = pattern.Lazy(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (e element) grants() (g Grants) {
	e = e.mapping("env", "network", "read", "build_caches")
	env, read := e.get("env"), e.get("read")
	g.Env, g.Network, g.Read = env.texts(), deref(e.get("network").boolean()), read.texts()
	for _, name := range g.Env {
		if !variableName().MatchString(name) {
			env.problem("%q is not a valid variable name; a manifest must not contain values", name)
		}
	}
	for _, tool := range e.get("build_caches").items() {
		g.BuildCaches = append(g.BuildCaches, tool.oneOf("go"))
	}
	if slices.Contains(g.Read, "") {
		read.problem("a path must not be empty")
	}
	return g
}

// setupTests reads the environment and the hidden tests, which need an environment: without one, the
// agent could read them.
func (e element) setupTests(s *Setup) {
	if v := e.get("environment"); !v.missing() {
		s.Environment = v.environment()
	}
	v := e.get("tests")
	if s.Tests = v.nonEmptyText(); !v.missing() && s.Environment == nil {
		v.problem("hidden tests need an environment (local, docker or podman): without one, the agent can read them")
	}
}
