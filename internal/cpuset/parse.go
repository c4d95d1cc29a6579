package cpuset

import (
	"fmt"
	"strconv"
	"strings"
)

// Parse reads a list: numbers and ranges with commas, blanks around them as one likes, and first-last:use/step as the kernel's own
// parameters have it, of every step processors the first use. An empty text is the empty set.
func Parse(list string) (s Set, err error) {
	if strings.TrimSpace(list) == "" {
		return Set{}, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		if err := s.addPart(strings.TrimSpace(part)); err != nil {
			return Set{}, err
		}
	}
	return s, nil
}

func (s *Set) addPart(part string) error {
	span, group, grouped := strings.Cut(part, ":")
	from, to, ranged := strings.Cut(span, "-")
	first, err := number(from, Most-1)
	last := first
	if err == nil && ranged {
		last, err = number(to, Most-1)
	}
	use, step := 1, 1
	if err == nil && grouped {
		u, st, _ := strings.Cut(group, "/")
		if use, err = number(u, Most); err == nil {
			step, err = number(st, Most)
		}
	}
	if err != nil || last < first || use < 1 || step < use || grouped && !ranged {
		return fmt.Errorf("%q is no processor and no range of them below %d, such as 4 or 0-3", shorten(part), Most)
	}
	for c := first; c <= last; c += step {
		s.add(c, min(c+use-1, last))
	}
	return nil
}

func number(text string, most int) (int, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err == nil && n > uint64(most) {
		err = strconv.ErrRange
	}
	return int(n), err
}

// ParseMask reads a mask: hexadecimal groups of 32 bits with commas, the highest first. The kernel writes all groups with 8 digits.
func ParseMask(mask string) (Set, error) {
	groups := strings.Split(strings.TrimSpace(mask), ",")
	words := make([]uint64, (len(groups)+1)/2)
	for k, g := range groups {
		bits, err := strconv.ParseUint(g, 16, 32)
		if err != nil || len(g) > 8 || len(groups) > Most/32 {
			return Set{}, fmt.Errorf("%q is no mask of processors, which is groups of 8 hexadecimal digits with commas, such as ff,ffffffff",
				shorten(mask))
		}
		at := len(groups) - 1 - k // in groups from the lowest
		words[at/2] |= bits << (32 * (at % 2))
	}
	return trimmed(words), nil
}

func shorten(text string) string {
	if len(text) > 40 {
		return text[:40] + "..."
	}
	return text
}
