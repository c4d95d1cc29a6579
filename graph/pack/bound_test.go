package pack

import (
	"math"
	"math/rand"
	"testing"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-5*math.Max(1, math.Abs(want)) {
		t.Errorf("%s: %.6g, want %.6g", what, got, want)
	}
}

func TestBoundOfKnownMachines(t *testing.T) {
	near(t, "mesh of 4", Bound(mesh(4), 1).Bus, 30)        // all three links into a GPU
	near(t, "line of 3", Bound(line(3), 1).Bus, 12)        // two GPUs -> the third: 12/2, times 2
	near(t, "switch of 4", Bound(nvswitch(4), 1).Bus, 148) // 100 by the switch, 48 by PCI
	near(t, "two switches of 4", Bound(nvswitch(4), 2).Bus, 148)
	near(t, "512 lines of 3", Bound(line(3), 512).Bus, 10.0*1535/(3*511)) // all other hosts' share through one port
	near(t, "one GPU", Bound(mesh(1), 1).Bus, 0)
}

func TestBoundSaysWhichCut(t *testing.T) {
	l := Bound(line(4), 2)
	near(t, "share", l.Share, 12.0/7)
	if l.String() != "7 GPUs -> 12 GB/s" {
		t.Errorf("cut %q, want all that get into the last GPU", l)
	}
}

// Every set of nodes, one by one.
func everyCut(n *Network) float64 {
	best := math.Inf(1)
	for set := range 1 << n.Nodes {
		inner, out := 0, 0.0
		for _, g := range n.GPUs {
			inner += set >> g & 1
		}
		for _, l := range n.Links {
			if set>>l.From&1 == 1 && set>>l.To&1 == 0 {
				out += l.Cap
			}
		}
		if inner > 0 && inner < len(n.GPUs) {
			best = min(best, out/float64(inner))
		}
	}
	return best
}

func TestBoundAgainstEveryCut(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 300 {
		n := random(r)
		near(t, name(n), Bound(n, 1).Share, everyCut(n))
		if n.Nodes <= 6 {
			near(t, "twice "+name(n), Bound(n, 2).Share, everyCut(copies(n, 2)))
		}
	}
}

// Other hosts count as one; here they are written out.
func TestBoundOfHostsWrittenOut(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	for range 100 {
		n := random(r)
		near(t, name(n), Bound(n, 5).Share, Bound(copies(n, 5), 1).Share)
	}
}

func TestBoundOfWhatIsNotJoined(t *testing.T) {
	b := build(3).both(0, 1, 5)
	near(t, "a GPU without links", Bound(b.done([]int{0, 1, 2}, nil), 1).Bus, 0)
	near(t, "hosts without ports", Bound(mesh(3), 2).Bus, 0)
}

func TestCutHostsUseTheFabric(t *testing.T) {
	b := build(4).both(0, 1, 5).both(0, 2, 20).both(1, 3, 20)
	n := b.done([]int{0, 1}, []int{2, 3})
	near(t, "inside", Bound(n, 1).Bus, 5)
	n.Cut = true
	near(t, "by the network", Bound(n, 1).Bus, 25)
}

func TestNetworksAreChecked(t *testing.T) {
	for what, spoil := range map[string]func(n *Network){
		"link to nowhere":    func(n *Network) { n.Links[0].To = 99 },
		"capacity not known": func(n *Network) { n.Links[0].Cap = math.NaN() },
		"no capacity":        func(n *Network) { n.Links[0].Cap = 0 },
		"two GPUs at a node": func(n *Network) { n.GPUs[0] = n.GPUs[1] },
		"GPU nowhere":        func(n *Network) { n.GPUs[0] = -1 },
		"routes missing":     func(n *Network) { n.Routes = n.Routes[1:] },
		"row too short":      func(n *Network) { n.Routes[0] = n.Routes[0][1:] },
		"route by no link":   func(n *Network) { n.Routes[0][1] = []Use{{99, 1}} },
		"factor of nothing":  func(n *Network) { n.Routes[0][1] = []Use{{0, 0}} },
	} {
		n := mesh(3)
		if spoil(n); n.Check() == nil {
			t.Errorf("%s: no error", what)
		}
	}
}
