# SPDX-License-Identifier: Apache-2.0
# make          builds build/bin/memsim, build/bin/commfit, build/lib/memsim
# make help     says what else there is
PREFIX  ?= /usr/local
DESTDIR ?=
PYTHON  ?= python3
O       ?= build
VENV    ?= .venv
ifeq ($(origin CC),default)
CC      := gcc
endif
# Of objects that the linker optimises.
LTO_AR  ?= $(CC)-ar

# The first section of NEWS.md, and the commit where there is a repository.
RELEASE := $(shell sed -n 's/^## \([0-9.]*\).*/\1/p' NEWS.md | head -1)
COMMIT  := $(shell git describe --always --dirty --exclude='*' 2>/dev/null)
VERSION := $(RELEASE)$(if $(COMMIT), ($(COMMIT)))

SCHEMA_VERSION := $(shell awk '/define SCHEMA_VERSION/ { print $$3 }' src/memsim/report/json/schema.h)

# As many jobs as cores, here and in what make starts.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

# Knobs: DEBUG=1 (no optimisation), SAN=address,undefined (a build of its own:
# give O=), COVERAGE=1 (as well), V=1 (whole command lines), COMPUTE=0 (no kernel
# is carried out)
Q        := $(if $(V),,@)
OPT      := $(if $(DEBUG),-O0 -g3,$(if $(COVERAGE),-O1 --coverage -fprofile-update=atomic,$(if $(SAN),-O1 -g1,-O2 -g)))
# What UBSan finds ends the program: a test, a fuzzer or the job fails by it. Two
# warnings are false where less is optimised.
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer \
              -Wno-clobbered -Wno-format-truncation \
              $(if $(findstring undefined,$(SAN)),-fno-sanitize-recover=undefined))
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
            -Wvla -Werror=implicit-function-declaration
CPPFLAGS += -D_GNU_SOURCE -Isrc -I$(O)/gen
CFLAGS    = $(OPT) -std=gnu11 $(WARN) $(SANFLAGS) $(EXTRA_CFLAGS)
PIC      := -fPIC -fvisibility=hidden -fno-semantic-interposition \
            $(if $(SAN)$(COVERAGE),,-flto=auto) -ftls-model=initial-exec
# GSL only for commfit: memsim would be under its licence.
LIBS     := -Wl,--as-needed -lcjson -lz -lyajl -lsqlite3 -lm -lpthread $(EXTRA_LIBS)
GSL      := -Wl,--as-needed -lgsl -lgslcblas
# Of the programs, whose code is also that of libmemsim-study.so.
SHARED   := -fPIC -fvisibility=hidden -fno-semantic-interposition
MIMALLOC := $(if $(SAN),,-Wl,--no-as-needed -lmimalloc)

