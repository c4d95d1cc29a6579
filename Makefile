# How HCCL is built: two shared objects (see ARCHITECTURE.md) and one tool. `make help` lists what can be asked for.
# CC chooses the C compiler of all parts (also CC="zig cc -target x86_64-linux-gnu.2.17"), BUILD the folder of what is built.

ifeq ($(origin CC),default)
CC        := cc
endif
CXX       ?= c++
GO        ?= go
PYTHON    ?= python3
BUILD     ?= build
PREFIX    ?= /usr/local
SOAK      ?= 10m
LIBDIR    ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DESTDIR   ?=

VERSION   := 0.1.0
ABI       := 2.32.3
LIB       := $(BUILD)/lib
BIN       := $(BUILD)/bin
OBJ       := $(BUILD)/obj
HERE      := $(CURDIR)

CFLAGS    ?= -O2 -g
SHIM_C    := -std=gnu11 -fPIC -pthread -fvisibility=hidden -fno-strict-aliasing -Wall -Wextra -Werror -MMD -MP
LINK      := -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now -Wl,--no-undefined
# The Go runtime of the core lives in somebody else's process: no SIGURG to interrupt loops (our handler for it would replace the
# host's), and stacks that once grew stay grown (a host's handler may run on them).
GODEBUGS  := asyncpreemptoff=1,gcshrinkstackoff=1
# The linker runs elsewhere and needs the whole path; the inner quotes are for checkouts in a folder with blanks in its name.
CORE_LINK := $(LINK) \"-Wl,--version-script=$(HERE)/capi/core.map\" -Wl,-soname,libhccl_core.so
BY_LINK   := '-extld=\"$(HERE)/capi/link\"'
CORE_LD   := -X=runtime.godebugDefault=$(GODEBUGS) $(BY_LINK) -extldflags '$(CORE_LINK)'

# go-nvml has the whole of NVML, with what is deprecated; the rest is what Go does by itself.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations

