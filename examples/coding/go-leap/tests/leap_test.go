package leap

import "testing"

func TestLeap(t *testing.T) {
	for year, want := range map[int]bool{1900: false, 1996: true, 1999: false, 2000: true, 2024: true, 2100: false} {
		if Leap(year) != want {
			t.Errorf("Leap(%d) is not %t", year, want)
		}
	}
}
