package lsp

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/workspace"
)

// definition is a server that may be started, from the table or from the configuration.
type definition struct {
	name       string
	configured bool // the configuration names it
	programs   []program
	files      map[string]string // see language
	markers    []string
	outermost  bool // see language
	env        map[string]string
}

// definitions merges the table and the configuration, whose servers come first. problems are by the
// name of a server in the configuration.
func definitions(servers map[string]config.LSPServer) (defs []definition, problems map[string]string) {
	problems = map[string]string{}
	known := languages()
	for name, o := range servers {
		if o.Disabled {
			known = removeServer(known, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		o := servers[name]
		if o.Disabled {
			continue
		}
		d := definition{name: name, configured: true, env: o.Env}
		if i := slices.IndexFunc(known, func(l language) bool { return l.hasName(name) || len(l.programsNamed(name)) > 0 }); i >= 0 {
			l := known[i]
			d.files, d.markers, d.outermost, d.programs = l.files, l.markers, l.outermost, l.programs
			if only := l.programsNamed(name); len(only) > 0 {
				d.programs = only
			}
		}
		if problem := d.configure(o); problem != "" {
			problems[name] = problem
			continue
		}
		defs = append(defs, d)
	}
	for _, l := range known {
		defs = append(defs, definition{name: l.name, programs: l.programs, files: l.files, markers: l.markers, outermost: l.outermost})
	}
	return defs, problems
}

// hasName reports whether a name in the configuration refers to the language.
func (l language) hasName(name string) bool {
	return l.name == name || slices.Contains(l.aliases, name)
}

// programsNamed returns the programs of the language that a name refers to.
func (l language) programsNamed(name string) (out []program) {
	for _, p := range l.programs {
		if p.name == name || strings.HasPrefix(p.name, name+"-") {
			out = append(out, p)
		}
	}
	return out
}

// removeServer removes a language, or the programs that a name refers to.
func removeServer(known []language, name string) (out []language) {
	for _, l := range known {
		if l.hasName(name) { // checked first, since a program may have the name of the language
			continue
		}
		if gone := l.programsNamed(name); len(gone) > 0 {
			l.programs = slices.DeleteFunc(slices.Clone(l.programs), func(p program) bool {
				return slices.ContainsFunc(gone, func(g program) bool { return g.name == p.name })
			})
		}
		if len(l.programs) > 0 {
			out = append(out, l)
		}
	}
	return out
}

// configure applies the configuration to a definition, and returns what is wrong in it.
func (d *definition) configure(o config.LSPServer) (problem string) {
	options := o.Initialization
	if options == nil {
		options = o.InitOptions
	}
	if len(o.Command) > 0 && o.Command[0] != "" {
		d.programs = []program{{name: o.Command[0], args: slices.Concat(o.Command[1:], o.Args), options: options}}
	} else if len(o.Args) > 0 || options != nil {
		d.programs = slices.Clone(d.programs)
		for i, p := range d.programs {
			if len(o.Args) > 0 {
				p.args = o.Args
			}
			if options != nil {
				p.options = options
			}
			d.programs[i] = p
		}
	}
	if len(o.Extensions)+len(o.Filetypes) > 0 {
		d.files = configuredFiles(o)
	}
	if len(o.RootMarkers) > 0 {
		d.markers = o.RootMarkers
	}
	switch {
	case len(d.programs) == 0:
		return "it has no command, and is not a known language server"
	case len(d.files) == 0:
		return "it has neither extensions nor filetypes, and is not a known language server"
	}
	return ""
}

// configuredFiles returns the files of a server in the configuration.
func configuredFiles(o config.LSPServer) map[string]string {
	languageOf := map[string]string{}
	for _, l := range languages() {
		maps.Copy(languageOf, l.files)
	}
	out := map[string]string{}
	add := func(ext string) {
		ext = "." + strings.TrimPrefix(ext, ".")
		out[ext] = cmp.Or(languageOf[ext], ext[1:])
	}
	for _, ext := range o.Extensions {
		add(ext)
	}
	for _, name := range o.Filetypes {
		found := false
		for ext, language := range languageOf {
			if language == name {
				out[ext], found = language, true
			}
		}
		if !found {
			add(name)
		}
	}
	return out
}

// installedServer is a language server with its program on this machine.
type installedServer struct {
	definition
	program
	path string // path of the program
}

// installed returns the first program of a definition that is installed.
func (v *View) installed(d definition) (installedServer, bool) {
	for _, p := range d.programs {
		path := p.name
		if strings.ContainsAny(path, `/\`) {
			path = workspace.Abs(v.settings.Roots, path)
		}
		dirs := v.opts.Getenv("PATH")
		if p.npm.name != "" {
			dirs = strings.Join(append(v.ownPackages(), dirs), string(os.PathListSeparator))
		}
		if full, ok := proc.LookPath(path, dirs); ok && p.npm.includes(full) {
			return installedServer{d, p, full}, true
		}
	}
	return installedServer{}, false
}

// ownPackages returns the folders with programs of the npm packages that the workspace depends on.
func (v *View) ownPackages() (out []string) {
	for _, root := range v.settings.Roots {
		out = append(out, filepath.Join(root, "node_modules", ".bin"))
	}
	return out
}

// includes reports whether a program belongs to the package in a version that is a language server.
// Programs outside packages count as language servers.
func (n npmPackage) includes(path string) bool {
	if n.name == "" {
		return true
	}
	programDir := filepath.Dir(path) // the program may be a script that starts it
	folders := []string{filepath.Join(programDir, "..", n.name), filepath.Join(programDir, "node_modules", n.name)}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		folders = append([]string{filepath.Join(filepath.Dir(real), "..")}, folders...)
	}
	for _, dir := range folders {
		data, err := safeio.Read(filepath.Join(dir, "package.json"), maxText)
		var p struct{ Name, Version string }
		if err != nil || json.Unmarshal(data, &p) != nil || p.Name != n.name {
			continue
		}
		major, _, _ := strings.Cut(p.Version, ".")
		version, err := strconv.Atoi(major)
		return err == nil && version >= n.since
	}
	return false
}

// installedFor returns the installed server for a file of the workspace.
func (v *View) installedFor(path string) (installedServer, bool) {
	if !v.workspace.Contains(path) {
		return installedServer{}, false
	}
	for _, d := range v.defs {
		if d.files[filepath.Ext(path)] == "" {
			continue
		}
		if f, ok := v.installed(d); ok {
			return f, true
		}
	}
	return installedServer{}, false
}

// Any reports whether any server is installed.
func (v *View) Any() bool {
	return slices.ContainsFunc(v.defs, func(d definition) bool { _, ok := v.installed(d); return ok })
}

// Serves reports whether a server is installed for a file of the workspace.
func (v *View) Serves(path string) bool {
	_, ok := v.installedFor(path)
	return ok
}

// project returns the top folder of the project that a file belongs to: a folder with a marker, or
// else the workspace folder. Symlinks are resolved.
func (v *View) project(d definition, path string) string {
	real, top := workspace.Resolve(path), ""
	for _, root := range v.settings.Roots {
		root = workspace.Resolve(root)
		if workspace.New(root).ContainsResolved(real) && len(root) > len(top) {
			top = root
		}
	}
	for _, marker := range d.markers {
		hit := ""
		for dir := filepath.Dir(real); ; dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, marker)); err == nil && (hit == "" || d.outermost) {
				hit = dir
			}
			if dir == top || dir == filepath.Dir(dir) {
				break
			}
		}
		if hit != "" {
			return hit
		}
	}
	return top
}
