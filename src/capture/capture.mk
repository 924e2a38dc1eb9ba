# SPDX-License-Identifier: Apache-2.0
# What is loaded into the program under test: libmemsim.so, and a fake library
# for every `soname` line of api/*.api. A library is its stubs, which are weak,
# and whatever lies in the folder of its name, compiled once per CUDA major.
CAPTURE_LIB := $(O)/lib/memsim
APIS        := $(wildcard src/capture/api/*.api)
HEADERS     ?= .headers
CUDA12_INC  ?= $(HEADERS)/cu12
CUDA13_INC  ?= $(HEADERS)/cu13

# "cudart libcudart.so.12 12" as cudart/libcudart.so.12/12, for every soname
SONAMES := $(shell awk '$$1 == "soname" { n = split(FILENAME, p, "[/.]"); \
             print p[n - 1] "/" $$2 "/" $$4 }' $(APIS))

# The core is always in the process before anything of CUDA, so its
# thread-locals may use the initial-exec model that $(PIC) asks for.
# COMPUTE=0 leaves out the folder that carries out PyTorch's small kernels.
CORE_FILES := $(filter-out $(if $(filter 0,$(COMPUTE)),src/capture/core/compute/%), \
               $(wildcard src/capture/core/*/*.c))
CORE_PIC  := $(patsubst %.c,$(O)/pic/%.o,$(CORE_FILES))
BASE_PIC  := $(patsubst %,$(O)/pic/src/common/%.o,base/crc32c base/cxx_name \
               base/demangle base/elf base/err base/file_limit \
               base/text_clean catalogue/capability catalogue/nccl_memory \
               trace/op_record trace/rank_axis trace/trace_write trace/session_table \
               trace/session_mail catalogue/vaspace) \
             $(patsubst %.c,$(O)/pic/%.o,$(wildcard src/kernels/*.c))

# Hand-written functions have the visibility of their declarations in CUDA's
# headers, which is the default one; the version scripts hide what is ours.
LIBRARY_PIC := -fPIC -fno-semantic-interposition
# Few segments: every mapping counts at the start of every process.
SEGMENTS    ?= -Wl,-z,noseparate-code
SYMBOLIC    ?= -Wl,-Bsymbolic-functions
LIBRARY_LD   = -shared $(HARDEN) -Wl,-soname,$(@F) -Wl,-z,defs $(SEGMENTS)

$(O)/pic/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(PIC) -MMD -MP -c -o $@ $<

# The core knows CUDA's names of device attributes, and nothing else of it.
$(O)/pic/src/capture/core/%.o: CPPFLAGS += -isystem $(CUDA13_INC)
$(CORE_PIC): | $(HEADERS)/stamp

# $(call capture_objects,MAJOR)
define capture_objects
$(O)/pic$1/%.o: %.c | $(HEADERS)/stamp
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CPPFLAGS) -DMEMSIM_CUDA_MAJOR=$1 -isystem $$(CUDA$1_INC) \
	    $$(CFLAGS) $$(LIBRARY_PIC) -MMD -MP -c -o $$@ $$<
endef
$(foreach major,12 13,$(eval $(call capture_objects,$(major))))

$(O)/gen/%.stubs.c: src/capture/api/%.api tools/gen-stubs tools/apifile.py
	@mkdir -p $(@D)
	$(Q)$(PYTHON) tools/gen-stubs $< -o $@

$(O)/pic/%.stubs.o: $(O)/gen/%.stubs.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LIBRARY_PIC) -MMD -MP -c -o $@ $<

# The table of convolution workspaces as rows of an array in C: fourteen patterns
# and seven numbers, one as text; the rest of a row is for people.
$(O)/gen/cudnn_workspace.inc: data/workspaces/cudnn.csv
	@mkdir -p $(@D)
	$(Q)awk -F, '/^#/ || /^operation,/ { next } \
	    { for (i = 1; i <= 14; i++) printf "%s\"%s\"", (i > 1 ? ", " : "{"), $$i; \
	      printf ", %s, %s, %s, \"%s\", %s, %s, %s},\n", \
	      $$15, $$16, $$17, $$18, $$19, $$20, $$21 }' $< > $@-t
	@mv $@-t $@

$(O)/pic12/src/capture/cudnn/workspace.o $(O)/pic13/src/capture/cudnn/workspace.o: \
    $(O)/gen/cudnn_workspace.inc

# An archive: only what the core and a library need gets into other people's
# process.
$(O)/pic/libbase.a: $(BASE_PIC)
	$(Q)rm -f $@ && $(LTO_AR) rcs $@ $^

# What it does not call is dropped, which needs libm: not without optimization.
$(CAPTURE_LIB)/libmemsim.so: $(CORE_PIC) $(O)/pic/libbase.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(PIC) $(LIBRARY_LD) $(SYMBOLIC) \
	    -o $@-t $^ $(CAPTURE_LIBS) $(if $(SAN)$(COVERAGE),-lm) && mv $@-t $@

# The simulation of a process that uses a GPU: with libm, and with code of the
# programs', whose memory is an arena here.
CLOCK_PIC := $(patsubst %.c,$(O)/pic/%.o,$(wildcard src/capture/clock/*.c \
               $(addprefix src/playback/,price.c price_move.c launch_memo.c image.c world.c \
                 delay.c delay_library.c stragglers.c simulation.c simulator_*.c) \
               src/fits/spread.c \
               $(addprefix src/common/trace/,step.c step_phases.c step_batch.c step_repeat.c) \
               $(wildcard src/runtime/*/*.c) \
               src/common/base/map.c src/common/base/rank_set.c src/common/trace/op_trace.c \
               src/common/trace/trace_kind.c))

