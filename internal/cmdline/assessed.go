package cmdline

import "slices"

// assessment is the judgement of a command by its words alone.
type assessment struct {
	words            []word
	appendsArguments bool
	judgement
	forms []string
	key   string // Command.Key, unless something else about the command forbids remembering it
}

// assess judges the words of a command. Most commands of a canonical form have the same words as in the
// original text; these are not judged again.
func (r run) assess(w *walker) *assessment {
	n := len(w.assessed)
	if n < len(w.original) && w.original[n].covers(r.words, r.appendsArguments) {
		w.assessed = append(w.assessed, w.original[n])
		return w.original[n]
	}
	name := r.words[0].text
	a := &assessment{words: r.words, appendsArguments: r.appendsArguments}
	a.judgement, a.forms = w.judgeEach(name, r.words[1:], r.appendsArguments)
	a.paths = slices.Clip(a.paths)
	a.key = key(r.words, a.effect == Reads && !runsScript(name))
	w.assessed = append(w.assessed, a)
	return a
}

// covers reports whether an assessment is valid for a command. All words must be known, because the
// values of unknown words depend on earlier commands.
func (a *assessment) covers(words []word, loose bool) bool {
	return a.appendsArguments == loose && slices.EqualFunc(a.words, words, func(x, y word) bool {
		return x.text == y.text && x.known && y.known && x.glob == y.glob && x.top == y.top && x.possible == nil && y.possible == nil
	})
}
