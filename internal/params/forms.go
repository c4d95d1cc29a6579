package params

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"hccl.dev/hccl/internal/cpuset"
	"hccl.dev/hccl/internal/log"
)

// Kind is what a knob's text means to C.
type Kind uint8

// The kinds. Their values are those of enum hccl_param_kind in the table that gen writes.
const (
	Text Kind = iota
	Int
	Bool
	Seconds // with a fraction
	Any     // of a name that does not act: a number where it is one
)

// form is how a knob's text is read, and what comes of it. The bounds and words are for C, which checks by them what set checks.
type form struct {
	Kind        Kind
	Range       string // what is accepted, in words
	Effect      Effect
	least, most int64    // of Int, Bool and Seconds, the latter in nanoseconds
	words       []string // of Text: all that is accepted; nil: set alone knows
	emptyCounts bool     // an empty text is a value
	instead     string   // what a text that is refused means; "": the default
	set         func(v *Values, s string) error
}

// PortRange is first to last, both included; the zero value is any port.
type PortRange struct{ First, Last uint16 }

// String is the form in which a range is set; "" for any port.
func (r PortRange) String() string {
	if r == (PortRange{}) {
		return ""
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

func text(at func(*Values) *string) form {
	return form{Kind: Text, Range: "any text", set: func(v *Values, s string) error {
		*at(v) = s
		return nil
	}}
}

// checked accepts a text that check has nothing against, and the empty one.
func checked(words string, check func(string) error, at func(*Values) *string) form {
	return form{Kind: Text, Range: words, set: func(v *Values, s string) error {
		if err := check(s); err != nil {
			return err
		}
		*at(v) = s
		return nil
	}}
}

// emptyToo makes an empty text a value of its own.
func emptyToo(f form) form {
	f.emptyCounts = true
	return f
}

// heard makes a text that is refused mean as much as text does, where the default would leave nobody to tell of it.
func heard(text string, f form) form {
	f.instead = text
	return f
}

// later marks a setting that is read, and that nothing asks for yet.
func later(f form) form {
	f.Effect = Later
	return f
}

func level(at func(*Values) *string) form {
	return checked("VERSION, WARN, INFO or TRACE", func(s string) error {
		_, err := log.ParseLevel(s)
		return err
	}, at)
}

func levels(at func(*Values) *string) form {
	return checked("levels separated by commas", func(s string) error {
		for word := range strings.SplitSeq(strings.TrimPrefix(s, "^"), ",") {
			if _, err := log.ParseLevel(strings.TrimSpace(word)); err != nil && !strings.EqualFold(strings.TrimSpace(word), "ALL") {
				return fmt.Errorf("%q is no level: %w, or ALL", word, err)
			}
		}
		return nil
	}, at)
}

func subjects(at func(*Values) *string) form {
	return checked("subjects separated by commas", func(s string) error {
		_, err := log.ParseSubjects(s)
		return err
	}, at)
}

func oneOf(at func(*Values) *string, words ...string) form {
	all := strings.Join(words, " or ")
	f := checked(all, func(s string) error {
		for _, w := range words {
			if s == "" || s == w {
				return nil
			}
		}
		return fmt.Errorf("want %s", all)
	}, at)
	f.words = words
	return f
}

// count accepts whole numbers as C's strtoll does with base 0.
func count(least, most int, at func(*Values) *int) form {
	return form{Kind: Int, Range: fmt.Sprintf("%d to %d", least, most), least: int64(least), most: int64(most),
		set: func(v *Values, s string) error {
			n, err := whole(s, int64(least), int64(most))
			if err == nil {
				*at(v) = int(n)
			}
			return err
		}}
}

func bytes(least, most int64, at func(*Values) *int64) form {
	return form{Kind: Int, Range: fmt.Sprintf("%d to %d bytes", least, most), least: least, most: most,
		set: func(v *Values, s string) error {
			n, err := whole(s, least, most)
			if n, unit := inUnits(s); err != nil && unit {
				return fmt.Errorf("want a plain number of bytes: %d", n)
			}
			if err == nil {
				*at(v) = n
			}
			return err
		}}
}

func whole(s string, least, most int64) (int64, error) {
	s = strings.TrimSpace(s)
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil || n < least || n > most || goOnly(s) {
		return 0, fmt.Errorf("want a whole number from %d to %d", least, most)
	}
	return n, nil
}

// goOnly reports whether a number is in a form that Go knows and C does not: 1_000, 0b1, 0o1.
func goOnly(s string) bool {
	digits := strings.ToLower(strings.TrimLeft(s, "+-"))
	return strings.Contains(s, "_") || strings.HasPrefix(digits, "0b") || strings.HasPrefix(digits, "0o")
}

// inUnits reads a number with K, M or G behind it. Such a text is refused, as by NCCL, but the answer can say what was meant.
func inUnits(s string) (int64, bool) {
	digits, suffix := s, int64(0)
	for k, unit := range "KMG" {
		if cut, ok := strings.CutSuffix(strings.ToUpper(s), string(unit)); ok {
			digits, suffix = cut, int64(1)<<(10*(k+1))
		}
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	return n * suffix, err == nil && suffix != 0
}

func flag(at func(*Values) *bool) form {
	return form{Kind: Bool, Range: "0 or 1", most: 1, set: func(v *Values, s string) error {
		n, err := whole(s, 0, 1)
		if err == nil {
			*at(v) = n == 1
		}
		return err
	}}
}

const mostSeconds = 1e9 // some thirty years; the sum with any clock fits a time.Duration

// seconds accepts numbers with a fraction; least is the smallest that makes sense.
func seconds(least float64, at func(*Values) *time.Duration) form {
	return form{Kind: Seconds, Range: fmt.Sprintf("seconds from %g", least), least: int64(least * 1e9), most: mostSeconds * 1e9,
		set: func(v *Values, s string) error {
			n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
			if err != nil || math.IsNaN(n) || n < least || n > mostSeconds {
				return fmt.Errorf("want a number of seconds from %g to %g", least, float64(mostSeconds))
			}
			*at(v) = time.Duration(n * float64(time.Second))
			return nil
		}}
}

func processors(at func(*Values) *cpuset.Set) form {
	return form{Kind: Text, Range: "processors, such as 0-3,8", set: func(v *Values, s string) error {
		set, err := cpuset.Parse(s)
		if err == nil {
			*at(v) = set
		}
		return err
	}}
}

func ports(at func(*Values) *PortRange) form {
	return form{Kind: Text, Range: "first-last, from 1 to 65535", set: func(v *Values, s string) error {
		if s == "" {
			*at(v) = PortRange{}
			return nil
		}
		a, b, _ := strings.Cut(s, "-")
		first, err1 := strconv.ParseUint(strings.TrimSpace(a), 10, 16)
		last, err2 := strconv.ParseUint(strings.TrimSpace(b), 10, 16)
		if err1 != nil || err2 != nil || first == 0 || last < first {
			return fmt.Errorf("want first-last with ports from 1 to 65535, such as 42000-42031")
		}
		*at(v) = PortRange{uint16(first), uint16(last)}
		return nil
	}}
}
