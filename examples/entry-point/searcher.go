package main

import (
	"cmp"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The searcher's patience, and when it believes something. The same for every question,
// with the map or without.
const (
	maxCalls         = 16
	minShareToRead   = .3 // share of the question's weight that makes a file worth reading
	maxAnswers       = 3  // files that are named, the likeliest first
	minShareToAnswer = .7 // share of it, in a definition of a file that was read, that is the answer
)

// action is a call of a tool, or the answer.
type action struct {
	tool   string
	args   map[string]any
	answer string
}

// searcher holds the state of one request; each request gets a new one.
type searcher struct {
	words    []string                  // of the question
	tools    map[string]string         // by short name: as they are offered
	called   map[string]int            // by short name
	searched map[string]bool           // words that were searched for
	files    map[string]*candidateFile // by path
	read     map[string]string         // by path: its text
}

// candidateFile is a file that a tool's result named, with lines of it.
type candidateFile struct {
	path  string
	lines []string
}

// nextAction decides by the conversation alone: look at an overview once (the map if there is
// one, else the folders), read the files whose names and lines have the question's words,
// best first, until one has a definition with enough of them; and when no word is left
// that promises anything, search for the next of the words.
func nextAction(req *request) action {
	s := newSearcher(req)
	if len(s.tools) == 0 { // a title is asked for
		return action{answer: "Finding code"}
	}
	weights := s.weights()
	best, found := s.bestAnswer(weights)
	total := 0
	for _, n := range s.called {
		total += n
	}
	switch {
	case best >= minShareToAnswer || total >= maxCalls:
		return action{answer: found}
	case s.tools["repo_map"] != "" && s.called["repo_map"] == 0:
		return s.call("repo_map", map[string]any{"focus": s.words})
	case s.tools["repo_map"] == "" && s.called["directory_tree"] == 0:
		return s.call("directory_tree", map[string]any{"path": "."})
	}
	if file := s.candidate(weights); file != "" {
		return s.call("read_file", map[string]any{"path": file})
	}
	for _, w := range s.words {
		if !s.searched[stem(w)] {
			return s.call("grep", map[string]any{"path": ".", "pattern": "(?i)" + stem(w), "output_mode": "content", "max_results": 200})
		}
	}
	if found == "" {
		found = "I did not find it."
	}
	return action{answer: found}
}

func (s *searcher) call(tool string, args map[string]any) action {
	return action{tool: s.tools[tool], args: args}
}

// newSearcher reads a request: the question is the last thing the user said.
func newSearcher(req *request) *searcher {
	s := &searcher{
		tools: map[string]string{}, called: map[string]int{}, searched: map[string]bool{}, files: map[string]*candidateFile{}, read: map[string]string{},
	}
	for _, t := range req.Tools {
		s.tools[shortName(t.Function.Name)] = t.Function.Name
	}
	type call struct{ tool, args string }
	calls := map[string]call{}
	for i := range req.Messages {
		switch m := &req.Messages[i]; m.Role {
		case "user":
			question, _, _ := strings.Cut(m.text(), "?")
			s.words = keywords(question)
		case "assistant":
			for _, c := range m.ToolCalls {
				calls[c.ID] = call{shortName(c.Function.Name), c.Function.Arguments}
				s.called[shortName(c.Function.Name)]++
			}
		case "tool":
			c := calls[m.ToolCallID]
			s.addResult(c.tool, c.args, m.text())
		}
	}
	return s
}

// shortName is a tool's name without what is before it, as in eca__grep.
func shortName(name string) string {
	if i := strings.LastIndex(name, "__"); i >= 0 {
		return name[i+2:]
	}
	return name
}

// addResult takes in the result of a call.
func (s *searcher) addResult(tool, args, result string) {
	lines := strings.Split(result, "\n")
	switch tool {
	case "repo_map":
		at := ""
		for _, line := range lines {
			if strings.HasPrefix(line, " ") {
				s.file(at).lines = append(s.file(at).lines, strings.TrimSpace(line))
			} else if line != "" {
				at = line
				dir, names, several := strings.Cut(line, "/{")
				if !several {
					s.file(at)
					continue
				}
				for _, name := range strings.Split(strings.TrimSuffix(names, "}"), ",") {
					s.file(dir + "/" + name)
				}
			}
		}
	case "directory_tree":
		s.addTree(lines)
	case "grep":
		s.searched[strings.TrimPrefix(argument(args, "pattern"), "(?i)")] = true
		for _, line := range lines {
			if parts := strings.SplitN(line, ":", 3); len(parts) == 3 {
				p := s.file(relative(parts[0]))
				p.lines = append(p.lines, strings.TrimSpace(parts[2]))
			}
		}
	case "read_file":
		file := argument(args, "path")
		s.file(file)
		s.read[file] = result
	}
}

// addTree reads an indented tree whose first line is its root.
func (s *searcher) addTree(lines []string) {
	var folders []string
	for _, line := range lines[min(1, len(lines)):] {
		name := strings.TrimLeft(line, " ")
		depth := len(line) - len(name) - 1
		if name == "" || depth < 0 || depth > len(folders) {
			continue
		}
		folders = append(folders[:depth], strings.TrimSuffix(name, "/"))
		if path.Ext(name) != "" {
			s.file(strings.Join(folders, "/"))
		}
	}
}

func (s *searcher) file(file string) *candidateFile {
	if s.files[file] == nil {
		s.files[file] = &candidateFile{path: file}
	}
	return s.files[file]
}

var stringArgument = regexp.MustCompile(`"(path|pattern)"\s*:\s*"([^"]*)"`) //nolint:gochecknoglobals // constant

func argument(args, name string) string {
	for _, m := range stringArgument.FindAllStringSubmatch(args, -1) {
		if m[1] == name {
			return m[2]
		}
	}
	return ""
}

// relative makes a path relative to the workspace, whose folders have names like
// /tmp/ecp-workspace-123.
func relative(file string) string {
	if i := strings.Index(file, "ecp-workspace-"); i >= 0 {
		if _, rest, ok := strings.Cut(file[i:], "/"); ok {
			return rest
		}
	}
	return strings.TrimPrefix(file, "./")
}

// weights says how much each word of the question tells: the fewer of the known places
// have it, the more.
func (s *searcher) weights() map[string]float64 {
	out := map[string]float64{}
	for _, w := range s.words {
		n := 0
		for _, p := range s.files {
			if len(p.matches([]string{w})) > 0 {
				n++
			}
		}
		out[w] = math.Log(2 + float64(len(s.files))/float64(1+n))
	}
	return out
}

// matches returns the words that a place has: in its path, or in that of its lines that
// has most.
func (p *candidateFile) matches(words []string) map[string]bool {
	inPath := matchingWords(words, p.path)
	most := inPath
	for _, line := range p.lines {
		if m := matchingWords(words, line); len(m) > 0 {
			maps.Copy(m, inPath)
			if len(m) > len(most) {
				most = m
			}
		}
	}
	return most
}

func matchingWords(words []string, text string) map[string]bool {
	out := map[string]bool{}
	have := splitWords(text)
	for _, w := range words {
		if slices.ContainsFunc(have, func(h string) bool { return sameStem(w, h) }) {
			out[w] = true
		}
	}
	return out
}

// weightShare is how much of the question's weight some words have.
func weightShare(m map[string]bool, weights map[string]float64) float64 {
	sum, all := 0.0, 0.0
	for _, w := range slices.Sorted(maps.Keys(weights)) { // sums depend on their order
		all += weights[w]
		if m[w] {
			sum += weights[w]
		}
	}
	return sum / max(all, 1e-9)
}

// candidate returns the most promising file that was not read; empty without one.
func (s *searcher) candidate(weights map[string]float64) string {
	best, file := 0.0, ""
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		if _, known := s.read[name]; known {
			continue
		}
		if worth := weightShare(s.files[name].matches(s.words), weights) * fileWeight(name); worth >= minShareToRead && worth > best {
			best, file = worth, name
		}
	}
	return file
}

