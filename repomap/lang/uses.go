package lang

import "math/bits"

// minNameLen is the minimum length of the names that the lexer counts. Shorter names are not
// distinctive.
const minNameLen = 3

// counter counts the names in one file after the other.
type counter struct {
	slots []useSlot // their number is a power of two
	mask  int       // only as many slots as this file needs are used, for locality
	used  []int32   // indices in slots, in the order of first use
	round uint32    // distinguishes this file's slots from those of earlier files
}

type useSlot struct {
	hash  uint64
	round uint32
	count uint8 // 0 for keywords
}

// begin prepares for a file of the given size in bytes.
func (c *counter) begin(size int) {
	const minSlots, bytesPerSlot = 1 << 8, 16
	n := max(minSlots, 1<<bits.Len(uint(size/bytesPerSlot))) //nolint:gosec // sizes are positive
	if n > len(c.slots) {
		c.slots, c.round = make([]useSlot, n), 0
	}
	c.mask = n - 1
	c.used = c.used[:0]
	c.nextRound()
}

func (c *counter) nextRound() {
	if c.round++; c.round == 0 {
		clear(c.slots)
		c.round = 1
	}
}

// add counts one more use of a name.
func (c *counter) add(h uint64) {
	s := &c.slots[c.find(h)]
	switch {
	case s.round != c.round:
		c.put(h).count = 1
	case s.count < MaxCount:
		s.count++
	}
}

// addUnlessKeyword counts a name unless it is a keyword. h is the hash without the privacy bit. It
// looks up a name among the keywords only at the first use in a file.
func (c *counter) addUnlessKeyword(l *Language, h uint64, first byte) {
	marked := l.withPrivacyBit(h, first)
	s := &c.slots[c.find(marked)]
	switch {
	case s.round != c.round:
		if s = c.put(marked); l.wordOf(h) == 0 {
			s.count = 1
		}
	case s.count > 0 && s.count < MaxCount:
		s.count++
	}
}

// put adds a missing name with count 0, the count of keywords.
func (c *counter) put(h uint64) *useSlot {
	if 2*len(c.used) >= c.mask {
		c.grow()
	}
	at := c.find(h)
	c.slots[at] = useSlot{hash: h, round: c.round}
	c.used = append(c.used, int32(at)) //nolint:gosec // files have less than 4 GiB
	return &c.slots[at]
}

func (c *counter) find(h uint64) int {
	at := int(h>>1) & c.mask //nolint:gosec // masked
	for c.slots[at].round == c.round && c.slots[at].hash != h {
		at = (at + 1) & c.mask
	}
	return at
}

// grow doubles the number of slots.
func (c *counter) grow() {
	slots := make([]useSlot, len(c.used))
	for i, at := range c.used {
		slots[i] = c.slots[at]
	}
	c.mask = 2*c.mask + 1
	if c.mask >= len(c.slots) {
		c.slots, c.round = make([]useSlot, c.mask+1), 0
	}
	c.nextRound()
	for i, s := range slots {
		at := c.find(s.hash)
		s.round = c.round
		c.slots[at], c.used[i] = s, int32(at) //nolint:gosec // files have less than 4 GiB
	}
}

// result returns the names used in the file.
func (c *counter) result() Uses {
	n := 0
	for _, at := range c.used {
		if c.slots[at].count > 0 {
			n++
		}
	}
	if n == 0 {
		return Uses{}
	}
	out := Uses{Names: make([]uint64, 0, n), Counts: make([]uint8, 0, n)}
	for _, at := range c.used {
		if s := &c.slots[at]; s.count > 0 {
			out.Names, out.Counts = append(out.Names, s.hash), append(out.Counts, s.count)
		}
	}
	return out
}
