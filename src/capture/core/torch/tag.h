/* SPDX-License-Identifier: Apache-2.0
 * The owner of an allocation: the module, the phase and the operator that run
 * on this thread. py/modules.py reports the modules entered and left. PyTorch
 * reports the running operator and the node of the autograd graph; the node's
 * sequence number identifies the module that made it. */
#ifndef MEMSIM_CAPTURE_CORE_TORCH_TAG_H
#define MEMSIM_CAPTURE_CORE_TORCH_TAG_H

#include "capture/core/base/core.h"

/* What runs on this thread now. */
struct tag {
    uint32_t module;           /* 0: none */
    uint32_t phase;            /* enum trace_phase_kind */
    uint32_t operation, range; /* ids of names, or 0 */
};

/* Sets *TAG; zeros where nothing is injected. */
void tag_now(struct tag *tag);

/* The operator and the module that are at work; NULL: not known. */
void tag_names(const char **operation, const char **module);

/* Who is at work is TAG's from now on, for tag_names() on this thread; NULL:
 * what is found. */
void tag_lend(const struct tag *tag);

/* Where the program is, for a person: " (aten::mm in layers.0 of GPT)", or an
 * empty text where nothing is known. */
#define TAG_TEXT_BYTES 96
void tag_text(char *text, size_t bytes);

/* Called by py/modules.py, with ids of its own from 1 up. start: torch is
 * imported. module: ID's path below ROOT (its own id, with the name of its
 * class, where it is one); said again, it has moved. leave: also what was
 * entered after it and not left. step: an optimizer's step begins or ends.
 * range: NAME begins, which PyTorch has no range for; NULL: it ends. storage:
 * what lies at ADDRESS is CATEGORY, of module ID, in numbers of ELEMENT_BYTES.
 * NAME, from memsim_name, is its name there: "weight", or of an optimizer's
 * state "exp_avg of weight". */
CORE_API void memsim_tag_start(void);
/* The program is at its end: its phase is recorded once more. */
CORE_API void memsim_tag_end(void);
CORE_API void memsim_tag_module(uint32_t id, uint32_t root, const char *name);
CORE_API void memsim_tag_enter(uint32_t id);
CORE_API void memsim_tag_leave(uint32_t id);
CORE_API void memsim_tag_step(int begins);
CORE_API void memsim_tag_range(const char *name);
CORE_API void memsim_tag_storage(uint64_t address, uint32_t id,
                                 uint32_t category, uint32_t element_bytes,
                                 uint32_t name);

/* ID, which is about to be entered, gets what lies at ADDRESS; or, about to be
 * left, returns it. */
CORE_API void memsim_tag_input(uint64_t address, uint32_t id);
CORE_API void memsim_tag_output(uint64_t address, uint32_t id);

/* ID, which is no other module's part and was just entered, was given a batch
 * of SAMPLES; TOKENS: 0 if not known; LEARNS: gradients are recorded;
 * VALUES: the most numbers that a tensor has for each sample. */
CORE_API void memsim_tag_batch(uint32_t id, uint64_t samples, uint64_t tokens,
                               uint32_t learns, uint64_t values);

/* The module entered last on this thread and not left; 0: none. */
CORE_API uint32_t memsim_tag_top(void);

/* Only the first DEPTH modules that this thread has entered are at work: an
 * exception that is no Exception has left the others. */
CORE_API void memsim_tag_cut(uint32_t depth);

/* What this thread allocates in a forward, until it says 0, is for the module
 * ID, which is in a compiled graph of the innermost one. */
CORE_API void memsim_tag_within(uint32_t id);

#endif
