package leap

// Leap reports whether a year of the Gregorian calendar has 366 days.
func Leap(year int) bool { return year%4 == 0 }