COMMON  := $(wildcard src/common/*/*.c)
KERNELS := $(wildcard src/kernels/*.c)
RUNTIME := $(wildcard src/runtime/*/*.c src/playback/*.c)
FITS    := $(wildcard src/fits/*.c)
MEMSIM  := $(filter-out src/memsim/cli/main.c,$(wildcard src/memsim/*/*.c src/memsim/report/*/*.c))
FITTING := $(wildcard src/shapes/*.c src/fitting/*.c src/opfit/*.c)
COMMFIT := $(filter-out src/commfit/main.c,$(wildcard src/commfit/*.c))
CORE    := $(patsubst %.c,$(O)/%.o,$(COMMON) $(KERNELS) $(RUNTIME) $(FITS) $(MEMSIM) $(FITTING) $(COMMFIT))
STUDY   := $(if $(SAN),,$(O)/lib/memsim/libmemsim-study.so)
STUDY_CALLS := $(addprefix memsim_study_,version report replay diff free)
PROGRAMS := $(O)/bin/memsim $(O)/bin/commfit
tests    = $(patsubst %.c,$(O)/%,$(wildcard tests/$1/*.c))

all: programs capture $(STUDY) $(O)/share/schema.json $(O)/man/memsim-json.5
programs: $(PROGRAMS)

include src/capture/capture.mk

$(O)/%.o: %.c $(O)/gen/shared-flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(SHARED) -MMD -MP -c -o $@ $<

# Objects of before libmemsim-study.so are compiled again.
$(O)/gen/shared-flags: FORCE
	@mkdir -p $(@D)
	@echo '$(SHARED)' | cmp -s - $@ || echo '$(SHARED)' >$@

# Written again only for another version: version.o then follows.
$(O)/gen/memsim_version.h: FORCE
	@mkdir -p $(@D)
	@echo '#define MEMSIM_VERSION "$(VERSION)"' > $@-t
	@cmp -s $@-t $@ && rm $@-t || mv $@-t $@
$(O)/src/common/base/version.o: $(O)/gen/memsim_version.h

# The page of --html, of our parts and Debian's charting libraries. Without
# those it is empty, and tried again by the next make.
PAGE := $(O)/gen/report.html
$(PAGE): tools/html-page $(wildcard src/memsim/html/*) \
    $(if $(shell test -s $(PAGE) && echo made),,FORCE)
	@mkdir -p $(@D)
	$(Q)$(PYTHON) tools/html-page src/memsim/html $(O)/html-libraries -o $@

$(O)/src/memsim/report/page/report_html.o: $(PAGE)
$(O)/src/memsim/report/page/report_html.o: CPPFLAGS += -DREPORT_HTML_PAGE='"$(PAGE)"'

# What memsim writes as JSON: a JSON Schema, and a page of the manual.
$(O)/share/schema.json: $(O)/bin/memsim
	@mkdir -p $(@D)
	$(Q)$< report --schema > $@-t && mv $@-t $@

$(O)/man/memsim-json.5: $(O)/share/schema.json tools/json-man
	@mkdir -p $(@D)
	$(Q)$(PYTHON) tools/json-man $< -o $@

$(O)/libcore.a: $(CORE)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/bin/memsim: $(O)/src/memsim/cli/main.o
$(O)/bin/commfit: $(O)/src/commfit/main.o
$(O)/bin/commfit: LIBS := $(GSL) $(LIBS)
$(PROGRAMS): $(O)/libcore.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -o $@ $(filter %.o,$^) $(O)/libcore.a $(MIMALLOC) $(LIBS) $(HARDEN)

# The answers of memsim's commands, for other programs. Sanitizers are of a
# program: there it is not built.
$(STUDY): src/memsim/library/exports.map $(O)/libcore.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -shared -o $@-t -Wl,-Bsymbolic,--version-script=$< \
	    $(STUDY_CALLS:%=-Wl,-u,%) $(O)/libcore.a $(LIBS) $(HARDEN) && mv $@-t $@

$(O)/tests/unit/%: tests/unit/%.c $(O)/libcore.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Itests $(CFLAGS) -MMD -MP -o $@ $< $(O)/libcore.a $(GSL) $(LIBS)

# What the catalogue of kernels says of a name, for tools/kernels.
COLUMNS := $(O)/tests/kernels/columns
$(COLUMNS): tests/kernels/columns.c $(O)/libcore.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -o $@ $< $(O)/libcore.a $(LIBS)

## kernels: what src/kernels does not know of the kernels of each PyTorch
kernels: $(COLUMNS)
	@tools/kernels --build $(O)

# Programs that call the fake libraries: tests/run starts them under memsim run.
$(O)/tests/capture/%: tests/capture/%.c $(CAPTURE) $(O)/libcore.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Itests -isystem $(CUDA13_INC) $(CFLAGS) -MMD -MP -o $@ $< $(O)/libcore.a \
	    -Wl,--as-needed $(CAPTURE_LIB)/libmemsim.so $(foreach s,$(filter %/13,$(SONAMES)),$(CAPTURE_LIB)/$(word 2,$(subst /, ,$s))) \
	    -ldl -lpthread

# The same programs for a GPU, linked with NVIDIA's libraries: those of CUDA, and
# of LIBRARIES (more folders) what a toolkit lacks, cuDNN, NCCL and cuSPARSELt. A
# program whose library is nowhere is left out.
CUDA ?= /usr/local/cuda
CONFORMANCE_AT ?= $(O)/conformance
CUDA_DIRS = $(CUDA)/lib64 $(CUDA)/lib64/stubs $(CUDA)/extras/CUPTI/lib64 $(LIBRARIES) /usr/lib/x86_64-linux-gnu
CUDA_LIBS := cublas cublasLt cudnn cufft cufile cupti curand cusolver cusparse cusparseLt nccl nvidia-ml nvJitLink nvrtc
CUDA_HAS = $(foreach l,$(CUDA_LIBS),$(if $(wildcard $(CUDA_DIRS:%=%/lib$l.so)),$l))
# A program without a library's name needs the driver and the runtime alone.
LIBRARY_OF = $(patsubst nvml,nvidia-ml,$(patsubst nvjitlink,nvJitLink,$(patsubst cusparselt,cusparseLt,$(firstword $(subst _, ,$1)))))
CONFORMANCE = $(foreach p,$(patsubst tests/capture/%.c,%,$(wildcard tests/capture/*.c)),$(if \
    $(filter-out $(CUDA_HAS),$(filter $(CUDA_LIBS),$(call LIBRARY_OF,$p))),,$p))

## conformance: programs that ask a GPU what memsim answers (CUDA=DIR LIBRARIES="DIR..."); tools/on-a-card/conformance runs them
conformance: $(CONFORMANCE:%=$(CONFORMANCE_AT)/%)
	@$(foreach l,$(filter-out $(CUDA_HAS),$(CUDA_LIBS)),echo "conformance: no lib$l.so in CUDA or LIBRARIES: programs that need it are left out";)

$(CONFORMANCE_AT)/%: tests/capture/%.c $(O)/libcore.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Itests -isystem $(CUDA13_INC) $(CFLAGS) -MMD -MP -o $@ $< $(O)/libcore.a \
	    $(CUDA_DIRS:%=-L%) $(foreach d,$(filter-out %/stubs,$(CUDA_DIRS)),-Wl,-rpath,$d) -lcuda -lcudart \
	    -Wl,--as-needed $(CUDA_HAS:%=-l%) -ldl -lpthread -lm

# Stands in for libmemsim.so, and for a CUDA library, in tests/cli.
STANDIN := $(O)/tests/cli/lib/libmemsim.so
$(STANDIN): tests/cli/fake.c src/common/trace/trace_write.c \
    src/common/base/crc32c.c src/common/base/err.c src/common/base/text_clean.c src/common/base/file_limit.c \
    $(wildcard src/common/*/*.h)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -shared -o $@ $(filter %.c,$^)
	$(Q)cp $@ $(@D)/libfakecuda.so.1

