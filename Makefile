# SPDX-License-Identifier: Apache-2.0
# make          builds build/bin/memsim, build/bin/commfit, build/lib/memsim
# make help     says what else there is
PREFIX  ?= /usr/local
DESTDIR ?=
ifeq ($(origin CC),default)
CC      := gcc
endif
PYTHON  ?= python3
O       ?= build
VENV    ?= .venv

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || \
             sed -n 's/^## \([0-9.]*\).*/\1/p' NEWS.md | head -1)

# Knobs: DEBUG=1 (no optimisation), SAN=address,undefined (programs and tests),
# V=1 (whole command lines)
Q        := $(if $(V),,@)
OPT      := $(if $(DEBUG),-O0 -g3,-O2 -g)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
            -Wvla -Werror=implicit-function-declaration
CPPFLAGS += -D_GNU_SOURCE -Isrc -I$(O)/gen
CFLAGS   = $(OPT) -std=gnu11 $(WARN) $(EXTRA_CFLAGS)
PIC      := -fPIC -fvisibility=hidden -fno-semantic-interposition -flto=auto \
            -ftls-model=initial-exec
LIBS     := -lcjson -lgsl -lgslcblas -lm -lpthread

COMMON  := $(wildcard src/common/*.c)
RUNTIME := $(wildcard src/runtime/*.c)
MEMSIM  := $(filter-out src/memsim/main.c,$(wildcard src/memsim/*.c src/memsim/*/*.c))
COMMFIT := $(filter-out src/commfit/main.c,$(wildcard src/commfit/*.c))
CORE    := $(patsubst %.c,$(O)/%.o,$(COMMON) $(RUNTIME) $(MEMSIM) $(COMMFIT))
UNIT    := $(patsubst tests/unit/%.c,$(O)/tests/unit/%,$(wildcard tests/unit/test_*.c))
PROGRAMS := $(foreach p,memsim commfit,$(if $(wildcard src/$p/main.c),$(O)/bin/$p))

all: programs capture
programs: $(PROGRAMS)

include src/capture/capture.mk
$(O)/pic/src/capture/core/%.o: CPPFLAGS += -isystem $(CUDA13_INC)
$(O)/pic/src/capture/core/%.o: | $(HEADERS)/stamp

$(O)/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(SANFLAGS) -MMD -MP -c -o $@ $<

$(O)/libcore.a: $(CORE)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/bin/%: $(O)/src/%/main.o $(O)/libcore.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SANFLAGS) -o $@ $^ $(LIBS)

$(O)/tests/unit/%: tests/unit/%.c $(O)/libcore.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Itests $(CFLAGS) $(SANFLAGS) -MMD -MP -o $@ $< $(O)/libcore.a $(LIBS)

unit: $(UNIT)
	@rc=0; for t in $(UNIT); do $$t || rc=1; done; exit $$rc

clean:
	rm -rf $(O)

.PHONY: all programs unit clean
.DELETE_ON_ERROR:
.SECONDARY:
-include $(shell find $(O) -name '*.d' 2>/dev/null)
