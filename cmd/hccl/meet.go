package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// meeting is how the processes of a job find rank 0 (see hub): at a known host and port, through MPICH's process manager, or by a
// file.
type meeting struct {
	folder string // for the file; empty: chosen
}

const (
	portsTried = 16
	pause      = 20 * time.Millisecond // between looks
)

// initLimit is the library's own limit for absent ranks.
func initLimit() time.Time {
	seconds, err := strconv.ParseFloat(os.Getenv("HCCL_INIT_TIMEOUT"), 64)
	if err != nil || !(seconds > 0 && seconds < 1e6) {
		seconds = 300
	}
	return time.Now().Add(time.Duration(seconds * float64(time.Second)))
}

func (m *meeting) join(w *world) (*hub, error) {
	limit := initLimit()
	switch {
	case w.size == 1:
		return nil, nil
	case w.master != "":
		return meetAtMaster(w, limit)
	case w.pmi >= 0:
		return meetByPMI(w, limit)
	}
	return m.byFile(w, limit)
}

// meetAtMaster meets at the first free port from MASTER_PORT on: torchrun listens at that port itself.
func meetAtMaster(w *world, limit time.Time) (*hub, error) {
	key := w.job + "/" + strconv.Itoa(w.masterPort)
	if w.rank == 0 {
		l, err := listenFrom(loopbackOnly(w.master), w.masterPort)
		if err != nil {
			return nil, err
		}
		return gather(l, w.size, key, limit)
	}
	for {
		for k := range portsTried {
			h, err := attend(net.JoinHostPort(w.master, strconv.Itoa(w.masterPort+k)), w.rank, w.size, key)
			if err == nil {
				return h, nil
			}
			if time.Now().After(limit) {
				return nil, fmt.Errorf("rank %d found no rank 0 at %s, ports %d to %d, in time (HCCL_INIT_TIMEOUT): %w", w.rank, w.master,
					w.masterPort, w.masterPort+portsTried-1, err)
			}
		}
		time.Sleep(pause)
	}
}

// loopbackOnly is the address to listen on: a job that meets at the loopback address has no business elsewhere.
func loopbackOnly(master string) string {
	ips, err := net.LookupIP(master)
	for _, ip := range ips {
		if !ip.IsLoopback() {
			return ""
		}
	}
	if err != nil || len(ips) == 0 {
		return ""
	}
	return ips[0].String()
}

func listenFrom(host string, port int) (*net.TCPListener, error) {
	var err error
	for k := range portsTried {
		l, failed := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port+k)))
		if failed == nil {
			return l.(*net.TCPListener), nil
		}
		err = failed
	}
	return nil, fmt.Errorf("rank 0 cannot listen at MASTER_PORT %d or the %d ports after it: %w", port, portsTried-1, err)
}

// listenAnywhere listens at a free port and tells where others reach it, as host:port,host:port.
func listenAnywhere(w *world) (*net.TCPListener, string, error) {
	host := ""
	if w.oneHost {
		host = "127.0.0.1"
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, "", fmt.Errorf("rank 0 cannot listen: %w", err)
	}
	tcp := l.(*net.TCPListener)
	port := strconv.Itoa(tcp.Addr().(*net.TCPAddr).Port)
	if w.oneHost {
		return tcp, net.JoinHostPort(host, port), nil
	}
	var places []string
	addrs, err := net.InterfaceAddrs()
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() {
			places = append(places, net.JoinHostPort(ip.IP.String(), port))
		}
	}
	if len(places) == 0 {
		return nil, "", errors.Join(errors.New("rank 0 has no address that other hosts reach"), err)
	}
	return tcp, strings.Join(places, ","), nil
}

// card is what travels: where rank 0 listens, and a secret.
func newCard(places string) (card, secret string) {
	secret = rand.Text()
	return places + " " + secret, secret
}

func attendCard(card string, w *world) (*hub, error) {
	places, secret, ok := strings.Cut(strings.TrimSpace(card), " ")
	if !ok {
		return nil, fmt.Errorf("%q does not say where rank 0 is", card)
	}
	var err error
	for _, place := range strings.Split(places, ",") {
		h, failed := attend(place, w.rank, w.size, secret)
		if failed == nil {
			return h, nil
		}
		err = failed
	}
	return nil, fmt.Errorf("rank 0 cannot be reached at %s: %w", places, err)
}

// byFile meets through a file that rank 0 writes: only this user's file is believed. One left by a job that was killed leads
// nowhere and is read again until it is replaced.
func (m *meeting) byFile(w *world, limit time.Time) (*hub, error) {
	path := m.file(w)
	if w.rank == 0 {
		return publish(path, w, limit)
	}
	why := error(os.ErrNotExist)
	for time.Now().Before(limit) {
		card, err := ownFile(path)
		if err == nil {
			var h *hub
			if h, err = attendCard(card, w); err == nil {
				return h, nil
			}
		}
		why = err
		time.Sleep(pause)
	}
	return nil, fmt.Errorf("rank %d found no rank 0 by %s in time (HCCL_INIT_TIMEOUT); hosts need a folder that they share (--meet): %w",
		w.rank, path, why)
}

func (m *meeting) file(w *world) string {
	folder := m.folder
	if folder == "" && w.oneHost {
		folder = os.TempDir()
	}
	name := secretOf(w.job, "file")
	return filepath.Join(folder, fmt.Sprintf(".hccl-perf-%d-%x", os.Getuid(), name[:8]))
}

func publish(path string, w *world, limit time.Time) (*hub, error) {
	l, places, err := listenAnywhere(w)
	if err != nil {
		return nil, err
	}
	card, secret := newCard(places)
	fresh, err := os.CreateTemp(filepath.Dir(path), ".hccl-perf-*") // readable by this user alone
	if err != nil {
		return nil, fmt.Errorf("rank 0 cannot say where it is (--meet names another folder): %w", err)
	}
	_, err = fresh.WriteString(card + "\n")
	if err = errors.Join(err, fresh.Close()); err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		_ = os.Remove(fresh.Name())
		return nil, fmt.Errorf("rank 0 cannot say where it is (--meet names another folder): %w", err)
	}
	defer func() { _ = os.Remove(path) }()
	return gather(l, w.size, secret, limit)
}

func ownFile(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Getuid() || !info.Mode().IsRegular() || info.Size() > 1<<16 {
		return "", fmt.Errorf("%s is not a file of this user", path)
	}
	b, err := os.ReadFile(path)
	return string(b), err
}
