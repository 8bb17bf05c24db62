package cache

// Cache keeps the values of a few keys.
type Cache struct {
	size   int
	values map[string]int
	order  []string // keys, the one that goes first at the beginning
}

// New returns a cache for so many keys.
func New(size int) *Cache { return &Cache{size: size, values: map[string]int{}} }

// Get returns a value, and uses its key.
func (c *Cache) Get(key string) (int, bool) {
	value, ok := c.values[key]
	return value, ok
}

// Put keeps a value, and uses its key.
func (c *Cache) Put(key string, value int) {
	c.values[key] = value
	c.order = append(c.order, key)
}
