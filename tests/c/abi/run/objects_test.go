package run

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hccl.dev/hccl/internal/coll"
)

const core = "libhccl_core.so"

func open(t *testing.T, name string) *elf.File {
	t.Helper()
	f, err := elf.Open(filepath.Join(libraries(t), name))
	if err != nil {
		t.Skipf("%v: run make first", err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// exports are the names that an object defines for others.
func exports(t *testing.T, name string) []string {
	t.Helper()
	symbols, err := open(t, name).DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			names = append(names, s.Name)
			if kind := elf.ST_TYPE(s.Info); kind != elf.STT_FUNC {
				t.Errorf("%s: %s is no function but %v", name, s.Name, kind)
			}
		}
	}
	sort.Strings(names)
	return names
}

// The public names are a promise: a change of this list is a change of the interface, to be seen in a review.
func TestExports(t *testing.T) {
	got := strings.Join(exports(t, "libnccl.so.2"), "\n") + "\n"
	golden := sources + "/exports.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("exported names differ from %s (go test -update writes it anew):\n%s", golden, diff)
	}
	names := strings.Fields(got)
	for _, n := range names {
		if twin := "p" + n; strings.HasPrefix(n, "nccl") && !slices.Contains(names, twin) {
			t.Errorf("%s has no twin %s", n, twin)
		}
	}
	if got := exports(t, core); !cmp.Equal(got, []string{"hccl_core_open"}) {
		t.Errorf("%s exports %v, want hccl_core_open alone", core, got)
	}
}

// One file under all names, so that opening two of them gives one library.
func TestNames(t *testing.T) {
	folder := libraries(t)
	first, err := os.Stat(filepath.Join(folder, "libnccl.so.2"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"libnccl.so", "libhccl_compat.so"} {
		other, err := os.Stat(filepath.Join(folder, name))
		if err != nil || !os.SameFile(first, other) {
			t.Errorf("%s is not libnccl.so.2 (%v)", name, err)
		}
	}
	for object, want := range map[string]string{"libnccl.so.2": "libnccl.so.2", core: core} {
		got, err := open(t, object).DynString(elf.DT_SONAME)
		if err != nil || !cmp.Equal(got, []string{want}) {
			t.Errorf("soname of %s is %v, want %s (%v)", object, got, want, err)
		}
	}
}

var libc = []string{"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}

// Functions that are older than the version which newer C libraries give them: they moved there from a library of their own.
var moved = strings.Fields(`pthread_create pthread_detach pthread_join pthread_key_create pthread_key_delete pthread_getspecific
	pthread_setspecific pthread_once pthread_sigmask pthread_getattr_np pthread_attr_getstack pthread_attr_getstacksize
	pthread_attr_setstacksize pthread_mutex_trylock pthread_rwlock_rdlock pthread_rwlock_unlock pthread_rwlock_wrlock
	pthread_mutexattr_settype pthread_kill sem_init sem_post sem_wait sem_timedwait dlopen dlsym dlclose dlerror dladdr dlinfo
	shm_open shm_unlink`)

func newerThan217(version string) bool {
	major, minor, ok := strings.Cut(strings.TrimPrefix(version, "GLIBC_"), ".")
	if !ok || major != "2" {
		return false
	}
	minor, _, _ = strings.Cut(minor, ".")
	n, err := strconv.Atoi(minor)
	return err == nil && n > 17
}

// The objects need the C library and nothing else, in a version of 2012.
func TestImports(t *testing.T) {
	for _, object := range []string{"libnccl.so.2", core} {
		f := open(t, object)
		needed, err := f.ImportedLibraries()
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range needed {
			if !slices.Contains(libc, n) {
				t.Errorf("%s needs %s", object, n)
			}
		}
		symbols, err := f.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range symbols {
			switch {
			case s.Section != elf.SHN_UNDEF || elf.ST_BIND(s.Info) == elf.STB_WEAK:
			case !strings.HasPrefix(s.Version, "GLIBC_"):
				t.Errorf("%s leaves %s undefined, which is not of the C library", object, s.Name)
			case newerThan217(s.Version) && !slices.Contains(moved, s.Name):
				t.Errorf("%s calls %s of %s, older systems lack it: use the system call, or list it as moved", object, s.Name, s.Version)
			}
		}
	}
}

// go-nvml leaves NVML's names undefined: with them an object cannot be opened under RTLD_NOW, and not be linked to. The core has them
// for itself alone (graph/gpus), whether something needs them or not.
func TestNoNameOfNVML(t *testing.T) {
	for _, object := range []string{"libnccl.so.2", core} {
		symbols, err := open(t, object).DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range symbols {
			if strings.HasPrefix(s.Name, "nvml") {
				t.Errorf("%s shows %s: run go generate ./graph/gpus, or hide it", object, s.Name)
			}
		}
	}
}

// A library that is opened late finds little room for static TLS; the shim uses none at all.
func TestStaticTLS(t *testing.T) {
	for object, most := range map[string]uint64{"libnccl.so.2": 0, core: 64} {
		for _, p := range open(t, object).Progs {
			if p.Type == elf.PT_TLS && p.Memsz > most {
				t.Errorf("%s has %d bytes of static TLS, want at most %d", object, p.Memsz, most)
			}
		}
	}
}

// Closing one of them must not unmap code that threads run.
func TestNoDelete(t *testing.T) {
	const noDelete = 0x8 // DF_1_NODELETE
	for _, object := range []string{"libnccl.so.2", core} {
		f, err := open(t, object).DynValue(elf.DT_FLAGS_1)
		if err != nil || len(f) != 1 || f[0]&noDelete == 0 {
			t.Errorf("%s has no -z nodelete (%v)", object, err)
		}
	}
}

// The linker's -X for a variable that no longer exists is silent, so the string's length and address in the built core are read.
func TestGodebugDefault(t *testing.T) {
	const want = "asyncpreemptoff=1,gcshrinkstackoff=1"
	f := open(t, core)
	symbols, err := f.Symbols()
	if err != nil {
		t.Skipf("the core is stripped: %v", err)
	}
	k := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == "runtime.godebugDefault" })
	if k < 0 {
		t.Fatal("the core has no runtime.godebugDefault")
	}
	length := binary.LittleEndian.Uint64(at(t, f, symbols[k].Value+8, 8))
	address, found := relocation(t, f, symbols[k].Value)
	if !found || length != uint64(len(want)) || string(at(t, f, address, length)) != want {
		t.Errorf("runtime.godebugDefault is not %q: asynchronous preemption would raise SIGURG in the host", want)
	}
}

