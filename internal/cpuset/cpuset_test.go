package cpuset_test

import (
	"testing"

	"hccl.dev/hccl/internal/cpuset"
)

func TestForms(t *testing.T) {
	for _, c := range []struct{ list, plain, mask string }{
		{"", "", "0"},
		{"0", "0", "1"},
		{"0-3,8", "0-3,8", "10f"},
		{" 4 , 2-3\n", "2-4", "1c"},
		{"0-127", "0-127", "ffffffff,ffffffff,ffffffff,ffffffff"},
		{"31,32", "31-32", "1,80000000"},
		{"64-95", "64-95", "ffffffff,00000000,00000000"},
		{"0-7:1/2", "0,2,4,6", "55"},
		{"0-9:3/5", "0-2,5-7", "e7"},
		{"3,3,3-3", "3", "8"},
		{"16383", "16383", ""},
	} {
		s, err := cpuset.Parse(c.list)
		if err != nil || s.String() != c.plain || c.mask != "" && s.Mask() != c.mask {
			t.Errorf("%q: %q, mask %q, %v, want %q, mask %q", c.list, s.String(), s.Mask(), err, c.plain, c.mask)
		}
		if back, err := cpuset.ParseMask(s.Mask()); err != nil || !back.Equal(s) {
			t.Errorf("%q: mask %q reads as %q, %v", c.list, s.Mask(), back.String(), err)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, list := range []string{"a", "-1", "3-2", "0-", ",", "0,,1", "16384", "0-99999999999999999999", "0x3", "1:1/2", "0-7:3/2",
		"0-7:0/2", "+1"} {
		if s, err := cpuset.Parse(list); err == nil || !s.Empty() {
			t.Errorf("list %q is taken for %q", list, s.String())
		}
	}
	for _, mask := range []string{"", ",", "g", "123456789", "ff,", "0xff", "-1", "ff ff"} {
		if s, err := cpuset.ParseMask(mask); err == nil || !s.Empty() {
			t.Errorf("mask %q is taken for %q", mask, s.String())
		}
	}
}

func TestSets(t *testing.T) {
	a, b := cpuset.Of(0, 1, 70), cpuset.Of(1, 200)
	if got := a.And(b); !got.Equal(cpuset.Of(1)) || got.Len() != 1 {
		t.Errorf("and: %s", got)
	}
	if got := a.Or(b); got.String() != "0-1,70,200" || got.Len() != 4 {
		t.Errorf("or: %s", got)
	}
	if got := a.And(cpuset.Of(200)); !got.Empty() || !got.Equal(cpuset.Set{}) {
		t.Errorf("of nothing in common: %s", got)
	}
	if !a.Has(70) || a.Has(69) || a.Has(-1) || a.Has(1<<30) {
		t.Error("Has is wrong")
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"0-3,8", "ff,ffffffff", "0-9:3/5", "0-16383:1/16384", "1,80000000"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := cpuset.Parse(text); err == nil {
			if again, err := cpuset.Parse(s.String()); err != nil || !again.Equal(s) {
				t.Errorf("list %q: %q reads as %q, %v", text, s.String(), again.String(), err)
			}
		}
		if s, err := cpuset.ParseMask(text); err == nil {
			if again, err := cpuset.ParseMask(s.Mask()); err != nil || !again.Equal(s) {
				t.Errorf("mask %q: %q reads as %q, %v", text, s.Mask(), again.String(), err)
			}
		}
	})
}
