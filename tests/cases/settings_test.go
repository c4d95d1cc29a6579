package cases

import (
	"strings"
	"testing"
)

// Settings as users write them. What is said of them goes to a file of each process.

// An algorithm that cannot do an operation is told once, when the communicator is made, and another does it.
func TestForcedAlgorithms(t *testing.T) {
	for k, c := range []struct {
		env    string
		unfit  string // operations that the algorithms asked for cannot do, none: ""
		others string // said instead
	}{
		{"NCCL_ALGO=Tree", "all-reduce, reduce, broadcast, all-gather, reduce-scatter", ""},
		{"NCCL_ALGO=NVLS", "all-reduce, reduce, broadcast, all-gather, reduce-scatter", ""},
		{"NCCL_ALGO=CollnetDirect", "all-reduce, reduce, broadcast, all-gather, reduce-scatter", ""},
		{"NCCL_ALGO=allreduce:tree;broadcast:ring", "all-reduce", ""},
		{"NCCL_ALGO=twoshot", "broadcast, all-gather, reduce-scatter", ""},
		{"NCCL_ALGO=alltoall:ring", "all-to-all", ""},
		{"NCCL_ALGO=Ring", "", ""},
		{"NCCL_ALGO=Tree,Ring", "", ""},
		{"NCCL_ALGO=^Tree", "", ""},
		{"NCCL_ALGO=^Ring", "", ""},
		{"NCCL_ALGO=^Ring,direct,Tree", "", "NCCL_ALGO=^Ring,direct,Tree (environment) is not used"},
		{"NCCL_PROTO=LL128", "", ""},
		{"NCCL_PROTO=^Simple", "", ""},
	} {
		p := both[k%2] // in turn: a choice does not depend on the path
		t.Run("C101 "+c.env+" over "+p.name, func(t *testing.T) {
			said := strings.Join(heard(t, "WARN", append([]string{c.env}, p.env...), "few"), "")
			_, value, _ := strings.Cut(c.env, "=")
			want, says := 0, c.others
			switch {
			case c.unfit != "":
				want, says = 4, "NCCL_ALGO="+value+" of rank 0 cannot do "+c.unfit+": " // a rank that is alone takes none
			case c.others != "":
				want = 1 + 2 + 3 + 4 + 5 // each process reads its own
			}
			if got := strings.Count(said, "HCCL WARN"); got != want || strings.Count(said, says) < want {
				t.Errorf("%d warnings by jobs of 1 to 5 ranks, want %d that say %q:\n%s", got, want, says, said)
			}
		})
	}
}
