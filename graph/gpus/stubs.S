// A definition for each function of NVML that go-nvml calls. go-nvml leaves them undefined, to be found once NVML is loaded; a
// shared object with such names cannot be opened under RTLD_NOW, nor be linked to. Each stub jumps to where bind.c has found the
// function, with all its arguments as they are. The names are hidden: nobody else sees them, and NVML's own stay what they are.

	.bss
	.balign 8
	.globl hccl_nvml_slots
	.hidden hccl_nvml_slots
	.type hccl_nvml_slots, %object
hccl_nvml_slots:
#define X(name) .Lslot_##name: .skip 8;
#include "names.h"
#undef X
	.size hccl_nvml_slots, . - hccl_nvml_slots

#if defined(__x86_64__)
#define JUMP(name) endbr64; jmp *.Lslot_##name(%rip);
#elif defined(__aarch64__)
#define JUMP(name) hint 34; adrp x16, .Lslot_##name; ldr x16, [x16, :lo12:.Lslot_##name]; br x16;
#else
#error "write the jump for this processor: load the slot into a register that no call keeps, and jump there"
#endif

	.text
#define X(name) .balign 8; .globl name; .hidden name; .type name, %function; name: JUMP(name) .size name, . - name;
#include "names.h"

	.section .note.GNU-stack, "", %progbits
