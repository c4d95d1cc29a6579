package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// manager speaks PMI-1, the text protocol of MPICH's process manager Hydra (also of Intel MPI's and others'), over the descriptor
// that it left to this process: lines of key=value words, each request with one answer.
type manager struct {
	w     io.Writer
	r     *bufio.Reader
	space string // name of the job's key-value space
}

func openManager(fd int) (*manager, error) {
	syscall.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "process manager")
	if f == nil {
		return nil, fmt.Errorf("PMI_FD %d is no descriptor", fd)
	}
	m := &manager{w: f, r: bufio.NewReader(f)}
	if _, err := m.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init"); err != nil {
		return nil, err
	}
	answer, err := m.ask("cmd=get_my_kvsname", "my_kvsname")
	m.space = answer["kvsname"]
	return m, err
}

// ask sends a request and returns the words of its answer, which must be the one expected and a success.
func (m *manager) ask(request, expected string) (map[string]string, error) {
	if _, err := io.WriteString(m.w, request+"\n"); err != nil {
		return nil, fmt.Errorf("the process manager (PMI_FD) does not listen: %w", err)
	}
	line, err := m.r.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the process manager (PMI_FD) does not answer: %w", err)
	}
	words := map[string]string{}
	for _, word := range strings.Fields(line) {
		name, value, _ := strings.Cut(word, "=")
		words[name] = value
	}
	if rc := words["rc"]; words["cmd"] != expected || rc != "" && rc != "0" {
		return nil, fmt.Errorf("the process manager (PMI_FD) answers %q to %q", strings.TrimSpace(line), request)
	}
	return words, nil
}

// meetByPMI has rank 0 put its card where the others get it. A card travels without its space, which PMI takes for an end.
func meetByPMI(w *world, limit time.Time) (h *hub, err error) {
	m, err := openManager(w.pmi)
	if err != nil {
		return nil, err
	}
	if w.rank == 0 {
		return m.host(w, limit)
	}
	if _, err := m.ask("cmd=barrier_in", "barrier_out"); err != nil {
		return nil, err
	}
	answer, err := m.ask("cmd=get kvsname="+m.space+" key=hccl-perf", "get_result")
	if err != nil {
		return nil, err
	}
	if err := m.leave(); err != nil {
		return nil, err
	}
	card := strings.Replace(answer["value"], ";", " ", 1)
	for {
		if h, err = attendCard(card, w); err == nil || time.Now().After(limit) {
			return h, err
		}
		time.Sleep(pause) // rank 0 listens, but may not be there yet to answer
	}
}

func (m *manager) host(w *world, limit time.Time) (*hub, error) {
	l, places, err := listenAnywhere(w)
	if err != nil {
		return nil, err
	}
	card, secret := newCard(places)
	value := strings.Replace(card, " ", ";", 1)
	if _, err := m.ask("cmd=put kvsname="+m.space+" key=hccl-perf value="+value, "put_result"); err != nil {
		return nil, err
	}
	if _, err := m.ask("cmd=barrier_in", "barrier_out"); err != nil {
		return nil, err
	}
	if err := m.leave(); err != nil {
		return nil, err
	}
	return gather(l, w.size, secret, limit)
}

func (m *manager) leave() error {
	_, err := m.ask("cmd=finalize", "finalize_ack")
	return err
}
