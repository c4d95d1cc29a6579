package log

import "testing"

// What a line costs that is not wanted: it stands in code that runs once per operation.
func BenchmarkOff(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if On(LevelTrace, Coll) {
			Trace(Coll, "never")
		}
	}
}
