package cache

import "testing"

func TestCache(t *testing.T) {
	c := New(2)
	c.Put("a", 1)
	c.Put("b", 2)
	c.Get("a")
	c.Put("c", 3)
	if _, ok := c.Get("b"); ok {
		t.Error("b was used longest ago, and is still there")
	}
	if v, ok := c.Get("a"); !ok || v != 1 {
		t.Error("a was used by Get, and is gone")
	}
}