standin: $(STANDIN)

## check: what needs neither torch nor network, in a minute
check: all standin $(COLUMNS) $(call tests,unit) $(call tests,capture)
	@tests/run --quick --build $(O) process cli fit tools unit capture replay

## asan: the same programs under AddressSanitizer and UBSan, in build-asan
asan: asan-build
	@tests/run asan

asan-build:
	@$(MAKE) --no-print-directory O=build-asan SAN=address,undefined asan-programs

asan-programs: programs capture $(call tests,unit) $(call tests,capture)

## coverage: the share of the sources' lines that GROUPS of tests run, by folder,
## into doc/evidence/coverage.md
GROUPS ?= unit capture cli process replay fit
coverage:
	@find build-coverage -name '*.gcda' -delete 2>/dev/null || true
	@$(MAKE) --no-print-directory O=build-coverage COVERAGE=1 coverage-programs
	-MEMSIM_WARM= tests/run --build build-coverage --venv $(VENV) $(GROUPS)
	@tools/coverage build-coverage --of "$(GROUPS)" --write doc/evidence/coverage.md

coverage-programs: all standin $(COLUMNS) $(call tests,unit) $(call tests,capture)

TORCH ?= 2.11.0

## test: everything, real torch included; sets up what it needs
test:
	@tools/setup packages
	-@tools/pip --prepare
	@$(MAKE) --no-print-directory test-programs test-environments
	@tests/run --build $(O) --venv $(VENV) --asan build-asan \
	    torch fit tools unit cli capture process replay browser package asan

# What the tests need, side by side: pip is busy with one core or the network.
test-programs:
	@tools/setup lint
	@$(MAKE) --no-print-directory all
	@tools/lint
	@$(MAKE) --no-print-directory asan-build
	@$(MAKE) --no-print-directory standin $(COLUMNS) $(call tests,unit) $(call tests,capture)

test-environments:
	@tools/test-torch $(VENV)
	@tools/setup browser
	@tools/setup pytest $(VENV)
	@tools/setup timeline
	@tools/setup axe
	@tools/setup mcp
	@tools/setup search
	@tools/setup slurm

## demo: builds, and trains GPT-2 small on a simulated GPU
demo:
	@tools/setup packages
	-@tools/pip --prepare
	@$(MAKE) --no-print-directory all
	@tools/setup torch $(VENV) $(TORCH)
	$(O)/bin/memsim run --gpu h100-sxm-80gb -- $(VENV)/bin/python examples/train_gpt2.py

## lint: what keeps the code readable; tools/setup lint installs its tools
lint:
	@tools/lint

## format: the changed lines of the sources, by clang-format
format:
	@git clang-format --extensions c,h

## fuzz: every fuzzer for SECONDS (60)
SECONDS ?= 60
fuzz:
	@tools/fuzz $(O) $(SECONDS)

## faults: each system call of both programs fails once; into doc/faults.md.
## FAULTS=N tries every Nth call only
FAULTS ?= 1
faults: all standin
	tests/faults/run --build $(O) --every $(FAULTS) --write doc/faults.md

