package registration

// idle is the regions without users, in the order in which they lost their last one.
type idle struct{ oldest, newest *Region }

func (l *idle) push(r *Region) {
	r.older, r.newer = l.newest, nil
	if l.newest != nil {
		l.newest.newer = r
	} else {
		l.oldest = r
	}
	l.newest = r
}

func (l *idle) remove(r *Region) {
	if r.older != nil {
		r.older.newer = r.newer
	} else {
		l.oldest = r.newer
	}
	if r.newer != nil {
		r.newer.older = r.older
	} else {
		l.newest = r.older
	}
	r.older, r.newer = nil, nil
}
