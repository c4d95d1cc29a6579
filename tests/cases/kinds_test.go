package cases

import (
	"strconv"
	"testing"
)

// kind is a table of cases that need no surroundings.
type kind []struct {
	name, program string
	paths         []path
	args          []string
}

func (k kind) test(t *testing.T) {
	for _, c := range k {
		t.Run(c.name, func(t *testing.T) { try(t, c.paths, c.program, c.args...) })
	}
}

func TestStart(t *testing.T) {
	kind{
		{"C20 a rank never comes", "case_start", both, []string{"absent"}},
		{"C20 the id's maker has ended", "case_start", both, []string{"maker_gone"}},
		{"C20 one of several ids' makers has ended", "case_start", both[:1], []string{"ids_gone"}},
		{"several ids", "case_start", both, []string{"ids"}},
		{"C26 one id twice", "case_start", both, []string{"id_again"}},
		{"C29 64 ranks", "case_start", both, []string{"crowd"}},
		{"C29 64 ranks as threads", "case_start", both[:1], []string{"threads", "16"}},
		{"C29 64 communicators", "case_start", both, []string{"series"}},
	}.test(t)
}

func TestDisagree(t *testing.T) {
	kind{
		{"C39 counts, 2 ranks", "case_disagree", both, []string{"counts", "2"}},
		{"C39 counts, 4 ranks", "case_disagree", both, []string{"counts", "4"}},
		{"C41 functions", "case_disagree", both, []string{"calls", "function"}},
		{"C41 order", "case_disagree", both, []string{"calls", "order"}},
		{"C41 roots", "case_disagree", both, []string{"calls", "root"}},
		{"C41 one call more", "case_disagree", both, []string{"calls", "extra"}},
		{"C43 settings", "case_disagree", both, []string{"settings"}},
	}.test(t)
}

// Each operation with a rank that comes late. They mostly wait, so they run side by side.
func TestLate(t *testing.T) {
	binary := build(t, "case_disagree")
	for op := range 9 {
		for _, c := range []struct {
			ranks string
			env   []string
		}{{"2", nil}, {"5", []string{"HCCL_TIMEOUT=3600"}}} {
			for _, p := range both {
				t.Run("C45 operation "+strconv.Itoa(op)+" of "+c.ranks+" over "+p.name, func(t *testing.T) {
					t.Parallel()
					run(t, append(c.env, p.env...), binary, "late", strconv.Itoa(op), c.ranks)
				})
			}
		}
	}
}

func TestDeath(t *testing.T) {
	kind{
		{"C46 killed", "case_death", both, []string{"killed", "kill"}},
		{"C46 ended by itself", "case_death", both, []string{"killed", "exit"}},
		{"C46 ended while the others are idle", "case_death", both, []string{"killed", "idle"}},
		{"C48 abort of one rank", "case_death", both, []string{"abort", "loop"}},
		{"C48 abort with stopped peers", "case_death", both, []string{"abort", "stopped"}},
		{"C50 a peer leaves with messages pending", "case_death", both, []string{"pending"}},
		{"C51 destroy without the others", "case_death", both, []string{"destroy"}},
		{"C51 destroy in reverse order", "case_death", both, []string{"reverse"}},
		{"C54 start again after a death", "case_death", both, []string{"again"}},
	}.test(t)
}

func TestTopology(t *testing.T) {
	kind{{"L files of topologies, rings and costs", "case_topology", both, []string{"files"}}}.test(t)
}

func TestMeaning(t *testing.T) {
	kind{
		{"C55 zero elements", "case_meaning", both, []string{"zero"}},
		{"C55 zero against some", "case_meaning", both, []string{"zero_against"}},
		{"C57 in place", "case_meaning", both, []string{"place"}},
		{"C60 odd addresses and tails", "case_exact", both, []string{"odd"}},
		{"C62 NULL and bad arguments", "case_meaning", both, []string{"null"}},
		{"C63 order of messages", "case_order", both, []string{"messages"}},
		{"C63 receives in another order", "case_order", both, []string{"swapped"}},
		{"C65 split", "case_order", both, []string{"split"}},
		{"C65 a rank that does not split", "case_order", both, []string{"split_absent"}},
		{"C66 one rank", "case_meaning", both[:1], []string{"single"}},
	}.test(t)
}

func TestNumbers(t *testing.T) {
	kind{
		{"C67 same bits on all ranks", "case_numbers", both, []string{"same"}},
		{"C69 same bits at any size and offset", "case_numbers", both, []string{"embedded"}},
		{"C70 small terms", "case_numbers", both, []string{"small"}},
		{"C72 averages and scaled sums", "case_numbers", both, []string{"scaled"}},
	}.test(t)
}

func TestProcess(t *testing.T) {
	kind{
		{"C82 groups across threads", "case_process", both[:1], []string{"groups"}},
		{"C82 threads with their own", "case_process", both, []string{"threads"}},
		{"C82 threads on one communicator", "case_process", both, []string{"one"}},
		{"C83 fork after init", "case_process", both, []string{"fork"}},
		{"C83 fork before first use", "case_process", both[:1], []string{"fork_first"}},
		{"C85 signal handlers", "case_process", both[:1], []string{"signals"}},
		{"C85 SIGTERM while blocked", "case_process", both, []string{"sigterm"}},
		{"C87 three communicators, three threads", "case_process", both, []string{"cross"}},
		{"C87 crossed order in one thread", "case_process", both, []string{"crossed"}},
	}.test(t)
}

func TestStreams(t *testing.T) {
	kind{
		{"order of three communicators on three streams", "case_stream", both, []string{"order"}},
		{"C87 crossed orders on two streams", "case_stream", both, []string{"crossed"}},
		{"a stream that is held up", "case_stream", both, []string{"held"}},
		{"groups", "case_stream", both, []string{"groups"}},
		{"events", "case_stream", both[:1], []string{"events"}},
		{"host functions", "case_stream", both, []string{"functions"}},
		{"progress beside a computation", "case_stream", both, []string{"progress"}},
		{"errors", "case_stream_end", both, []string{"errors"}},
		{"a rank is killed", "case_stream_end", both, []string{"killed"}},
		{"a limit", "case_stream_end", both, []string{"limit"}},
		{"abort with work queued", "case_stream_end", both, []string{"abort"}},
		{"destroy with work queued", "case_stream_end", both, []string{"destroy"}},
		{"non-blocking communicators", "case_stream_end", both, []string{"nonblocking"}},
		{"fork with work queued", "case_stream_end", both, []string{"fork"}},
		{"thousands of streams", "case_stream_end", both, []string{"crowd"}},
		{"made and destroyed over and over", "case_stream_end", both, []string{"leak"}},
		{"waiting", "case_stream_end", both, []string{"wait"}},
	}.test(t)
}

func TestCost(t *testing.T) {
	kind{
		{"C89 many communicators", "case_cost", both, []string{"cycles"}},
		{"C91 idle", "case_cost", both, []string{"idle"}},
		{"C91 eight ranks on one processor", "case_cost", both, []string{"busy"}},
		{"C91 waiting", "case_cost", both, []string{"wait"}},
		{"C92 the processors given", "case_cost", both, []string{"affinity"}},
		{"C93 memory", "case_cost", both, []string{"memory"}},
		{"C95 registration", "case_cost", both[:1], []string{"register"}},
	}.test(t)
}