## fuzz-alloc: the allocator's engine against real PyTorch, for SECONDS
fuzz-alloc: all
	$(PYTHON) tests/torch/fuzz_alloc.py --build $(O) --python $(VENV)/bin/python \
	    --seconds $(SECONDS)

## fuzz-values: 10,000 random programs of operators against the CPU
fuzz-values: all
	$(O)/bin/memsim run -q -- $(VENV)/bin/python tests/torch/fuzz_values.py -o bench/fuzz_values.csv

## install: to $(DESTDIR)$(PREFIX); install-memsim and install-commfit are its
## parts, which are packages of their own
install: install-memsim install-commfit

install-commfit: programs
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin share/man/man1)
	install $(O)/bin/commfit $(DESTDIR)$(PREFIX)/bin
	install -m 644 man/commfit.1 $(DESTDIR)$(PREFIX)/share/man/man1

install-memsim: all
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin lib/memsim/py lib/memsim/bin \
	    lib/memsim/search lib/memsim/admit lib/memsim/real/py lib/memsim/real/emulate \
	    share/memsim/gpus share/memsim/clusters share/memsim/fits/ops \
	    share/memsim/schema share/memsim/include \
	    share/man/man1 share/man/man5 share/bash-completion/completions \
	    share/zsh/site-functions share/fish/vendor_completions.d)
	install $(O)/bin/memsim $(DESTDIR)$(PREFIX)/bin
	install $(CAPTURE) $(STUDY) $(DESTDIR)$(PREFIX)/lib/memsim
	install $(filter-out $(EMULATE_LIB)/%,$(REAL)) $(DESTDIR)$(PREFIX)/lib/memsim/real
	install $(filter $(EMULATE_LIB)/%,$(REAL)) $(DESTDIR)$(PREFIX)/lib/memsim/real/emulate
	install -m 644 $(PY_REAL) $(DESTDIR)$(PREFIX)/lib/memsim/real/py
	install $(SMI) $(DESTDIR)$(PREFIX)/lib/memsim/bin
	install -m 644 $(PY) $(DESTDIR)$(PREFIX)/lib/memsim/py
	install -m 644 $(CALIBRATE) $(MCP) $(DESTDIR)$(PREFIX)/lib/memsim
	install -m 644 $(SEARCH) $(DESTDIR)$(PREFIX)/lib/memsim/search
	install -m 644 $(ADMIT) $(DESTDIR)$(PREFIX)/lib/memsim/admit
	install -m 644 data/gpus/*.json $(DESTDIR)$(PREFIX)/share/memsim/gpus
	install -m 644 src/playback/memsim_delay.h src/memsim/library/memsim_study.h $(DESTDIR)$(PREFIX)/share/memsim/include
	install -m 644 $(wildcard data/clusters/*.json) $(DESTDIR)$(PREFIX)/share/memsim/clusters
	install -m 644 $(wildcard fits/*.json) $(DESTDIR)$(PREFIX)/share/memsim/fits
	install -m 644 $(wildcard fits/ops/*.json) $(DESTDIR)$(PREFIX)/share/memsim/fits/ops
	install -m 644 $(filter-out man/commfit.1,$(wildcard man/*.1)) $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 $(wildcard man/*.5) $(O)/man/memsim-json.5 $(DESTDIR)$(PREFIX)/share/man/man5
	$(O)/bin/memsim completion bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/memsim
	$(O)/bin/memsim completion zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_memsim
	$(O)/bin/memsim completion fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/memsim.fish
	install -m 644 $(O)/share/schema.json \
	    $(DESTDIR)$(PREFIX)/share/memsim/schema/memsim-$(SCHEMA_VERSION).json
	install -m 644 data/schema/fit.json \
	    $(DESTDIR)$(PREFIX)/share/memsim/schema/fit-1.json

## wheel: dist/memsim-*.whl and dist/memsim_commfit-*.whl, for glibc 2.28 or newer
wheel:
	@tools/wheel

## deb: dist/memsim_*.deb and dist/memsim-commfit_*.deb, for the Debian release here
deb:
	@tools/deb

## docs: the documentation as a site, in build/site
docs: $(O)/man/memsim-json.5
	@tools/docs --build $(O)

## clean: removes what was built
clean:
	rm -rf $(O) build-asan

help:
	@sed -n 's/^## //p' Makefile src/capture/capture.mk

.PHONY: kernels format all programs standin check coverage coverage-programs asan asan-build asan-programs test test-programs test-environments demo lint fuzz fuzz-alloc fuzz-values faults install install-memsim install-commfit wheel deb docs clean help FORCE
.DELETE_ON_ERROR:
.SECONDARY:
-include $(shell find $(O) -type f -name '*.d' 2>/dev/null)
