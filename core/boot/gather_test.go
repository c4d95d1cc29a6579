package boot

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// Ranks that know each other gather again, for two purposes at the same time; one that fails is named by all.
func TestGather(t *testing.T) {
	svc, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 3, 8, 13} {
		secret := bytes.Repeat([]byte{7}, 32)
		inboxes := make([]*Inbox, n)
		for r := range inboxes {
			inboxes[r] = svc.Expect(svc.NewKey(), secret)
		}
		at := func(r int) Member { return Member{r, svc.Addrs(), inboxes[r].key} }
		errs := make(chan error, n)
		for r := range n {
			go func() {
				for purpose := uint8(1); purpose <= 2; purpose++ {
					all, err := Gather(inboxes[r], purpose, r, n, at, []byte(fmt.Sprint(r, purpose)), within(20))
					for k, b := range all {
						if want := fmt.Sprint(k, purpose); string(b) != want {
							err = fmt.Errorf("rank %d got %q of rank %d, want %q", r, b, k, want)
						}
					}
					if err != nil {
						errs <- err
						return
					}
				}
				stop := within(20)
				if r == 1 {
					stop.Abort = func() error { return errors.New("stop") }
				}
				_, err := Gather(inboxes[r], 3, r, n, at, nil, stop)
				var failed *RankError
				if r != 1 && (!errors.As(err, &failed) || failed.Rank == r) || err == nil { // rank 1, or one that went because it did
					errs <- fmt.Errorf("rank %d of %d: %w", r, n, err)
					return
				}
				errs <- nil
			}()
		}
		for range n {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		for _, b := range inboxes {
			b.Close()
		}
	}
	if _, err := Gather(nil, 1, 0, 2, nil, make([]byte, MaxBlob+1), within(1)); err == nil {
		t.Error("more than a rank may tell was taken")
	}
}
