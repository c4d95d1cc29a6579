// Package cpuset is sets of processors, in the forms in which the kernel and people write them: lists, 0-3,8, as in cpulist files,
// cgroups and the settings, and masks, ff,ffffffff, as in cpumap files and NCCL's XML.
//
// It is arithmetic alone. Whose processors they are and which thread may use them is said elsewhere (graph/affinity, core).
package cpuset

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Most is how many processors a set can name; Linux is built for at most half as many.
const Most = 16384

// Set is a set of processors. The zero value is empty. It has no zero words at its end, so that equal sets are equal words.
type Set struct{ words []uint64 }

// Of is the set of these processors.
func Of(cpus ...int) (s Set) {
	for _, c := range cpus {
		s.add(c, c)
	}
	return s
}

func (s *Set) add(first, last int) {
	for len(s.words) <= last/64 {
		s.words = append(s.words, 0)
	}
	for c := first; c <= last; c++ {
		s.words[c/64] |= 1 << (c % 64)
	}
}

func trimmed(words []uint64) Set {
	for len(words) > 0 && words[len(words)-1] == 0 {
		words = words[:len(words)-1]
	}
	return Set{words}
}

// And is the set of those that are in both.
func (s Set) And(t Set) Set {
	words := make([]uint64, min(len(s.words), len(t.words)))
	for k := range words {
		words[k] = s.words[k] & t.words[k]
	}
	return trimmed(words)
}

// Or is the set of those that are in one of both.
func (s Set) Or(t Set) Set {
	words := make([]uint64, max(len(s.words), len(t.words)))
	copy(words, s.words)
	for k, w := range t.words {
		words[k] |= w
	}
	return Set{words}
}

// Equal reports whether both have the same processors.
func (s Set) Equal(t Set) bool { return slices.Equal(s.words, t.words) }

// Empty reports whether there is none.
func (s Set) Empty() bool { return len(s.words) == 0 }

// Len is how many there are.
func (s Set) Len() (n int) {
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// Has reports whether processor c is in the set.
func (s Set) Has(c int) bool {
	return c >= 0 && c/64 < len(s.words) && s.words[c/64]&(1<<(c%64)) != 0
}

// All are the processors in order.
func (s Set) All() (cpus []int) {
	for k, w := range s.words {
		for ; w != 0; w &= w - 1 {
			cpus = append(cpus, 64*k+bits.TrailingZeros64(w))
		}
	}
	return cpus
}

// String is the set as a list, 0-3,8; "" if it is empty.
func (s Set) String() string {
	var parts []string
	cpus := s.All()
	for i := 0; i < len(cpus); {
		j := i
		for j+1 < len(cpus) && cpus[j+1] == cpus[j]+1 {
			j++
		}
		part := strconv.Itoa(cpus[i])
		if j > i {
			part += "-" + strconv.Itoa(cpus[j])
		}
		parts, i = append(parts, part), j+1
	}
	return strings.Join(parts, ",")
}

// Mask is the set as a mask, groups of 32 bits with the highest first; "0" if it is empty.
func (s Set) Mask() string {
	if s.Empty() {
		return "0"
	}
	var groups []string
	for _, w := range slices.Backward(s.words) {
		groups = append(groups, fmt.Sprintf("%08x", w>>32), fmt.Sprintf("%08x", uint32(w)))
	}
	if groups[0] == "00000000" {
		groups = groups[1:]
	}
	groups[0] = strings.TrimLeft(groups[0], "0")
	return strings.Join(groups, ",")
}
