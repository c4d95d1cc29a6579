package main

import "sort"

// What the ranks found becomes one result.

func (r *runner) joined() (g result) {
	g.checked = r.checks > 0
	for k := range r.ranks {
		g.wrong += r.page.of[k].wrong
	}
	of := func(get func(*found) float64) float64 {
		return combined(r.combine, r.ranks, func(k int) float64 { return get(&r.page.of[k]) })
	}
	g.seconds = of(func(f *found) float64 { return f.seconds })
	g.p50 = of(func(f *found) float64 { return f.p50 })
	g.p99 = of(func(f *found) float64 { return f.p99 })
	return g
}

// combined is one number for all ranks: rank 0's, the mean, the least or the most.
func combined(how, n int, of func(rank int) float64) float64 {
	v := of(0)
	for k := 1; k < n && how > 0; k++ {
		switch how {
		case 1:
			v += of(k)
		case 2:
			v = min(v, of(k))
		case 3:
			v = max(v, of(k))
		}
	}
	if how == 1 {
		v /= float64(n)
	}
	return v
}

// percentiles are the middle and the 99th of a hundred, of one call.
func percentiles(samples []float64, fold float64) (p50, p99 float64) {
	if len(samples) == 0 {
		return 0, 0
	}
	sort.Float64s(samples)
	at := func(p int) float64 { return samples[min(len(samples)*p/100, len(samples)-1)] / fold }
	return at(50), at(99)
}
