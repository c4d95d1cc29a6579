package boot

import (
	"errors"
	"fmt"
	"time"
)

// How ranks hear of each other's failures: an error becomes the payload of an answer (HCCL_FAILED in meet.h), and an error again.

// refusal is the error for a roll call that failed for the root's reason why, on account of rank.
func (m *meeting) refusal(f *failed) error {
	rank, text := f.rank, f.text
	switch f.why {
	case whyUsed:
		return &UsedError{m.rank, m.ids > 1}
	case whyDuplicate:
		return &DuplicateError{rank, text}
	case whyNranks:
		return &SizeError{rank, text}
	case whyVersion:
		return &VersionError{rank, text}
	case whyKey:
		return &KeyError{rank, text}
	case whyTimeout:
		return &AbsentError{f.missing, m.n, rank, m.root}
	case whyFull:
		return &SystemError{"the roll call at " + m.root.String(), errors.New(text)}
	case whyMaker:
		return &MakerError{text}
	case whyIDs:
		return &OrderError{rank, text}
	}
	return &RankError{rank, text}
}

// newsOf is the failure of rank me as the others are to hear it.
func newsOf(err error, me int) *failed {
	var (
		used    *UsedError
		maker   *MakerError
		nowhere *UnreachableError
		system  *SystemError
	)
	f := &failed{why: whyGone, rank: me, text: err.Error()}
	if blamed := Blamed(err); len(blamed) == 1 {
		f.rank = blamed[0]
	}
	switch e := err.(type) {
	case *AbsentError:
		f.why, f.rank, f.missing, f.text = whyTimeout, e.By, e.Ranks, ""
	case *DuplicateError:
		f.why = whyDuplicate
	case *SizeError:
		f.why, f.text = whyNranks, e.Text
	case *VersionError:
		f.why, f.text = whyVersion, e.Text
	case *OrderError:
		f.why = whyIDs
	case *KeyError:
		f.why, f.text = whyKey, e.Text
	case *RankError, *SilentError:
	default:
		switch {
		case errors.As(err, &used):
			f.why = whyUsed
		case errors.As(err, &maker):
			f.why = whyMaker
		case errors.As(err, &nowhere):
			f.why, f.text = whyMaker, fmt.Sprintf("rank %d: %v", me, err)
		case errors.As(err, &system):
			f.text = fmt.Sprintf("rank %d: %v", me, err)
		default:
			f.why, f.text = whyAborted, fmt.Sprintf("rank %d was aborted during init", me)
		}
	}
	return f
}

// tell lets all neighbours know that this rank fails, and because of whom, also those whose connection is still being made; those that
// come later hear it from the inbox, as long as this process lives.
func (x *rounds) tell(cause error) {
	x.failed = true
	f, patience := newsOf(cause, x.rank), tellFailed
	if f.why == whyAborted {
		patience = tellAbort
	}
	b := framed(frameFail, 0, f.encode(maxReason))
	defer x.inbox.answer(x.purpose, b)
	for until := time.Now().Add(patience); time.Now().Before(until); x.wait(time.Until(until)) {
		x.arrivals()
		left := 0
		for _, l := range x.all {
			if l.s == nil && l.dial != nil {
				l.s, _ = l.dial.turn()
			}
			if l.s == nil {
				left++
			} else if !l.told {
				l.told, l.ended = true, true
				l.s.send(b) // after blocks that are half sent; one that does not hear sees the connection end
			}
		}
		if left == 0 {
			return
		}
	}
}
