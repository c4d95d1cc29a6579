// A host program written in Go whose threads end: goroutines that are locked to a thread use the library and return, while its collector
// interrupts loops by SIGURG. usage: host LIB
package main

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stddef.h>
static int (*init_all)(void**, int, const int*);
static int (*all_reduce)(const void*, void*, size_t, int, int, void*, void*);
static int (*async_error)(void*, int*);
static const char* load(const char* path) {
	void* lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) return dlerror();
	*(void**)&init_all = dlsym(lib, "ncclCommInitAll");
	*(void**)&all_reduce = dlsym(lib, "ncclAllReduce");
	*(void**)&async_error = dlsym(lib, "ncclCommGetAsyncError");
	return NULL;
}
static int init1(void** c) { return init_all(c, 1, NULL); }
enum { FLOAT32 = 7, SUM = 0 };
static int sum(const void* in, void* out, size_t n, void* comm) {
	int state, e = all_reduce(in, out, n, FLOAT32, SUM, comm, NULL);
	return e ? e : async_error(comm, &state);
}
*/
import "C"
import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
	"unsafe"
)

func main() {
	if t := C.load(C.CString(os.Args[1])); t != nil {
		panic(C.GoString(t))
	}
	stop := make(chan bool)
	for range 2 {
		go func() { // the collector and loops that it must interrupt by SIGURG
			for {
				select {
				case <-stop:
					return
				default:
				}
				for i := 0; i < 1e6; i++ {
				}
				runtime.GC()
			}
		}()
	}
	end := time.Now().Add(2 * time.Second)
	n := 0
	for time.Now().Before(end) {
		var wg sync.WaitGroup
		for range 16 {
			wg.Add(1)
			n++
			go func() {
				defer wg.Done()
				runtime.LockOSThread() // the thread ends with the goroutine
				var comm unsafe.Pointer
				if e := C.init1(&comm); e != 0 {
					panic(e)
				}
				in, out := []float32{1}, []float32{0}
				if e := C.sum(unsafe.Pointer(&in[0]), unsafe.Pointer(&out[0]), 1, comm); e != 0 || out[0] != 1 {
					panic(fmt.Sprint(e, out))
				}
			}()
		}
		wg.Wait()
	}
	close(stop)
	fmt.Println(n, "threads")
}
