/* SPDX-License-Identifier: Apache-2.0
 * NVTX 3 lives in its users' own code; it loads the library that
 * NVTX_INJECTION64_PATH names and asks it for functions. */
#include "capture/core/torch/nvtx.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "capture/core/base/pages.h"
#include "capture/core/run/instance.h"
#include "capture/core/run/record.h"

static _Thread_local int level;

static size_t text_bytes(const char *text)
{
    return text ? strnlen(text, TRACE_TEXT_MAX - 1) : 0;
}

int memsim_range_push(uint64_t domain, const char *text)
{
    RECORD_TEXT(RANGE_PUSH, text, text_bytes(text), .domain = domain);
    return level++;
}

int memsim_range_pop(uint64_t domain)
{
    RECORD(RANGE_POP, .domain = domain);
    return level > 0 ? --level : NVTX_NO_PUSH_POP_TRACKING;
}

void memsim_mark(uint64_t domain, const char *text)
{
    RECORD_TEXT(MARK, text, text_bytes(text), .domain = domain);
}

const char *memsim_range_string(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *kept = memsim_pages_keep(bytes);

    return kept ? memcpy(kept, text, bytes) : NULL;
}

static void mark_ex(const nvtxEventAttributes_t *event)
{
    memsim_mark(0, nvtx_event_text(event));
}

static void mark_a(const char *text)
{
    memsim_mark(0, text);
}

static int push_ex(const nvtxEventAttributes_t *event)
{
    return memsim_range_push(0, nvtx_event_text(event));
}

static int push_a(const char *text)
{
    return memsim_range_push(0, text);
}

static int pop_range(void)
{
    return memsim_range_pop(0);
}

static void domain_mark_ex(uint64_t domain, const nvtxEventAttributes_t *event)
{
    memsim_mark(domain, nvtx_event_text(event));
}

static int domain_push_ex(uint64_t domain, const nvtxEventAttributes_t *event)
{
    return memsim_range_push(domain, nvtx_event_text(event));
}

static const char *domain_string(uint64_t domain, const char *text)
{
    (void)domain;
    return memsim_range_string(text);
}

/* A domain's handle is the id of its name. */
static uint64_t domain_create(const char *name)
{
    return memsim_name(name);
}

#define FUNCTION(id, function)                                                 \
    {                                                                          \
        id, (NvtxFunctionPointer)function                                      \
    }
struct function {
    unsigned id;
    NvtxFunctionPointer pointer;
};

static const struct function core_functions[] = {
    FUNCTION(NVTX_CBID_CORE_MarkEx, mark_ex),
    FUNCTION(NVTX_CBID_CORE_MarkA, mark_a),
    FUNCTION(NVTX_CBID_CORE_RangePushEx, push_ex),
    FUNCTION(NVTX_CBID_CORE_RangePushA, push_a),
    FUNCTION(NVTX_CBID_CORE_RangePop, pop_range),
};

static const struct function domain_functions[] = {
    FUNCTION(NVTX_CBID_CORE2_DomainMarkEx, domain_mark_ex),
    FUNCTION(NVTX_CBID_CORE2_DomainRangePushEx, domain_push_ex),
    FUNCTION(NVTX_CBID_CORE2_DomainRangePop, memsim_range_pop),
    FUNCTION(NVTX_CBID_CORE2_DomainRegisterStringA, domain_string),
    FUNCTION(NVTX_CBID_CORE2_DomainCreateA, domain_create),
};

static void module_fill(const NvtxExportTableCallbacks *callbacks,
                        NvtxCallbackModule module,
                        const struct function *functions, size_t count)
{
    NvtxFunctionTable table;
    unsigned size;

    if (!callbacks->GetModuleFunctionTable(module, &table, &size))
        return;
    for (size_t i = 0; i < count; i++)
        if (functions[i].id < size && table[functions[i].id])
            *table[functions[i].id] = functions[i].pointer;
}

#define MODULE_FILL(callbacks, module, functions)                              \
    module_fill(callbacks, module, functions,                                  \
                sizeof functions / sizeof *functions)

CORE_API int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
CORE_API int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);

    if (!callbacks || callbacks->struct_size < sizeof *callbacks)
        return 0;
    MODULE_FILL(callbacks, NVTX_CB_MODULE_CORE, core_functions);
    MODULE_FILL(callbacks, NVTX_CB_MODULE_CORE2, domain_functions);
    return 1;
}

/* Before anybody's first range; another tool's injection stays. */
__attribute__((constructor)) static void nvtx_start(void)
{
    Dl_info self;

    if (getenv(INSTANCE_SESSION) && dladdr((void *)nvtx_start, &self) &&
        self.dli_fname[0] == '/')
        setenv("NVTX_INJECTION64_PATH", self.dli_fname, 0);
}
