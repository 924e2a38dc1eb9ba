/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/stub.h"

#include <string.h>

#include "capture/core/base/log.h"
#include "capture/core/run/process.h"
#include "capture/core/run/record.h"

static const char *const answers[] = {
    [STUB_fail] = "answered 'not supported'",
    [STUB_warn] = "did nothing and succeeded",
    [STUB_ok] = "did nothing and succeeded",
    [STUB_work] = "recorded it without a price",
    [STUB_null] = "answered NULL",
    [STUB_text] = "answered '" STUB_TEXT "'",
};

int64_t memsim_stub_called(const char *names, enum stub_policy policy,
                           int64_t code, uint64_t *calls)
{
    const char *library = names, *symbol = names + strlen(names) + 1;
    bool first = !__atomic_fetch_add(calls, 1, __ATOMIC_RELAXED);
    struct session_process *slot = process_slot();

    if (policy == STUB_ok)
        return code;
    if (first)
        memsim_log("%s (%s) is not implemented: %s", symbol, library,
                   answers[policy]);
    if (slot) {
        if (first && policy != STUB_work)
            memsim_note("%s is not implemented yet: memsim %s", symbol,
                        answers[policy]);
        atomic_fetch_add(&slot->unpriced, 1);
        RECORD(UNPRICED, .name = memsim_name(symbol),
               .library = memsim_name(library));
    }
    return code;
}
