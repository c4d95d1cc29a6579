package boot

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"
)

// Ranks that know each other gather again, for two purposes at the same time; without one of them none gets what it gathers.
func TestGather(t *testing.T) {
	svc, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 3, 8, 13} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel() // they wait for the absent most of the time
			gatherTwice(t, svc, n)
		})
	}
	if _, err := Gather(nil, 1, 0, 2, nil, make([]byte, MaxBlob+1), within(1)); err == nil {
		t.Error("more than a rank may tell was taken")
	}
}

func gatherTwice(t *testing.T, svc *Service, n int) {
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
			if r == 1 { // it stays away from the third
				errs <- nil
				return
			}
			if _, err := Gather(inboxes[r], 3, r, n, at, nil, within(0.3)); err == nil {
				errs <- fmt.Errorf("rank %d of %d was content without rank 1", r, n)
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
