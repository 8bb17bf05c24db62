package stats

import "math"

// StudentT is the quantile of Student's t distribution, for p above one half.
func StudentT(p float64, freedom int) float64 {
	low, high := 0.0, 1.0
	for studentCDF(high, freedom) < p {
		high *= 2
	}
	for range 200 {
		mid := (low + high) / 2
		if mid == low || mid == high {
			break
		}
		if studentCDF(mid, freedom) < p {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}

// studentCDF is the probability of at most t, which is not negative.
func studentCDF(t float64, freedom int) float64 {
	v := float64(freedom)
	return 1 - incompleteBeta(v/(v+t*t), v/2, 0.5)/2
}

// incompleteBeta is the regularised incomplete beta function, by its continued fraction. That
// converges quickly below the mean of the distribution; above it, the mirrored function is used.
func incompleteBeta(x, a, b float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2):
		return 1 - incompleteBeta(1-x, b, a)
	}
	front := math.Exp(logGamma(a+b)-logGamma(a)-logGamma(b)+a*math.Log(x)+b*math.Log1p(-x)) / a
	return front * betaFraction(x, a, b)
}

// betaFraction evaluates the continued fraction from the front (modified Lentz).
func betaFraction(x, a, b float64) float64 {
	const tiny, precise = 1e-300, 1e-15
	nonzero := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/nonzero(1-(a+b)*x/(a+1))
	f := d
	for i := range 10_000 {
		m := float64(i + 1)
		for _, numerator := range []float64{
			m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m)),
			-(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1)),
		} {
			d = 1 / nonzero(1+numerator*d)
			c = nonzero(1 + numerator/c)
			f *= c * d
		}
		if math.Abs(c*d-1) < precise {
			break
		}
	}
	return f
}
