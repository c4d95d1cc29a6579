package run

import (
	"os"
	"path/filepath"
	"testing"
)

// A machine's CUDA headers reduced to what a host sees of them.
const cudaHeader = `#ifndef CUDA_RUNTIME_STAND_IN
#define CUDA_RUNTIME_STAND_IN
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
#endif
`

func TestHeader(t *testing.T) {
	cuda := t.TempDir()
	if err := os.WriteFile(filepath.Join(cuda, "cuda_runtime.h"), []byte(cudaHeader), 0o644); err != nil {
		t.Fatal(err)
	}
	places := map[string][]string{
		"alone":        nil,
		"cuda found":   {"-isystem", cuda},
		"cuda before":  {"-isystem", cuda, "-include", "cuda_runtime.h"},
		"twice nccl.h": {"-include", "nccl.h"},
		"ours before":  {"-include", "hccl.h"},
	}
	for place, more := range places {
		for _, std := range []string{"c99", "c11", "c++17"} {
			t.Run(place+"/"+std, func(t *testing.T) {
				l, kind := languages()[0], "c"
				if std == "c++17" {
					l, kind = languages()[1], "c++"
				}
				args := []string{"-x", kind, "-std=" + std, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"}
				args = append(append(args, "-I"+root+"/include"), more...)
				compile(t, l, append(args, sources+"/header.c")...)
			})
		}
	}
}
