package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// module is a Go module that a program contains.
type module struct{ path, version string }

// modulesOf returns the modules that programs contain, sorted, without the main module.
func modulesOf(programs map[string][]byte) ([]module, error) {
	found := map[string]module{}
	for name, body := range programs {
		info, err := buildinfo.Read(bytes.NewReader(body))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, dep := range info.Deps {
			if dep.Replace != nil {
				dep = dep.Replace
			}
			found[dep.Path] = module{dep.Path, dep.Version}
		}
	}
	var all []module
	for _, path := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[path])
	}
	return all, nil
}

// licences returns the licence texts of Go and of all modules. It fails if a module has no licence
// file.
func (r *release) licences(ctx context.Context, modules []module) ([]byte, error) {
	args := []string{"list", "-m", "-f", "{{.Path}}\t{{.Dir}}"}
	for _, m := range modules {
		args = append(args, m.path)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = r.root, append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	var texts bytes.Buffer
	listed := "The Go standard library\t" + string(bytes.TrimSpace(goroot)) + "\n" + string(out)
	legal := regexp.MustCompile(`(?i)licen[cs]e|^copying|^notice|^patents`)
	for line := range strings.Lines(listed) {
		name, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		found := false
		for _, e := range entries {
			if !e.Type().IsRegular() || !legal.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			body, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			found = true
			fmt.Fprintf(&texts, "==== %s: %s\n\n%s\n\n", name, e.Name(), bytes.TrimSpace(body))
		}
		if !found {
			return nil, fmt.Errorf("%s has no licence file in %s, so it must not be distributed", name, dir)
		}
	}
	return texts.Bytes(), nil
}

// sbom returns the software bill of materials in the JSON format of CycloneDX.
func (r *release) sbom(b *build) ([]byte, error) {
	type component struct {
		Type    string `json:"type"`
		Ref     string `json:"bom-ref,omitempty"`
		Name    string `json:"name"`
		Version string `json:"version"`
		PURL    string `json:"purl,omitempty"`
	}
	library := func(m module) component {
		purl := "pkg:golang/" + m.path + "@" + strings.ReplaceAll(m.version, "+", "%2B")
		return component{"library", purl, m.path, m.version, purl}
	}
	main := component{"application", "eca", "eca", r.version, "pkg:golang/github.com/seed-dec29ce4/eca@v" + r.version}
	components := []component{library(module{"std", strings.TrimPrefix(runtime.Version(), "go")})}
	for _, m := range b.modules {
		components = append(components, library(m))
	}
	refs := make([]string, len(components))
	for i, c := range components {
		refs[i] = c.Ref
	}
	return json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata": map[string]any{
			"timestamp": r.time.UTC().Format(time.RFC3339),
			"component": main,
			"properties": []map[string]string{
				{"name": "eca:commit", "value": r.commit},
				{"name": "eca:platform", "value": b.String()},
			},
		},
		"components":   components,
		"dependencies": []map[string]any{{"ref": "eca", "dependsOn": refs}},
	}, "", "  ")
}