$(CAPTURE_LIB)/libmemsim-clock.so: $(CLOCK_PIC) $(O)/pic/libbase.a \
    $(CAPTURE_LIB)/libmemsim.so
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(PIC) $(LIBRARY_LD) -Wl,-rpath,'$$ORIGIN' \
	    -Wl,-Bsymbolic \
	    -o $@-t $^ -lm && mv $@-t $@

# $(call capture_library,LIBRARY,SONAME,MAJOR)
define capture_library
$(O)/gen/$2.map: src/capture/api/$1.api tools/gen-stubs tools/apifile.py
	@mkdir -p $$(@D)
	$$(Q)$$(PYTHON) tools/gen-stubs $$< -o $$@

$(CAPTURE_LIB)/$2: $(O)/pic/$1.stubs.o $(O)/gen/$2.map \
    $(patsubst %.c,$(O)/pic$3/%.o,$(wildcard src/capture/$1/*.c)) \
    $(O)/pic/libbase.a $(CAPTURE_LIB)/libmemsim.so
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CFLAGS) $$(LIBRARY_LD) -Wl,-rpath,'$$$$ORIGIN' \
	    $(SYMBOLIC) -Wl,--version-script=$(O)/gen/$2.map \
	    -o $$@-t $$(filter %.o %.a %.so,$$^) && \
	    mv $$@-t $$@
endef
$(foreach s,$(SONAMES),$(eval $(call capture_library,$(word 1,$(subst /, ,$s)),$(word 2,$(subst /, ,$s)),$(word 3,$(subst /, ,$s)))))

# What stands before NVIDIA's own libraries (capture/real): the core, some of it
# compiled for its other names (run/instance.h), and a library with the driver's
# name, which passes its calls on.
REAL_LIB   := $(CAPTURE_LIB)/real
REAL_OWN   := $(shell grep -l instance.h src/capture/core/*/*.c)
REAL_CORE  := $(filter-out src/capture/core/compute/% $(REAL_OWN),$(CORE_FILES))
REAL_PIC   := $(patsubst %.c,$(O)/pic/%.o,$(REAL_CORE)) \
              $(patsubst %.c,$(O)/pic-real/%.o,$(REAL_OWN) \
                $(addprefix src/capture/cudnn/,arena.c attention.c call.c calls.c graph.c \
                  object.c plan.c rnn_layout.c shape.c store.c text.c)) \
              $(patsubst %.c,$(O)/pic-real/%.o,$(wildcard src/capture/real/*.c))

$(O)/pic-real/%.o: %.c | $(HEADERS)/stamp
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -DMEMSIM_REAL -isystem $(CUDA13_INC) $(CFLAGS) $(PIC) \
	    -MMD -MP -c -o $@ $<

# Taps have the visibility of CUDA's headers; exports.map hides what is ours.
$(O)/pic-real/src/capture/real/%.o: PIC += -fvisibility=default

$(REAL_LIB)/libmemsim-real.so: $(REAL_PIC) $(O)/pic/libbase.a src/capture/real/exports.map
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(PIC) $(LIBRARY_LD) -Wl,-Bsymbolic \
	    -Wl,--version-script=src/capture/real/exports.map \
	    -o $@-t $(filter %.o %.a,$^) $(CAPTURE_LIBS) $(if $(SAN)$(COVERAGE),-lm) && mv $@-t $@

$(O)/gen/%.pass.c: src/capture/api/%.api tools/gen-stubs tools/apifile.py
	@mkdir -p $(@D)
	$(Q)$(PYTHON) tools/gen-stubs $< -o $@

$(O)/pic/%.pass.o: $(O)/gen/%.pass.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LIBRARY_PIC) -MMD -MP -c -o $@ $<

$(REAL_LIB)/libcuda.so.1: $(O)/pic/driver.pass.o $(O)/gen/libcuda.so.1.map $(REAL_LIB)/libmemsim-real.so
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LIBRARY_LD) -Wl,-rpath,'$$ORIGIN' $(SYMBOLIC) \
	    -Wl,--version-script=$(O)/gen/libcuda.so.1.map \
	    -o $@-t $(filter %.o %.so,$^) && mv $@-t $@

# The same with memsim's own NCCL, for ranks whose peers do not exist
# (capture/emulate). It has the same name, in a folder of its own.
EMULATE_LIB := $(REAL_LIB)/emulate
EMULATE_PIC := $(filter-out %/capture/real/nccl.o,$(REAL_PIC)) \
    $(patsubst %.c,$(O)/pic-real/%.o,$(wildcard src/capture/emulate/*.c) \
        $(addprefix src/capture/nccl/,buffers.c \
            collective.c comm.c exchange.c operation.c sources.c)) \
    $(filter-out %/live.o %/channel.o %/others.o %/delays.o %/places.o,$(CLOCK_PIC)) \
    $(O)/pic/nccl.stubs.o

$(O)/pic-real/src/capture/nccl/%.o $(O)/pic-real/src/capture/emulate/%.o: \
    PIC += -fvisibility=default

$(EMULATE_LIB)/libmemsim-real.so: $(EMULATE_PIC) $(O)/pic/libbase.a src/capture/real/exports.map
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(PIC) $(LIBRARY_LD) -Wl,-Bsymbolic \
	    -Wl,--version-script=src/capture/real/exports.map \
	    -o $@-t $(filter %.o %.a,$^) -lm $(CAPTURE_LIBS) && mv $@-t $@

REAL := $(REAL_LIB)/libmemsim-real.so $(REAL_LIB)/libcuda.so.1 \
        $(EMULATE_LIB)/libmemsim-real.so

CAPTURE := $(CAPTURE_LIB)/libmemsim.so $(CAPTURE_LIB)/libmemsim-clock.so \
           $(foreach s,$(SONAMES),$(CAPTURE_LIB)/$(word 2,$(subst /, ,$s)))

# nvidia-smi, on the PATH of a run: a program that uses NVML alone.
SMI := $(CAPTURE_LIB)/bin/nvidia-smi
SMI_O := $(patsubst %.c,$(O)/%.o,$(wildcard src/smi/*.c))
$(SMI_O): CPPFLAGS += -isystem $(CUDA13_INC)
$(SMI_O): | $(HEADERS)/stamp
$(SMI): $(SMI_O)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(HARDEN) -o $@-t $^ -ldl && mv $@-t $@

# What is injected into Python is copied beside them.
PY := $(patsubst src/capture/py/%,$(CAPTURE_LIB)/py/%,$(wildcard src/capture/py/*.py))
$(CAPTURE_LIB)/py/%: src/capture/py/%
	@mkdir -p $(@D)
	$(Q)cp $< $@

PY_REAL := $(patsubst src/capture/py/%,$(REAL_LIB)/py/%,$(wildcard src/capture/py/*.py))
$(REAL_LIB)/py/%: src/capture/py/%
	@mkdir -p $(@D)
	$(Q)cp $< $@

CALIBRATE := $(patsubst src/memsim/calibrate/%,$(CAPTURE_LIB)/%,$(wildcard src/memsim/calibrate/*.py))
$(CALIBRATE): $(CAPTURE_LIB)/%: src/memsim/calibrate/%
	@mkdir -p $(@D)
	$(Q)cp $< $@

MCP := $(CAPTURE_LIB)/mcp_server.py
$(MCP): $(CAPTURE_LIB)/%: src/memsim/mcp/%
	@mkdir -p $(@D)
	$(Q)cp $< $@

SEARCH := $(patsubst src/memsim/search/%,$(CAPTURE_LIB)/search/%,$(wildcard src/memsim/search/*.py src/memsim/search/*.html))
$(SEARCH): $(CAPTURE_LIB)/search/%: src/memsim/search/%
	@mkdir -p $(@D)
	$(Q)cp $< $@

ADMIT := $(patsubst src/memsim/admit/%,$(CAPTURE_LIB)/admit/%,$(wildcard src/memsim/admit/*.py src/memsim/admit/*.lua))
$(ADMIT): $(CAPTURE_LIB)/admit/%: src/memsim/admit/%
	@mkdir -p $(@D)
	$(Q)cp $< $@

capture: $(CAPTURE) $(REAL) $(SMI) $(PY) $(PY_REAL) $(CALIBRATE) $(MCP) $(SEARCH) $(ADMIT)

# Asks again when a source may include a header that no other one does.
$(HEADERS)/stamp: tools/cuda-headers $(wildcard src/capture/*/*.[ch] src/capture/*/*/*.[ch])
	$(Q)$(PYTHON) tools/cuda-headers $(HEADERS)
	@touch $@

# make coverage-api WHEEL=... says what a wheel wants that nobody has written.
coverage-api: $(CAPTURE)
	$(Q)$(PYTHON) tools/coverage-api --built $(CAPTURE_LIB) $(WHEEL)

.PHONY: capture coverage-api
