package cases

import "testing"

// What only HCCL has.
func TestExtensions(t *testing.T) {
	kind{
		{"types and reductions", "case_bits", both, nil},
		{"a barrier names the absent", "case_limit", both, []string{"barrier"}},
		{"limits of calls", "case_limit", both, []string{"calls"}},
		{"a limit changed meanwhile", "case_limit", both, []string{"change"}},
		{"tags, in order", "case_tags", both, []string{"order"}},
		{"tags, groups and streams", "case_tags", both, []string{"groups"}},
		{"tags, too long", "case_tags", both, []string{"long"}},
		{"tags, a rank dies", "case_tags", both, []string{"death"}},
		{"requests of all operations", "case_requests", both, []string{"all"}},
		{"requests in any order", "case_requests", both, []string{"order"}},
		{"requests, waits and callbacks", "case_requests", both, []string{"waits"}},
		{"requests, what ends them", "case_requests", both, []string{"end"}},
		{"requests beside calls of another thread", "case_requests", both, []string{"beside"}},
		{"requests of many communicators", "case_requests", both, []string{"many"}},
		{"requests, abort and destroy", "case_requests", both, []string{"abort"}},
	}.test(t)
}
