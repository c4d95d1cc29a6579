package boot

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hccl.dev/hccl/internal/testkit"
)

// The programs that TestMain builds from the shim's C.
var rootProgram, shaProgram string

func TestMain(m *testing.M) {
	FDs = books
	if dir := os.Getenv("BOOT_INSIDE"); dir != "" { // a test runs itself in a network namespace
		rootProgram = filepath.Join(dir, "root")
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "boot")
	if err != nil {
		panic(err)
	}
	rootProgram = build(dir, "root", testkit.RootFiles...)
	shaProgram = build(dir, "sha", "sha256.c")
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// build compiles a test program with files of the shim, under the sanitizers.
func build(dir, name string, shim ...string) string {
	out := filepath.Join(dir, name)
	flags := []string{"-fsanitize=address,undefined", "-fno-sanitize-recover=all"}
	if err := testkit.Build("../..", out, "testdata/"+name+"/"+name+".c", flags, shim...); err != nil {
		panic(err)
	}
	return out
}

// maker is a process that makes ids.
type maker = testkit.Maker

func newMaker(t *testing.T, env ...string) *maker {
	t.Helper()
	return testkit.NewMaker(t, rootProgram, env...)
}

// within is a limit of so many seconds.
func within(s float64) Limit {
	return Limit{Deadline: time.Now().Add(time.Duration(s * float64(time.Second)))}
}

type outcome struct {
	rank int
	all  [][]byte
	err  error
	took time.Duration
}

// meetAll runs Meet for some ranks at once and returns what each got, by rank.
func meetAll(id []byte, n int, ranks []int, lim func(rank int) Limit) map[int]outcome {
	results := make(chan outcome)
	for _, r := range ranks {
		go func() {
			start := time.Now()
			all, err := Meet(id, r, n, blobOf(r), lim(r))
			results <- outcome{r, all, err, time.Since(start)}
		}()
	}
	out := map[int]outcome{}
	for range ranks {
		o := <-results
		out[o.rank] = o
	}
	return out
}

func same(lim Limit) func(int) Limit { return func(int) Limit { return lim } }

func upTo(n int) []int {
	ranks := make([]int, n)
	for r := range ranks {
		ranks[r] = r
	}
	return ranks
}

// blobOf is what rank r has to say: of a length of its own, some 0.
func blobOf(r int) []byte { return []byte(strings.Repeat(fmt.Sprintf("<%d>", r), r*37%300)) }

// wantMet fails unless all n ranks got everybody's blob.
func wantMet(t *testing.T, n int, got map[int]outcome) {
	t.Helper()
	for r, o := range got {
		if o.err != nil {
			t.Fatalf("rank %d of %d: %v", r, n, o.err)
		}
		if len(o.all) != n {
			t.Fatalf("rank %d of %d got %d blobs", r, n, len(o.all))
		}
		for k, b := range o.all {
			if string(b) != string(blobOf(k)) {
				t.Fatalf("rank %d of %d: blob %d is %q", r, n, k, b)
			}
		}
	}
}
