package linesearch

import (
	"encoding/binary"
	"regexp/syntax"
	"unicode/utf8"
)

// automaton is a lazily built DFA that decides line by line whether a program matches. Its states
// are sets of instructions.
type automaton struct {
	prog *syntax.Prog

	table  []int32 // by state and ASCII byte: the next state, unknown or hit
	states []state
	ids    map[string]int32 // of states, by their content
	start  int32            // state at the beginning of a line

	resets   int
	tooLarge bool // it needs too many states

	// For one step.
	set   []uint32 // instructions reached
	mark  []uint32 // by instruction: the step in which it was last reached
	step  uint32
	stack []uint32
	key   []byte
}

// state is a state between two runes.
type state struct {
	insts []uint32 // pending, before assertions about the next rune are evaluated
	begin bool     // at the beginning of the line
	word  bool     // the previous rune is a letter, digit or _

	nonASCII map[rune]int32 // next states for non-ASCII runes
}

const (
	unknown int32 = 0
	hit     int32 = -1 // the line matches

	endOfLine rune = -1

	maxStates   = 2000 // half a KB each
	maxNonASCII = 20_000
	maxResets   = 20
)

func newAutomaton(prog *syntax.Prog) *automaton {
	a := &automaton{prog: prog, mark: make([]uint32, len(prog.Inst))}
	a.reset()
	return a
}

// reset drops all states.
func (a *automaton) reset() {
	a.states, a.table, a.ids = make([]state, 1), make([]int32, utf8.RuneSelf), map[string]int32{} // the first one stands for unknown
	a.start = a.stateID(nil, true, false)
}

// find searches the lines of text, the first of which begins at from. It returns a position in the
// first line that matches, at most the end of that line; -1 if no line matches. The result is
// meaningless after the automaton became too large.
func (a *automaton) find(text []byte, from int) int {
	s := a.start
	for i := from; i < len(text); {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(text[i:])
			if s = a.nextForRune(s, r); s == hit || a.tooLarge {
				return i
			}
			i += size
			continue
		}
		next := a.table[int(s)<<7|int(c)]
		if next == unknown {
			if next = a.nextForASCII(s, c); a.tooLarge {
				return i
			}
		}
		if next == hit {
			return i
		}
		s = next
		i++
	}
	if len(text) > 0 && text[len(text)-1] == '\n' {
		return -1 // there is no line after the last line end
	}
	if a.nextState(s, endOfLine) == hit {
		return len(text)
	}
	return -1
}

// nextForASCII computes and stores the next state for an ASCII byte.
func (a *automaton) nextForASCII(s int32, c byte) int32 {
	resets := a.resets
	next := rune(c)
	if c == '\n' {
		next = endOfLine
	}
	to := a.nextState(s, next)
	if c == '\n' && to != hit {
		to = a.start
	}
	if a.resets == resets {
		a.table[int(s)<<7|int(c)] = to
	}
	return to
}

// nextForRune is nextForASCII for other runes.
func (a *automaton) nextForRune(s int32, r rune) int32 {
	if to, ok := a.states[s].nonASCII[r]; ok {
		return to
	}
	resets := a.resets
	to := a.nextState(s, r)
	if a.resets == resets {
		if st := &a.states[s]; st.nonASCII == nil {
			st.nonASCII = map[rune]int32{r: to}
		} else if len(st.nonASCII) < maxNonASCII/maxStates {
			st.nonASCII[r] = to
		}
	}
	return to
}

// nextState computes the next state for a rune.
func (a *automaton) nextState(s int32, r rune) int32 {
	from := a.states[s]
	word := wordRune(r)
	var flags syntax.EmptyOp
	if from.begin {
		flags |= syntax.EmptyBeginLine | syntax.EmptyBeginText
	}
	if r == endOfLine {
		flags |= syntax.EmptyEndLine | syntax.EmptyEndText
	}
	if from.word != word {
		flags |= syntax.EmptyWordBoundary
	} else {
		flags |= syntax.EmptyNoWordBoundary
	}
	if a.step++; a.step == 0 { // the counter has wrapped
		clear(a.mark)
		a.step = 1
	}
	a.set = a.set[:0]
	// A match can begin anywhere.
	for _, i := range from.insts {
		if a.reach(i, flags) {
			return hit
		}
	}
	if a.reach(uint32(a.prog.Start), flags) { //nolint:gosec // an index
		return hit
	}
	if r == endOfLine {
		return a.start
	}
	var waiting []uint32
	for _, i := range a.set {
		if inst := &a.prog.Inst[i]; inst.MatchRune(r) {
			waiting = append(waiting, inst.Out)
		}
	}
	return a.stateID(waiting, false, word)
}

func wordRune(r rune) bool { return r != endOfLine && syntax.IsWordChar(r) }

// reach adds the instructions that can be reached from i without consuming a rune. It returns true
// if one of them is a match.
func (a *automaton) reach(i uint32, flags syntax.EmptyOp) bool {
	a.stack = append(a.stack[:0], i)
	for len(a.stack) > 0 {
		i := a.stack[len(a.stack)-1]
		a.stack = a.stack[:len(a.stack)-1]
		if a.mark[i] == a.step {
			continue
		}
		a.mark[i] = a.step
		switch inst := &a.prog.Inst[i]; inst.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			a.stack = append(a.stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			a.stack = append(a.stack, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^flags == 0 { //nolint:gosec // that is what it holds
				a.stack = append(a.stack, inst.Out)
			}
		case syntax.InstFail:
		default:
			a.set = append(a.set, i)
		}
	}
	return false
}

// stateID returns the number of a state, adding it if it is new.
func (a *automaton) stateID(insts []uint32, begin, word bool) int32 {
	a.key = a.key[:0]
	for _, i := range insts {
		a.key = binary.LittleEndian.AppendUint32(a.key, i)
	}
	flags := byte(0)
	if begin {
		flags |= 1
	}
	if word {
		flags |= 2
	}
	a.key = append(a.key, flags)
	if id, ok := a.ids[string(a.key)]; ok {
		return id
	}
	if len(a.states) >= maxStates {
		if a.resets++; a.resets > maxResets {
			a.tooLarge = true
			return a.start
		}
		a.reset()
		return a.stateID(insts, begin, word)
	}
	id := int32(len(a.states)) //nolint:gosec // maxStates
	a.states = append(a.states, state{insts: insts, begin: begin, word: word})
	a.table = append(a.table, make([]int32, utf8.RuneSelf)...)
	a.ids[string(a.key)] = id
	return id
}