// at returns n bytes of the loaded object.
func at(t *testing.T, f *elf.File, address, n uint64) []byte {
	t.Helper()
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && address >= p.Vaddr && address+n <= p.Vaddr+p.Filesz {
			data := make([]byte, n)
			if _, err := p.ReadAt(data, int64(address-p.Vaddr)); err != nil {
				t.Fatal(err)
			}
			return data
		}
	}
	t.Fatalf("no bytes at %#x", address)
	return nil
}

// relocation finds what the loader writes to a word: the object is position-independent.
func relocation(t *testing.T, f *elf.File, address uint64) (addend uint64, found bool) {
	t.Helper()
	section := f.Section(".rela.dyn")
	if section == nil {
		t.Fatal("no .rela.dyn")
	}
	data, err := section.Data()
	if err != nil {
		t.Fatal(err)
	}
	for r := bytes.NewReader(data); ; {
		var rela elf.Rela64
		if binary.Read(r, binary.LittleEndian, &rela) != nil {
			return 0, false
		}
		if rela.Off == address {
			return uint64(rela.Addend), true
		}
	}
}

// The shim's numbers of functions are those of package coll, and its element sizes too.
func TestFunctionNumbers(t *testing.T) {
	l := languages()[0]
	binary := filepath.Join(t.TempDir(), "numbers")
	compile(t, l, "-Wall", "-Werror", "-o", binary, sources+"/numbers.c")
	out, err := exec.Command(binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for f := coll.AllReduce; f < coll.NumFuncs; f++ {
		want.WriteString(f.String() + "\n")
	}
	if diff := cmp.Diff(want.String(), string(out)); diff != "" {
		t.Errorf("capi/shim/coll.h and internal/coll differ:\n%s", diff)
	}
}

// docs/api.md says of every function what it does here.
func TestEveryFunctionIsDocumented(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range exports(t, "libnccl.so.2") {
		if !strings.HasPrefix(name, "pnccl") && !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/api.md has no row for %s", name)
		}
	}
}
