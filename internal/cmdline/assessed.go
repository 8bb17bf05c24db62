package cmdline

import "slices"

// assessment is what follows from the words of a command alone.
type assessment struct {
	words []word
	loose bool
	judgement
	forms []string
	key   string // unless something else about the command forbids remembering it
}

// assess judges the words of a command. Most commands of a canonical form have the words that they had
// in the original text, so that they need not be judged again.
func (r run) assess(w *walker) *assessment {
	n := len(w.assessed)
	if n < len(w.original) && w.original[n].covers(r.words, r.loose) {
		w.assessed = append(w.assessed, w.original[n])
		return w.original[n]
	}
	name := r.words[0].text
	a := &assessment{words: r.words, loose: r.loose}
	a.judgement, a.forms = w.judgeEach(name, r.words[1:], r.loose)
	a.paths = slices.Clip(a.paths)
	a.key = key(r.words, a.effect == Reads && !scripted(name))
	w.assessed = append(w.assessed, a)
	return a
}

// covers reports whether an assessment is valid for a command. All words must be known, because the
// values of unknown words depend on earlier commands.
func (a *assessment) covers(words []word, loose bool) bool {
	return a.loose == loose && slices.EqualFunc(a.words, words, func(x, y word) bool {
		return x.text == y.text && x.known && y.known && x.glob == y.glob && x.top == y.top && x.possible == nil && y.possible == nil
	})
}
