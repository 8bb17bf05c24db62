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

// Settings of the searcher, which are the same for all questions, with the map and without it.
const (
	maxCalls         = 16 // calls of tools before the searcher answers
	minShareToRead   = .3 // part of the question's weight that a file must match to be read
	maxAnswers       = 3  // files in an answer, the most likely first
	minShareToAnswer = .7 // part of the weight that a definition must match to be the answer
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
	tools    map[string]string         // full names of the offered tools, by short name
	called   map[string]int            // number of calls, by short name
	searched map[string]bool           // stems that were searched for
	files    map[string]*candidateFile // by path
	read     map[string]string         // contents of files that were read, by path
}

// candidateFile is a file in a tool's result, with the lines that the result contains.
type candidateFile struct {
	path  string
	lines []string
}

// nextAction returns the next action, based only on the conversation. The searcher first gets an
// overview: the map if it is offered, otherwise the tree of folders. Then it reads the files whose
// paths and lines match the question best, until it finds a definition that matches well enough. When
// no promising file is left, it searches for the next word of the question.
func nextAction(req *request) action {
	s := newSearcher(req)
	if len(s.tools) == 0 { // the request is for a title
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

// newSearcher returns a searcher for a request. The question is the user's last message.
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

// shortName returns a tool's name without its prefix: grep for eca__grep.
func shortName(name string) string {
	if i := strings.LastIndex(name, "__"); i >= 0 {
		return name[i+2:]
	}
	return name
}

// addResult adds the information in the result of a call.
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

// addTree adds the files of an indented tree. Its first line is the root.
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

// relative makes a path relative to the workspace, whose folder has a name such as
// /tmp/ecp-workspace-123.
func relative(file string) string {
	if i := strings.Index(file, "ecp-workspace-"); i >= 0 {
		if _, rest, ok := strings.Cut(file[i:], "/"); ok {
			return rest
		}
	}
	return strings.TrimPrefix(file, "./")
}

// weights returns a weight for each word of the question. The fewer of the known files match a word,
// the higher is its weight.
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

// matches returns the words that are in the path of a file, or in the path and the line that
// together contain the most words.
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

// weightShare returns the part of the question's weight that the words in m have.
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

// candidate returns the most promising file that was not read, or "".
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

// fileWeight returns a lower weight for tests, documents and data, which rarely contain the answer.
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

// bestAnswer returns the best definitions in the files that were read, and the weight of the best one.
// It matches the question's words with the definition, the comment above it, and the path of its file.
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

// stopWords are common words that do not help to find code.
const stopWords = ` a an and any are as at be been before between by can code decide decided do does done each files for from has have how if in into
	is it its itself like long may more much near nearly not of on one only or our out put same so some than that the their then there these
	they this to under until up was what when where which while who will with without would you your again back file answer path `

// keywords returns the words of a question without stopWords and short words, each once, the longest
// first.
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

// splitWords splits a text or a name into words in lower case. A word ends before a character that is
// neither a letter nor a digit, and before an upper-case letter after a lower-case letter.
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

// stem removes a common ending from a word.
func stem(w string) string {
	for _, end := range []string{"ings", "ing", "ions", "ion", "ies", "ed", "er", "es", "ly", "s", "e"} {
		if cut, ok := strings.CutSuffix(w, end); ok && len(cut) >= 4 {
			return cut
		}
	}
	return w
}

// sameStem reports whether two words may be forms of the same word.
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
