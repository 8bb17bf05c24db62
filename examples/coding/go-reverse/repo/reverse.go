package reverse

// Reverse returns a text with its letters in reverse order.
func Reverse(s string) string {
	letters := []byte(s)
	for i, j := 0, len(letters)-1; i < j; i, j = i+1, j-1 {
		letters[i], letters[j] = letters[j], letters[i]
	}
	return string(letters)
}
