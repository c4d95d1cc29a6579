package core

import (
	"testing"

	"hccl.dev/hccl/proto/wire"
)

// Ranks of one process read what all have told once; one of another job under the same secret reads its own.
func TestTableIsReadOnce(t *testing.T) {
	tell := func(host string) [][]byte {
		return [][]byte{(&wire.Peer{Host: host, Device: 1}).Append(nil), (&wire.Peer{Host: "b"}).Append(nil)}
	}
	s := secret{1}
	first, second := openTable(s), openTable(s)
	if first != second || first == openTable(secret{2}) {
		t.Fatal("tables are not those of a secret")
	}
	closeTable(secret{2})
	a, err := first.take(0, tell("a"))
	if err != nil {
		t.Fatal(err)
	}
	a[0].Device = 7
	again, err := second.take(1, tell("a"))
	if err != nil || again[0].Host != "a" || again[0].Device != 1 {
		t.Errorf("the second rank takes %+v, %v", again, err)
	}
	other, err := second.take(1, tell("c"))
	if err != nil || other[0].Host != "c" {
		t.Errorf("a rank of another job takes %+v, %v", other, err)
	}
	if _, err := (&table{}).take(1, [][]byte{{1}}); ResultOf(err) != RemoteError {
		t.Errorf("words that make no sense: %v", err)
	}
	closeTable(s)
	closeTable(s)
	if tables.by[s] != nil {
		t.Error("the table stays")
	}
}
