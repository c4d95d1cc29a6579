package cases

import "testing"

// What only HCCL has.
func TestExtensions(t *testing.T) {
	kind{
		{"types and reductions", "case_bits", both, nil},
	}.test(t)
}
