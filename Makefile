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
CORE_LINK := $(LINK) -Wl,--version-script=$(HERE)/capi/core.map -Wl,-soname,libhccl_core.so
CORE_LD   := -X=runtime.godebugDefault=$(GODEBUGS) -extldflags '$(CORE_LINK)'

SHIM_SRC  := $(wildcard capi/shim/*.c)
SHIM_OBJ  := $(SHIM_SRC:capi/shim/%.c=$(OBJ)/%.o)

.DEFAULT_GOAL := all
.PHONY: all shim core tool deps run test check ci bench race asan clean install help headers

all: shim core tool ## build the libraries and the tool

shim: $(LIB)/libnccl.so.2 $(LIB)/libnccl.so $(LIB)/libhccl_compat.so

$(OBJ)/%.o: capi/shim/%.c Makefile
	@mkdir -p $(OBJ)
	$(CC) $(SHIM_C) $(CFLAGS) -c $< -o $@
-include $(SHIM_OBJ:.o=.d)

$(LIB)/libnccl.so.2: $(SHIM_OBJ) capi/shim.map
	@mkdir -p $(LIB)
	$(CC) -shared -pthread $(CFLAGS) $(LDFLAGS) $(SHIM_OBJ) -o $@ $(LINK) -Wl,-soname,libnccl.so.2 -Wl,--version-script=capi/shim.map -ldl

# Links, not copies: one file is one library, by whatever name it was opened.
$(LIB)/libnccl.so $(LIB)/libhccl_compat.so: $(LIB)/libnccl.so.2
	ln -sf libnccl.so.2 $@

core: ## build the Go core; go build itself knows what is up to date
	@mkdir -p $(LIB)
	CGO_ENABLED=1 CC="$(CC)" $(GO) build -trimpath -buildvcs=false -buildmode=c-shared -ldflags "$(CORE_LD)" -o $(LIB)/libhccl_core.so ./capi
	@rm -f $(LIB)/libhccl_core.h

tool: ## build the tool, build/bin/hccl
	@mkdir -p $(BIN)
	CGO_ENABLED=1 CC="$(CC)" $(GO) build -trimpath -buildvcs=false -o $(BIN)/hccl ./cmd/hccl

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

clean: ## remove what was built
	rm -rf $(BUILD)
