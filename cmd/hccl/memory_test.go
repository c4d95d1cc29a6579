package main

import "testing"

func TestBuffersMustFit(t *testing.T) {
	j := &job{ranks: 4, threads: 1, held: 1, most: 1 << 30, subjects: []subject{{op: operationNamed("all_reduce")}}}
	for available, fits := range map[int]bool{0: true, 8<<30 - 1: false, 8 << 30: true} {
		if err := j.fits(available); (err == nil) != fits {
			t.Errorf("%d: %v", available, err)
		}
	}
	j.subjects[0].op = operationNamed("alltoall")
	if j.fits(12<<30-1) == nil || j.fits(12<<30) != nil {
		t.Error("alltoall has a buffer more")
	}
	j.world = &world{size: 4}
	if j.fits(3<<30) != nil {
		t.Error("other hosts' ranks count here")
	}
}

func TestMeminfo(t *testing.T) {
	for text, want := range map[string]int{"MemTotal: 9 kB\nMemAvailable:   123 kB\nBuffers: 1 kB\n": 123 << 10, "MemTotal: 9 kB\n": 0,
		"MemAvailable:": 0, "MemAvailable: x": 0} {
		if got := availableIn(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
