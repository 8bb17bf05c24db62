# What contributors run, each by its name; .ci/run calls the same targets. Where there is no make,
# the commands stand here.

export CGO_ENABLED ?= 0
DEV := go tool -modfile=internal/devtools/go.mod

.PHONY: help check format vet lint prose test full race bench soak update docs release

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10

check: format vet lint prose ## all that needs no test run, and the rules of the repository
	go test ./internal/layers

format: ## name files that are not formatted (gofumpt -l -w . mends them)
	@unformatted=$$($(DEV) gofumpt -l .) && if [ -n "$$unformatted" ]; then echo "not formatted:"; echo "$$unformatted"; exit 1; fi

vet:
	go vet ./...
	go vet -C release ./...

lint:
	$(DEV) golangci-lint run --allow-parallel-runners ./...
	cd release && go tool -modfile=../internal/devtools/go.mod golangci-lint run --allow-parallel-runners ./...

# aproval is an example of a misspelt key, in docs/permissions.md.
prose: ## the rules of CONTRIBUTING.md for texts, and spelling
	go test ./internal/prose
	$(DEV) misspell -error -i aproval $$(git ls-files '*.md' '*.go' '*.ts' '*.tsx' '*.lua' Makefile .ci/run | grep -v -e testdata/ -e dist/)

test: ## the tests of the fast loop: under a minute with a warm build cache
	go test -short ./...

full: ## all tests, also matrices, conformance suites and real clients
	go test -timeout 30m ./...
	go test -C release ./...

# The long tests are matrices and whole programs. The detector makes them several times slower and
# finds in them what it finds in the short ones: SHORT= make race runs them too.
SHORT ?= -short
race: export CGO_ENABLED = 1
race: export GORACE = atexit_sleep_ms=0
race: ## the tests of the fast loop with the race detector; needs a C compiler
	go test -race $(SHORT) -timeout 60m ./...

bench: ## what docs/performance.md is written from
	go test -run '^$$' -bench . -benchtime 20x ./cmd/eca

# SOAK=24h runs for a day. As root, the disk is full at times.
SOAK ?= 20m
soak: ## three daemons for 20 minutes, killed, with full disks and servers that end; only on Linux
	ECA_SOAK=$(SOAK) go test ./cmd/eca -run TestSoak -count=1 -v -timeout 48h

# PLATFORMS=linux/amd64 builds for some platforms only, KEY=FILE signs.
release: ## build the files of a release in dist/, for six platforms; docs/install.md has more
	go build -C release -o dist/release .
	release/dist/release -out dist -platforms "$(PLATFORMS)" -key "$(KEY)"

update: docs ## rewrite the goldens, and what docs does; read the diff
	go test ./server -run 'TestScenarios|TestResume' -update
	go test ./llm/anthropic ./llm/google ./llm/ollama -update
	go test ./chat/importer -update
	go test ./repomap/lang -update
	go test ./tools/permission -run TestQuestionsOfTheFixture -update

docs: ## rewrite the schema and the parts of docs that are made by programs
	go test ./chat/event ./config -update
	go test ./cmd/eca -run TestCommandsDoc -update
	go test ./server -run 'TestProtocolDoc|TestToolsDoc|TestFaults' -update