// fileWeight is less for what is unlikely to be where something is done.
func fileWeight(file string) float64 {
	switch {
	case strings.Contains(file, "_test.") || strings.Contains(file, "testdata/"):
		return .3
	case path.Ext(file) == ".md" || path.Ext(file) == ".json":
		return .5
	}
	return 1
}

var definition = regexp.MustCompile(`^\s*(func|type|class|def|fn|struct|interface|enum|trait)\b`) //nolint:gochecknoglobals // constant

// bestAnswer looks for a definition with the question's words, in it, in its file's path or in
// the comment above it, in the files that were read.
func (s *searcher) bestAnswer(weights map[string]float64) (best float64, answer string) {
	type definitionMatch struct {
		worth float64
		text  string
	}
	var all []definitionMatch
	for _, file := range slices.Sorted(maps.Keys(s.read)) {
		inPath := matchingWords(s.words, file)
		comment, most := "", definitionMatch{}
		for _, line := range strings.Split(s.read[file], "\n") {
			switch text := strings.TrimSpace(line); {
			case strings.HasPrefix(text, "//") || strings.HasPrefix(text, "#") || strings.HasPrefix(text, "*"):
				comment += " " + text
				continue
			case definition.MatchString(line):
				m := matchingWords(s.words, comment+" "+text)
				maps.Copy(m, inPath)
				if worth := weightShare(m, weights) * fileWeight(file); worth > most.worth {
					most = definitionMatch{worth, file + ": " + text}
				}
			}
			comment = ""
		}
		if most.worth > 0 {
			all = append(all, most)
		}
	}
	slices.SortStableFunc(all, func(a, b definitionMatch) int { return cmp.Compare(b.worth, a.worth) })
	for _, f := range all[:min(len(all), maxAnswers)] {
		best = max(best, f.worth)
		answer += f.text + "\n"
	}
	return best, answer
}

