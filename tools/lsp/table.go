package lsp

// program is a known language server.
type program struct {
	name    string // also the name of the executable
	args    []string
	options map[string]any // initializationOptions
	npm     npmPackage     // zero if it is not part of a package
}

// npmPackage is an npm package whose program is a language server since a certain major version. A
// copy in the project's dependencies takes precedence over one in PATH.
type npmPackage struct {
	name  string
	since int
}

// language is a language with its files and its servers, in order of preference.
type language struct {
	name     string
	aliases  []string          // other names under which the configuration may name it
	files    map[string]string // LSP language ID, by file extension
	markers  []string          // files in the top folder of a project
	programs []program

	outermost bool // the project is the outermost folder with a marker above a file, instead of the innermost
}

// languages is the table of known servers.
func languages() []language { return append(commonLanguages(), otherLanguages()...) }

func commonLanguages() []language {
	stdio := []string{"--stdio"}
	return []language{
		{
			name: "go", files: map[string]string{".go": "go"}, markers: []string{"go.work", "go.mod"},
			programs: []program{{name: "gopls", options: map[string]any{"diagnosticsDelay": "0s"}}},
		},
		{
			name: "rust", files: map[string]string{".rs": "rust"}, markers: []string{"Cargo.toml"}, outermost: true,
			programs: []program{{name: "rust-analyzer"}},
		},
		{
			name: "python", files: map[string]string{".py": "python", ".pyi": "python"},
			markers:  []string{"pyproject.toml", "pyrightconfig.json", "setup.py", "setup.cfg", "requirements.txt"},
			programs: []program{{name: "basedpyright-langserver", args: stdio}, {name: "pyright-langserver", args: stdio}, {name: "pylsp"}},
		},
		{
			name: "typescript", aliases: []string{"javascript"},
			files: map[string]string{
				".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "typescriptreact",
				".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascriptreact",
			},
			markers: []string{"tsconfig.json", "jsconfig.json", "package.json"},
			programs: []program{
				{name: "tsc", args: []string{"--lsp", "--stdio"}, npm: npmPackage{"typescript", 7}},
				{name: "typescript-language-server", args: stdio, options: map[string]any{"preferences": map[string]any{"disableSuggestions": true}}},
				{name: "vtsls", args: stdio},
			},
		},
		{
			name: "c", aliases: []string{"cpp", "c++"},
			files: map[string]string{
				".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hh": "cpp", ".hpp": "cpp", ".hxx": "cpp",
				".m": "objective-c", ".mm": "objective-cpp",
			},
			markers:  []string{"compile_commands.json", "compile_flags.txt", ".clangd"},
			programs: []program{{name: "clangd"}},
		},
		{
			name: "java", files: map[string]string{".java": "java"},
			markers:   []string{"settings.gradle", "settings.gradle.kts", "pom.xml", "build.gradle", "build.gradle.kts"},
			outermost: true, programs: []program{{name: "jdtls"}},
		},
		{name: "zig", files: map[string]string{".zig": "zig"}, markers: []string{"build.zig"}, programs: []program{{name: "zls"}}},
		{
			name: "lua", aliases: []string{"lua-ls"}, files: map[string]string{".lua": "lua"}, markers: []string{".luarc.json", ".luarc.jsonc"},
			programs: []program{{name: "lua-language-server"}},
		},
	}
}

func otherLanguages() []language {
	stdio := []string{"--stdio"}
	return []language{
		{
			name: "ruby", files: map[string]string{".rb": "ruby", ".rake": "ruby"}, markers: []string{"Gemfile"},
			programs: []program{{name: "ruby-lsp"}, {name: "solargraph", args: []string{"stdio"}}},
		},
		{
			name: "php", files: map[string]string{".php": "php"}, markers: []string{"composer.json"},
			programs: []program{{name: "intelephense", args: stdio}, {name: "phpactor", args: []string{"language-server"}}},
		},
		{
			name: "csharp", files: map[string]string{".cs": "csharp"}, markers: []string{"global.json"},
			programs: []program{{name: "csharp-ls"}},
		},
		{
			name: "kotlin", files: map[string]string{".kt": "kotlin", ".kts": "kotlin"},
			markers:  []string{"settings.gradle.kts", "settings.gradle", "build.gradle.kts", "pom.xml"},
			programs: []program{{name: "kotlin-lsp", args: stdio}, {name: "kotlin-language-server"}},
		},
		{
			name: "swift", files: map[string]string{".swift": "swift"}, markers: []string{"Package.swift"},
			programs: []program{{name: "sourcekit-lsp"}},
		},
		{
			name: "elixir", files: map[string]string{".ex": "elixir", ".exs": "elixir"}, markers: []string{"mix.exs"},
			programs: []program{{name: "elixir-ls"}, {name: "expert", args: stdio}},
		},
		{
			name: "haskell", files: map[string]string{".hs": "haskell"}, markers: []string{"stack.yaml", "cabal.project", "hie.yaml"},
			programs: []program{{name: "haskell-language-server-wrapper", args: []string{"--lsp"}}},
		},
		{
			name: "ocaml", files: map[string]string{".ml": "ocaml", ".mli": "ocaml.interface"}, markers: []string{"dune-project", "dune-workspace"},
			programs: []program{{name: "ocamllsp"}},
		},
		{
			name: "clojure", files: map[string]string{".clj": "clojure", ".cljs": "clojurescript", ".cljc": "clojure"},
			markers:  []string{"deps.edn", "project.clj", "shadow-cljs.edn", "bb.edn"},
			programs: []program{{name: "clojure-lsp"}},
		},
		{
			name: "dart", files: map[string]string{".dart": "dart"}, markers: []string{"pubspec.yaml"},
			programs: []program{{name: "dart", args: []string{"language-server"}}},
		},
		{
			name: "bash", files: map[string]string{".sh": "shellscript", ".bash": "shellscript"},
			programs: []program{{name: "bash-language-server", args: []string{"start"}}},
		},
		{
			name: "terraform", files: map[string]string{".tf": "terraform", ".tfvars": "terraform-vars"}, markers: []string{".terraform.lock.hcl"},
			programs: []program{{name: "terraform-ls", args: []string{"serve"}}},
		},
		{name: "gleam", files: map[string]string{".gleam": "gleam"}, markers: []string{"gleam.toml"}, programs: []program{{name: "gleam", args: []string{"lsp"}}}},
		{name: "nix", files: map[string]string{".nix": "nix"}, markers: []string{"flake.nix"}, programs: []program{{name: "nixd"}, {name: "nil"}}},
		{name: "svelte", files: map[string]string{".svelte": "svelte"}, markers: []string{"package.json"}, programs: []program{{name: "svelteserver", args: stdio}}},
		{name: "vue", files: map[string]string{".vue": "vue"}, markers: []string{"package.json"}, programs: []program{{name: "vue-language-server", args: stdio}}},
	}
}
