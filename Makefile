# How HCCL is built: two shared objects (see ARCHITECTURE.md) and one tool. `make help` lists what can be asked for.
CC       ?= cc
GO       ?= go
BUILD    ?= build
LIB      := $(BUILD)/lib
BIN      := $(BUILD)/bin

LINK     := -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now -Wl,--no-undefined
GODEBUGS := asyncpreemptoff=1,gcshrinkstackoff=1
CORE_LD  := -X=runtime.godebugDefault=$(GODEBUGS) -extldflags '$(LINK) -Wl,--version-script=$(CURDIR)/capi/core.map -Wl,-soname,libhccl_core.so'

.DEFAULT_GOAL := all
.PHONY: all core

all: core ## build the libraries and the tool

core: ## build the Go core; go build itself knows what is up to date
	@mkdir -p $(LIB)
	CGO_ENABLED=1 CC="$(CC)" $(GO) build -trimpath -buildvcs=false -buildmode=c-shared -ldflags "$(CORE_LD)" -o $(LIB)/libhccl_core.so ./capi
	@rm -f $(LIB)/libhccl_core.h
