package repomap

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strings"
)

// Limits and weights for ordinary words in a focus. A file gets a share of the focus if its path or
// the names of its definitions contain rare words of the text.
const (
	wordsWeight      = .6  // of a text, or of each requested name
	maxWordFiles     = 40  // at most this many files
	baseScore        = 1.0 // of a word in the file's name
	folderScore      = .5  // of a word in the folder's path
	nameScore        = .5  // of a word in the name of a definition
	nextNameScore    = .1  // for each further definition, up to a limit
	maxFileShare     = .25 // of all files; a word that occurs in more is ignored
	maxDistinctWords = 64  // different words that are used
	maxWord          = 32  // bytes of a word
)

// stopWords are words that are not specific to any code, or occur in most questions about code.
const stopWords = ` able about add added adds after again all allow also always and another any are back because been before being below between
	both but bug call can cannot case change changed changes code correct correctly could did different does doesn done dont down each
	either else ensure even every fix fixed fixes for from get gets give given goes good handle has have having here how instead into
	issue its itself just keep know less let like made main make makes making many may merge might more most move much must need needs
	never new not now off old once one only other our out over own please possible prevent properly provide pull put rather really
	refactor remove removed replace request right same see set sets should show shows since some still such support sure take than that
	the their them then there these they thing this those through time too two under unless until update updated updates use used useful
	user uses using very want was way were what when where whether which while who why will with within without work works would you your `

// wordset is the set of words in a text.
type wordset struct {
	index   map[string]int // by stem
	letters [256]bool      // first letters of the words
}

// wordsOf returns the significant words of a text.
func wordsOf(text string) *wordset {
	w := &wordset{index: map[string]int{}}
	n := 0
	eachWord(text, func(word []byte) bool {
		if n++; n > maxWords || len(w.index) == maxDistinctWords {
			return false
		}
		if len(word) < 3 || inList(stopWords, string(word)) {
			return true
		}
		if s := stem(word); w.index[string(s)] == 0 {
			w.index[string(s)] = len(w.index) + 1
			w.letters[s[0]] = true
		}
		return true
	})
	return w
}

// match returns the number of a word in the set, from 1; 0 if it is not in the set.
func (w *wordset) match(word []byte) int {
	if len(word) < 3 || !w.letters[word[0]] {
		return 0
	}
	return w.index[string(stem(word))]
}

// eachWord calls fn with the parts of a name or a text, in lower case, until fn returns false.
// Parts are separated by characters other than letters, and begin at a capital letter in camel
// case. The slice is reused after fn returns.
func eachWord(s string, fn func(word []byte) bool) {
	var buf [maxWord]byte
	word := buf[:0]
	for i := 0; i <= len(s); i++ {
		c := byte(0)
		if i < len(s) {
			c = s[i]
		}
		upper := c >= 'A' && c <= 'Z'
		switch {
		case upper && i > 0 && (isSmall(s[i-1]) || isUpper(s[i-1]) && i+1 < len(s) && isSmall(s[i+1])),
			!upper && !isSmall(c) && c < 0x80:
			if len(word) > 0 && !fn(word) {
				return
			}
			word = buf[:0]
		}
		if (upper || isSmall(c) || c >= 0x80) && len(word) < maxWord {
			if upper {
				c |= 0x20
			}
			word = append(word, c)
		}
	}
}

func isSmall(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// stem cuts off inflections: `completions`, `completing`, `completed`.
func stem(word []byte) []byte {
	const minLen = 4
	for range 2 { // the plural, then the ending of `completion`
		for _, end := range []string{"ing", "ion", "ed", "er", "es", "or", "s", "e", "y"} {
			if n := len(word) - len(end); n >= minLen && string(word[n:]) == end && (end != "s" || word[n-1] != 's') {
				word = word[:n]
				break
			}
		}
	}
	return word
}

// addTextWords adds the files whose paths and definitions match the words of a text best. weight is
// divided among them.
func (t *tree) addTextWords(out *target, text string, weight float64) {
	words := wordsOf(text)
	n := len(words.index)
	if n == 0 {
		return
	}
	width := n + 1
	scores := make([]float32, width*len(t.order)) // by file and word: how well the file matches the word
	fileCount := make([]int, width)               // by word: number of files that have it
	for i, f := range t.order {
		if f.shown() {
			row := scores[i*width : (i+1)*width]
			f.matchWords(words, row)
			for k, v := range row {
				if v > 0 {
					fileCount[k]++
				}
			}
		}
	}
	rarity := make([]float64, width)
	for k := 1; k < width; k++ {
		if fileCount[k] > 0 && float64(fileCount[k]) <= max(3, maxFileShare*float64(len(t.order))) {
			rarity[k] = math.Log(1 + float64(len(t.order))/float64(fileCount[k]))
		}
	}
	type found struct {
		file  int
		score float64
	}
	var best []found
	for i, f := range t.order {
		score := 0.0
		for k, v := range scores[i*width : (i+1)*width] {
			score += float64(v) * rarity[k]
		}
		if score > 0 {
			best = append(best, found{i, score * math.Sqrt(float64(f.role.weight())) * (1 + t.history.weight(f))})
		}
	}
	slices.SortFunc(best, func(a, b found) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.file, b.file)) })
	best = best[:min(len(best), maxWordFiles)]
	sum := 0.0
	for _, b := range best {
		sum += b.score * b.score
	}
	for _, b := range best {
		out.hints[b.file] += weight * b.score * b.score / sum
	}
	out.words = words
	out.wordRarity = rarity
}

// matchWords records how well a file matches each of the words.
func (f *file) matchWords(words *wordset, row []float32) {
	dir, base := path.Split(f.path)
	note := func(text string, weight float32) {
		eachWord(text, func(word []byte) bool {
			if k := words.match(word); k > 0 {
				row[k] = max(row[k], weight)
			}
			return true
		})
	}
	note(strings.TrimSuffix(base, path.Ext(base)), baseScore)
	note(dir, folderScore)
	for i := range f.defs {
		eachWord(f.defs[i].Name, func(word []byte) bool {
			if k := words.match(word); k > 0 {
				if row[k] == 0 {
					row[k] = nameScore
				} else {
					row[k] = min(row[k]+nextNameScore, baseScore+nameScore)
				}
			}
			return true
		})
	}
}

// rarity returns the sum of the rarities of the requested words that occur in the name of a
// definition.
func (t *target) rarity(name string) float64 {
	if t.words == nil {
		return 0
	}
	sum := 0.0
	eachWord(name, func(word []byte) bool {
		sum += t.wordRarity[t.words.match(word)]
		return true
	})
	return sum
}
