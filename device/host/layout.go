package host

// #include "cmd.h"
import "C"

import (
	"unsafe"

	"hccl.dev/hccl/device"
)

// Go and C fill the same commands: these lines compile only while both see each field at the same offset.
var (
	goCmd device.Cmd
	cCmd  C.struct_hccl_cmd

	_ [unsafe.Sizeof(goCmd)]byte           = [unsafe.Sizeof(cCmd)]byte{}
	_ [unsafe.Offsetof(goCmd.Op)]byte      = [unsafe.Offsetof(cCmd.op)]byte{}
	_ [unsafe.Offsetof(goCmd.Red)]byte     = [unsafe.Offsetof(cCmd.red)]byte{}
	_ [unsafe.Offsetof(goCmd.SrcType)]byte = [unsafe.Offsetof(cCmd.src_type)]byte{}
	_ [unsafe.Offsetof(goCmd.Acc)]byte     = [unsafe.Offsetof(cCmd.acc)]byte{}
	_ [unsafe.Offsetof(goCmd.DstType)]byte = [unsafe.Offsetof(cCmd.dst_type)]byte{}
	_ [unsafe.Offsetof(goCmd.NSrc)]byte    = [unsafe.Offsetof(cCmd.nsrc)]byte{}
	_ [unsafe.Offsetof(goCmd.NDst)]byte    = [unsafe.Offsetof(cCmd.ndst)]byte{}
	_ [unsafe.Offsetof(goCmd.Scaled)]byte  = [unsafe.Offsetof(cCmd.scaled)]byte{}
	_ [unsafe.Offsetof(goCmd.Stream)]byte  = [unsafe.Offsetof(cCmd.stream)]byte{}
	_ [unsafe.Offsetof(goCmd.Shared)]byte  = [unsafe.Offsetof(cCmd.shared)]byte{}
	_ [unsafe.Offsetof(goCmd.N)]byte       = [unsafe.Offsetof(cCmd.n)]byte{}
	_ [unsafe.Offsetof(goCmd.Scale)]byte   = [unsafe.Offsetof(cCmd.scale)]byte{}
	_ [unsafe.Offsetof(goCmd.Div)]byte     = [unsafe.Offsetof(cCmd.div)]byte{}
	_ [unsafe.Offsetof(goCmd.Init)]byte    = [unsafe.Offsetof(cCmd.init)]byte{}
	_ [unsafe.Offsetof(goCmd.Dst)]byte     = [unsafe.Offsetof(cCmd.dst)]byte{}
	_ [unsafe.Offsetof(goCmd.Src)]byte     = [unsafe.Offsetof(cCmd.src)]byte{}
)
