package tcp

import "testing"

// What a rank had still to tell one that says goodbye is dropped, and its own goodbye is heard nevertheless.
func TestGoodbyesCross(t *testing.T) {
	eachWay(t, 2, func(t *testing.T, nodes []*node) {
		l := nodes[0].links[1]
		if err := nodes[0].Control(1, []byte("heard")); err != nil {
			t.Fatal(err)
		}
		nodes[1].until(t, "first message", func() bool { return len(nodes[1].heard(0)) == 1 })
		l.tx.wait() // nothing is sent
		if err := nodes[0].Control(1, []byte("too late")); err != nil {
			t.Fatal(err)
		}
		nodes[1].parties[0].leave()
		nodes[1].flush()
		nodes[0].until(t, "goodbye", func() bool { return nodes[0].goneErr(1) != nil })
		l.collect()
		nodes[0].peers[1].reap()
		nodes[0].parties[0].leave() // while the sender is between the two
		nodes[0].rail(1, 0).sendSome(manyBatches, batchBytes)
		for !l.tx.pass() {
			l.sendSome()
		}
		nodes[1].until(t, "the other goodbye", func() bool { return nodes[1].goneErr(0) != nil })
		wantGone(t, nodes[1].goneErr(0), 0, true)
	})
}
