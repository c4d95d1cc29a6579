package topo

import (
	"fmt"
	"strconv"
	"strings"
)

// Class is the PCI class of a device as sysfs and NCCL write it, 0x030200: base class, subclass, interface.
type Class string

// The classes that matter here.
const (
	ClassGPU      Class = "0x030200" // 3D controller
	ClassNIC      Class = "0x020000" // Ethernet
	ClassIB       Class = "0x020700" // InfiniBand
	ClassBridge   Class = "0x060400" // PCI bridge: a port of a switch, or of the root
	ClassNVSwitch Class = "0x068000"
	ClassNVLCPU   Class = "0x068001" // as the other end of an NVLink: the CPU
)

// Role is what NCCL takes a class for. Everything unknown is a switch.
type Role uint8

// The roles.
const (
	RoleSwitch Role = iota
	RoleGPU
	RoleNIC
	RoleNVSwitch
	RoleCPU
)

var roles = []struct {
	prefix string
	role   Role
}{
	{"0x060400", RoleSwitch}, {"0x080100", RoleSwitch}, {"0x068000", RoleNVSwitch}, {"0x068001", RoleCPU},
	{"0x03", RoleGPU}, {"0x02", RoleNIC},
}

// Role tells what a device of the class is.
func (c Class) Role() Role {
	for _, r := range roles {
		if strings.HasPrefix(string(c), r.prefix) {
			return r.role
		}
	}
	return RoleSwitch
}

// familiar are classes that NCCL has no role for and that still do no harm: host bridges, which hold the NICs of some virtual
// machines, and processing accelerators, which AMD's GPUs call themselves.
var familiar = []string{"0x0600", "0x0604", "0x0680", "0x1200"}

func (c Class) known() bool {
	for _, r := range roles {
		if strings.HasPrefix(string(c), r.prefix) {
			return true
		}
	}
	for _, f := range familiar {
		if strings.HasPrefix(string(c), f) {
			return true
		}
	}
	return false
}

// BusNumber is a bus id as one number: its hexadecimal digits in a row, as NCCL takes them. Spellings of one place that differ in
// the domain's leading zeros are equal.
func BusNumber(id string) (uint64, error) {
	n, err := strconv.ParseUint(strings.NewReplacer(":", "", ".", "").Replace(id), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no bus id, which looks like 0000:3b:00.0", id)
	}
	return n, nil
}