SHIM_SRC  := $(wildcard capi/shim/*.c)
SHIM_OBJ  := $(SHIM_SRC:capi/shim/%.c=$(OBJ)/%.o)

.DEFAULT_GOAL := all
# Asked for a shared library, go build makes all of its C anew each time (10 s), so what it is made of is listed here: folders too,
# which are younger than the library when something was taken away.
CORE_SRC  := go.mod go.sum capi/link $(shell find capi core/. device graph internal net proto shm -type d -o -name '*.go' ! -name '*_test.go' \
  -o -name '*.[chS]' -o -name '*.map')

.PHONY: all shim core tool deps run test examples check ci bench race asan soak clean install help always

all: shim core tool ## build the libraries and the tool

shim: $(LIB)/libnccl.so.2 $(LIB)/libnccl.so $(LIB)/libhccl_compat.so

# What all is made with: it changes, and is younger than what was made, when another compiler or other flags are asked for.
$(OBJ)/tools: always
	@mkdir -p $(OBJ)
	@printf '%s\n' "$(CC) $(CFLAGS) $(LDFLAGS)" "$$($(GO) version) $(GOFLAGS)" > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

$(OBJ)/%.o: capi/shim/%.c Makefile $(OBJ)/tools
	$(CC) $(SHIM_C) $(CFLAGS) -c $< -o $@
-include $(SHIM_OBJ:.o=.d)

$(LIB)/libnccl.so.2: $(SHIM_OBJ) capi/shim.map
	@mkdir -p $(LIB)
	$(CC) -shared -pthread $(CFLAGS) $(LDFLAGS) $(SHIM_OBJ) -o $@ $(LINK) -Wl,-soname,libnccl.so.2 \
	  -Wl,--version-script=capi/shim.map -ldl

# Links, not copies: one file is one library, by whatever name it was opened.
$(LIB)/libnccl.so $(LIB)/libhccl_compat.so: $(LIB)/libnccl.so.2
	ln -sf libnccl.so.2 $@

core: $(LIB)/libhccl_core.so ## build the Go core

# netgo: crypto/tls brings the package net, whose resolver would otherwise call what older systems have in a library of its own.
$(LIB)/libhccl_core.so: $(CORE_SRC) Makefile $(OBJ)/tools
	@mkdir -p $(LIB)
	CGO_ENABLED=1 CC="$(CC)" LINK_CC="$(CC)" $(GO) build -trimpath -buildvcs=false -buildmode=c-shared -tags netgo -ldflags "$(CORE_LD)" \
	  -o $@ ./capi
	@rm -f $(LIB)/libhccl_core.h

tool: ## build the tool, build/bin/hccl; go build itself knows what is up to date
	@mkdir -p $(BIN)
	CGO_ENABLED=1 CC="$(CC)" LINK_CC="$(CC)" $(GO) build -trimpath -buildvcs=false -ldflags "-linkmode=external $(BY_LINK)" \
	  -o $(BIN)/hccl ./cmd/hccl

# ---- Running and testing ----

deps: ## install missing Debian packages (as root), or say which are missing
	@CC="$(CC)" GO="$(GO)" sh .ci/deps

run: deps all ## a checked all-reduce sweep over 4 processes, through the public C interface
	$(BIN)/hccl perf all_reduce -b 8 -e 64M -f 2 --ranks 4 -c 1

# Made when it is first asked for, by a recipe: some examples and tests use packages that the machine may not have.
TEST_PYTHON = $(eval TEST_PYTHON := $(shell PYTHON="$(PYTHON)" sh .ci/python "$(abspath $(BUILD))/venv"))$(TEST_PYTHON)

examples: deps all ## build and run the examples: C, and Python where its packages can be had
	CC="$(CC)" PYTHON="$(TEST_PYTHON)" sh examples/run $(BUILD)

test: deps all ## all tests; ends with go test's and unittest's own lines
	$(GO) vet ./...
	HCCL_LIB="$(abspath $(LIB))" CC="$(CC)" CXX="$(CXX)" $(GO) test -count=1 -timeout 15m ./...
	CC="$(CC)" PYTHON="$(TEST_PYTHON)" sh examples/run $(BUILD)
	cd tests/python && HCCL_TEST_LIB="$(abspath $(LIB))/libnccl.so.2" "$(TEST_PYTHON)" -m unittest discover

check: all ## format, vet, house rules and short unit tests: before each commit, two to three minutes on 2 cores
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "run gofmt -w on:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	$(GO) test -short -timeout 2m ./...

ci: check test asan race ## what the machine that watches the repository runs

bench: deps all ## all-reduce beside Open MPI (Debian: openmpi-bin, libopenmpi-dev), and on a stream beside a computation
	$(PYTHON) bench/compare.py
	$(PYTHON) bench/overlap.py
	@test "$$(id -u)" != 0 || $(PYTHON) bench/encryption.py

race: ## unit tests under the race detector
	$(GO) test -race -short -timeout 15m ./...

soak: deps all ## random calls for SOAK (10m) each, a failure prints the -seed that repeats it; a million strangers as ranks meet, and as a job runs; tests/cases as often as they ask
	$(GO) test ./core -run Random -timeout 2h -soak $(SOAK)
	$(GO) test ./core/boot -run 'Strangers$$' -timeout 2h -v -strangers 1000000
	HCCL_LIB="$(abspath $(LIB))" CC="$(CC)" $(GO) test -count=1 -timeout 90m -v ./tests/cases -args -soak -garbage 1000000

# The shim is built with the sanitizers and the tests of its interface run against it; the C of the core has test programs of its
# own, which other packages' tests build with sanitizers by themselves, and which run here as well.
SANITIZE  := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
asan: ## the C parts under the address and undefined-behaviour sanitizers
	$(MAKE) shim BUILD=$(BUILD)/asan CFLAGS="$(SANITIZE)"
	HCCL_LIB="$(abspath $(BUILD))/asan/lib" HCCL_CFLAGS="$(SANITIZE)" CC="$(CC)" CXX="$(CXX)" \
	  $(GO) test -count=1 -timeout 10m -run 'Programs|Core|Relative' ./tests/c/abi/run
	$(CC) $(SANITIZE) -std=c11 -Idevice/host device/host/testdata/check.c device/host/*.c -o $(BUILD)/asan/kernels -lm
	$(BUILD)/asan/kernels
	$(GO) test -count=1 -timeout 10m ./shm/fast ./core/boot

# ---- Installing ----

TO_LIB    = $(DESTDIR)$(LIBDIR)
TO_SHARE  = $(DESTDIR)$(PREFIX)/share

install: all ## install libraries, headers, the tool with its pages, pkg-config and CMake files (PREFIX, LIBDIR, DESTDIR)
	install -d "$(TO_LIB)/pkgconfig" "$(TO_LIB)/cmake/hccl" "$(DESTDIR)$(INCLUDEDIR)" "$(DESTDIR)$(PREFIX)/bin"
	install -m 755 $(LIB)/libnccl.so.2 $(LIB)/libhccl_core.so "$(TO_LIB)"
	ln -sf libnccl.so.2 "$(TO_LIB)/libnccl.so"
	ln -sf libnccl.so.2 "$(TO_LIB)/libhccl_compat.so"
	install -m 644 include/nccl.h include/hccl_compat.h include/hccl.h "$(DESTDIR)$(INCLUDEDIR)"
	install -m 755 $(BIN)/hccl "$(DESTDIR)$(PREFIX)/bin"
	$(BIN)/hccl man "$(TO_SHARE)/man/man1"
	install -d "$(TO_SHARE)/bash-completion/completions" "$(TO_SHARE)/zsh/site-functions" "$(TO_SHARE)/fish/vendor_completions.d"
	$(BIN)/hccl completion bash > "$(TO_SHARE)/bash-completion/completions/hccl"
	$(BIN)/hccl completion zsh > "$(TO_SHARE)/zsh/site-functions/_hccl"
	$(BIN)/hccl completion fish > "$(TO_SHARE)/fish/vendor_completions.d/hccl.fish"
	for f in nccl.pc hccl.pc; do $(FILL) cmake/$$f.in > "$(TO_LIB)/pkgconfig/$$f" || exit 1; done
	for f in hcclConfig.cmake hcclConfigVersion.cmake; do \
	  $(FILL) cmake/$$f.in > "$(TO_LIB)/cmake/hccl/$$f" || exit 1; done

FILL := sed -e 's|@PREFIX@|$(PREFIX)|g; s|@LIBDIR@|$(LIBDIR)|g; s|@INCLUDEDIR@|$(INCLUDEDIR)|g' \
  -e 's|@VERSION@|$(VERSION)|g; s|@ABI@|$(ABI)|g'

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

clean: ## remove what was built
	rm -rf $(BUILD)
