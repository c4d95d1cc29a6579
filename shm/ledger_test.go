package shm

import (
	"bufio"
	"fmt"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() { roles["ledger"] = ledgerRole }

// ledgerRole tells an amount for each card that it reads, and says what all tell.
func ledgerRole(in *bufio.Scanner, args []string) error {
	l := openLedger(args[0])
	amount, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return err
	}
	for in.Scan() {
		card, err := strconv.ParseUint(in.Text(), 10, 64)
		if err != nil {
			return err
		}
		fmt.Println(l.Post(card, [3]uint64{1, 0, amount})[2])
	}
	return nil
}

func someLedger() string { return "@hccl.ledger.test." + NewKey().hex() }

// Processes of a host see the sum of what all tell of a card, also after the one has died that handed the page out.
func TestLedger(t *testing.T) {
	name := someLedger()
	told := func(c *child, card int) string {
		fmt.Fprintln(c.in, card)
		return c.line()
	}
	agree := func(want string, card int, all ...*child) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); ; {
			got := ""
			for _, c := range all {
				if s := told(c, card); s != want {
					got = s
				}
			}
			if got == "" {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("card %d: %s in all, want %s", card, got, want)
			}
		}
	}
	a := start(t, "ledger", name, 1)
	agree("1", 7, a) // it has the name
	b, c := start(t, "ledger", name, 20), start(t, "ledger", name, 300)
	agree("321", 7, a, b, c)
	agree("21", 8, a, b)
	a.kill()
	agree("320", 7, b, c)
	d := start(t, "ledger", name, 4000)
	agree("4320", 7, b, c, d)
}

// A page that is no ledger is not used, and nothing of it is kept.
func TestLedgerRefusesOtherMemory(t *testing.T) {
	l := openLedger(someLedger())
	page := l.page
	for what, size := range map[string]uint64{"small": lineSize, "large": 2 * ledgerSize} {
		fd, err := newMemfd(size)
		if err != nil {
			t.Fatal(err)
		}
		if l.adopt(fd); l.page != page {
			t.Errorf("a %s page is used", what)
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			t.Errorf("the descriptor of a %s page is kept", what)
		}
	}
	for card := range uint64(2 * ledgerLines) { // more than it has room for
		if got := l.Post(card, [3]uint64{card, 0, 0}); got[0] != card {
			t.Fatalf("card %d: %v", card, got)
		}
	}
}
