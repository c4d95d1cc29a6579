package fabric

import (
	"strings"
	"testing"
)

func TestPlaceOf(t *testing.T) {
	const file = `{"hosts": ["n0", "n1", "alone"], "switches": [{"name": "leaf7", "group": 2}, {"name": "leaf8"}],
		"links": [{"a": "n0", "b": "leaf7", "gbps": 25}, {"a": "n1", "b": "leaf8", "gbps": 25}]}`
	const lldp = `{"lldp": {"interface": [{"eth1": {"chassis": {"leaf9": {"id": {"value": "a"}}}, "port": {"id": {"value": "p"}}}}]}}`
	for _, c := range []struct {
		text, host string
		want       Place
		wrong      string
	}{
		{file, "n0", Place{"leaf7", 2}, ""}, {file, "n1.example.org", Place{"leaf8", -1}, ""}, {lldp, "any", Place{"leaf9", -1}, ""},
		{file, "n2", Place{}, `no host "n2" in the fabric`}, {file, "alone", Place{}, "hangs on no switch"},
		{`{"lldp": {}}`, "n0", Place{}, "let the switches send LLDP"}, {"{", "n0", Place{}, "cannot be read"},
	} {
		got, err := PlaceOf([]byte(c.text), c.host)
		if got != c.want || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s in %.20s: %+v, %v", c.host, c.text, got, err)
		}
	}
}
