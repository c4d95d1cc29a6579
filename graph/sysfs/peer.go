package sysfs

import (
	"io/fs"
	"strings"
)

// peers are what the modules leave by which a network card reads and writes a GPU's memory.
var peers = []string{"sys/module/nvidia_peermem/version", "sys/module/nv_peer_mem/version", "sys/kernel/mm/memory_peers/nv_mem/version",
	"sys/kernel/mm/memory_peers/nvidia-peermem/version"}

// PeerMemory reports whether network cards can reach the memory of GPUs: by a module for it, or by dma-buf, which the open one of
// NVIDIA's drivers offers.
func PeerMemory(fsys fs.FS) bool {
	t := tree{fsys: fsys}
	return t.peerMemory()
}

func (t *tree) peerMemory() bool {
	for _, p := range peers {
		if _, ok := t.text(p); ok {
			return true
		}
	}
	version, _ := t.text("proc/driver/nvidia/version")
	return strings.Contains(version, "Open Kernel Module")
}
