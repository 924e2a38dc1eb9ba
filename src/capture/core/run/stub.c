/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/stub.h"

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

int64_t memsim_stub_called(struct stub *stub)
{
    uint64_t calls = __atomic_fetch_add(&stub->calls, 1, __ATOMIC_RELAXED);
    struct session_process *slot = process_slot();

    if (stub->policy == STUB_ok)
        return stub->code;
    if (!calls)
        memsim_log("%s (%s) is not implemented: %s", stub->symbol,
                   stub->library, answers[stub->policy]);
    if (slot) {
        if (!calls && stub->policy != STUB_work)
            memsim_note("%s is not implemented yet: memsim %s", stub->symbol,
                        answers[stub->policy]);
        atomic_fetch_add(&slot->unpriced, 1);
        RECORD(UNPRICED, .name = memsim_name(stub->symbol),
               .library = memsim_name(stub->library));
    }
    return stub->code;
}