// stopWords are words that say nothing about what is looked for.
const stopWords = ` a an and any are as at be been before between by can code decide decided do does done each files for from has have how if in into
	is it its itself like long may more much near nearly not of on one only or our out put same so some than that the their then there these
	they this to under until up was what when where which while who will with without would you your again back file answer path `

// keywords returns the telling words of a question, each once, the longest first.
func keywords(question string) []string {
	var out []string
	for _, w := range splitWords(question) {
		if !strings.Contains(strings.Join(strings.Fields(stopWords), " ")+" ", " "+w+" ") && !slices.Contains(out, w) && len(w) > 2 {
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return out
}

// splitWords returns the words of a text or a name, in lower case: at characters that are
// neither letter nor digit, and where a capital follows on a small letter.
func splitWords(text string) []string {
	var out []string
	begin, before := -1, rune(0)
	end := func(i int) {
		if begin >= 0 {
			out = append(out, strings.ToLower(text[begin:i]))
		}
		begin = -1
	}
	for i, c := range text {
		upper, lower := c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		switch {
		case !upper && !lower:
			end(i)
		case begin < 0:
			begin = i
		case upper && before >= 'a' && before <= 'z':
			end(i)
			begin = i
		}
		before = c
	}
	end(len(text))
	return out
}

// stem cuts what words end with.
func stem(w string) string {
	for _, end := range []string{"ings", "ing", "ions", "ion", "ies", "ed", "er", "es", "ly", "s", "e"} {
		if cut, ok := strings.CutSuffix(w, end); ok && len(cut) >= 4 {
			return cut
		}
	}
	return w
}

// sameStem says whether two words may be forms of one.
func sameStem(a, b string) bool {
	if a == b {
		return true
	}
	a, b = stem(a), stem(b)
	short, long := a, b
	if len(short) > len(long) {
		short, long = long, short
	}
	return len(short) >= 4 && strings.HasPrefix(long, short) && len(long)-len(short) <= 3
}
