package repomap

import (
	"path"
	"strings"
)

// landmarks are files, in lower case, that document a repository or how to build and run it. They
// are not source code: a map shows their names.
const landmarks = ` readme contributing architecture agents.md claude.md
	makefile gnumakefile justfile taskfile.yml taskfile.yaml cmakelists.txt meson.build configure.ac
	build.bazel module.bazel workspace.bazel build.gradle settings.gradle pom.xml build.xml
	package.json tsconfig.json deno.json deno.jsonc pnpm-workspace.yaml go.mod go.work cargo.toml
	pyproject.toml setup.cfg requirements.txt pipfile tox.ini gemfile composer.json deps.edn shadow-cljs.edn
	stack.yaml cabal.project dune-project pubspec.yaml flake.nix default.nix
	dockerfile containerfile docker-compose.yml docker-compose.yaml compose.yml compose.yaml
	procfile vagrantfile jenkinsfile openapi.yaml openapi.yml openapi.json `

// landmarkExts are file types that are always landmarks: project files, and interface definitions
// from which code is generated.
const landmarkExts = ` .cabal .opam .csproj .fsproj .sln .gemspec .rockspec .podspec .xcodeproj .proto .graphql .thrift `

// isLandmark reports whether a file is a landmark. Its folder does not matter.
func isLandmark(rel string) bool {
	base := strings.ToLower(path.Base(rel))
	if strings.ContainsAny(base, " \n") {
		return false
	}
	if inList(landmarks, base) {
		return true
	}
	ext := path.Ext(base)
	if stem := strings.TrimSuffix(base, ext); ext != "" && stem != "" {
		switch ext {
		case ".md", ".rst", ".txt", ".org", ".adoc":
			return stem == "readme" || stem == "contributing" || stem == "architecture"
		}
		return stem == "dockerfile" || inList(landmarkExts, ext)
	}
	return false
}

// inList reports whether a word is in a list separated by white space.
func inList(list, word string) bool {
	for {
		i := strings.Index(list, word)
		if i < 0 {
			return false
		}
		if i > 0 && isSpace(list[i-1]) && isSpace(list[i+len(word)]) {
			return true
		}
		list = list[i+1:]
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' }

// landmarkWeight returns how often walks start at a landmark: most often at the top of a
// repository.
func landmarkWeight(rel string) float64 {
	if strings.Contains(rel, "/") {
		return .3
	}
	return 3
}
