package plural

import "testing"

func TestOf(t *testing.T) {
	for n, want := range map[int]string{0: "0 GPUs", 1: "1 GPU", 2: "2 GPUs"} {
		if got := Of(n, "GPU"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
