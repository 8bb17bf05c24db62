package runtime

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// environment reads an environment: the name of a kind, or a mapping.
func (d *decoder) environment(n *node, path string) *Environment {
	e := &Environment{}
	kinds := []string{KindLocal, KindDocker, KindPodman}
	if n.kind == kindString {
		e.Kind = d.oneOf(n, path, kinds)
	} else {
		n = d.mapping(n, path)
		d.only(n, path, "kind", "image", "dockerfile", "cpus", "memory_mb", "in_image", "workdir", "agent", "graders")
		kind, at := d.required(n, path, "kind")
		e.Kind = d.oneOf(kind, at, kinds)
	}
	if n.kind == kindMap {
		for name, into := range map[string]*string{"image": &e.Image, "dockerfile": &e.Dockerfile, "workdir": &e.Workdir} {
			if v := n.get(name); v != nil {
				*into = d.name(v, join(path, name))
			}
		}
		if v := d.amount(n.get("cpus"), join(path, "cpus")); v != nil {
			e.CPUs = *v
		}
		if v := d.count(n.get("memory_mb"), join(path, "memory_mb")); v != nil {
			e.MemoryMB = *v
		}
		if v := d.boolean(n.get("in_image"), join(path, "in_image")); v != nil {
			e.InImage = *v
		}
		if v := n.get("agent"); v != nil {
			e.Agent = d.grants(v, join(path, "agent"))
		}
		if v := n.get("graders"); v != nil {
			e.Graders = d.grants(v, join(path, "graders"))
		}
	}
	d.checkEnvironment(n, path, e)
	return e
}

func (d *decoder) checkEnvironment(n *node, path string, e *Environment) {
	switch {
	case e.Kind == KindLocal && (e.Image != "" || e.Dockerfile != "" || e.CPUs > 0 || e.MemoryMB > 0 || e.InImage):
		d.problem(n, path, "image, dockerfile, cpus, memory_mb and in_image are for docker and podman; local has none of them")
	case e.Workdir != "" && (!e.InImage || !strings.HasPrefix(e.Workdir, "/")):
		d.problem(n, path, "workdir is an absolute path in the image, and needs in_image: true")
	case (e.Kind == KindDocker || e.Kind == KindPodman) && (e.Image == "") == (e.Dockerfile == ""):
		d.problem(n, path, "%s needs an image or a dockerfile, and only one of them", e.Kind)
	}
	if e.Kind == KindLocal {
		return
	}
	for _, g := range []Grants{e.Agent, e.Graders} {
		if len(g.BuildCaches) > 0 {
			d.problem(n, path, "build_caches is for local; an image contains what its tools need")
		}
		var names []string
		for _, p := range g.Read {
			name := filepath.Base(p)
			if slices.Contains(names, name) {
				d.problem(n, path, "two entries of read are called %q, and would both be %s/%[2]s in the container", name, containerReads)
			}
			names = append(names, name)
		}
	}
}

// variableName matches names of environment variables.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (d *decoder) grants(n *node, path string) (g Grants) {
	n = d.mapping(n, path)
	d.only(n, path, "env", "network", "read", "build_caches")
	if v := n.get("env"); v != nil {
		g.Env = d.texts(v, join(path, "env"))
		for _, name := range g.Env {
			if !variableName.MatchString(name) {
				d.problem(v, join(path, "env"), "%q is not the name of a variable; values do not belong into a manifest", name)
			}
		}
	}
	if v := d.boolean(n.get("network"), join(path, "network")); v != nil {
		g.Network = *v
	}
	if v := n.get("build_caches"); v != nil {
		for i, tool := range d.items(v, join(path, "build_caches")) {
			g.BuildCaches = append(g.BuildCaches, d.oneOf(tool, join(join(path, "build_caches"), i), []string{"go"}))
		}
	}
	if v := n.get("read"); v != nil {
		g.Read = d.texts(v, join(path, "read"))
		if slices.Contains(g.Read, "") {
			d.problem(v, join(path, "read"), "a path must not be empty")
		}
	}
	return g
}

// setupTests reads the environment and the hidden tests, which need an environment: without one, the
// agent could read them.
func (d *decoder) setupTests(n *node, path string, s *Setup) {
	if v := n.get("environment"); v != nil {
		s.Environment = d.environment(v, join(path, "environment"))
	}
	v := n.get("tests")
	if v == nil {
		return
	}
	s.Tests = d.name(v, join(path, "tests"))
	if s.Environment == nil {
		d.problem(v, join(path, "tests"), "hidden tests need an environment (local, docker or podman): without one, the agent can read them")
	}
}
