/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/diagnose/host_read.h"

#include "capture/core/diagnose/assumed.h"
#include "capture/core/diagnose/assumption.h"
#include "capture/core/run/process.h"
#include "capture/core/run/record.h"
#include "capture/core/torch/python_line.h"
#include "capture/core/torch/read_type.h"
#include "capture/core/torch/tag_operator.h"
#include "capture/core/memory/values.h"
#include "capture/core/memory/values_return.h"

/* A larger copy has zeros where nothing is known, as a checkpoint's. */
#define SERIES_BYTES (UINT64_C(64) << 10)
#define SERIES_FALL  100 /* reads until half of the first value */

/* Above so many bytes four stand for the first of them. */
#define EACH_BYTES (UINT64_C(64) << 10)

/* What a copy of PyTorch's says of its type where no kernel did: one double is
 * rare, one int64_t (.item()) is not, and one byte is a flag. */
static bool is_single(uint64_t bytes)
{
    return (bytes == 8 || bytes == 1) && operator_outermost();
}

/* Of a TYPE that PyTorch names: how many of BYTES at SOURCE are not known. */
static uint64_t unknown_typed_bytes(uint64_t source, uint64_t bytes,
                                    enum number_type type)
{
    uint64_t step = number_bytes(type), unknown = 0;

    if (number_is_float(type) || bytes > VALUES_COPY_BYTES)
        return 0;
    for (uint64_t i = 0; i + step <= bytes; i += step)
        unknown += values_known(source + i, step) ? 0 : step;
    return unknown;
}

/* Where nobody names the type: how many of BYTES at SOURCE are of integers and
 * flags and not known. */
static uint64_t unknown_bytes(uint64_t source, uint64_t bytes)
{
    const struct values_window *w = values_window(source);
    uint64_t at = w ? source - w->base : 0, unknown = 0;

    if (!w || bytes > VALUES_COPY_BYTES || bytes > w->bytes - at)
        return 0;
    uint64_t step = bytes > EACH_BYTES ? 4 : 1;
    if (values_some(w, at, bytes))
        for (uint64_t i = 0; i < bytes; i += step)
            unknown += values_known_at(w, at + i) == VALUES_COUNTS ? step : 0;
    if (unknown || values_known(source, bytes))
        return unknown;
    return is_single(bytes) ? bytes : 0;
}

static void guess_count(uint64_t source, uint64_t bytes, enum number_type type,
                        int device, uint64_t stream)
{
    uint64_t unit = bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : 1;
    uint64_t unknown = type == NUMBER_NONE
                           ? unknown_bytes(source, bytes)
                           : unknown_typed_bytes(source, bytes, type);

    if (type != NUMBER_NONE)
        unit = number_bytes(type);
    if (!unknown)
        return;
    const struct guess guess = {.name = memsim_name("a copy to the host"),
                                .asker = operator_outermost(),
                                .device = (uint64_t)device,
                                .stream = stream,
                                .is_read = true,
                                .elements = bytes / unit,
                                .chosen = (unknown + unit - 1) / unit};
    memsim_assumption(
        &guess, "the script reads integers or flags that memsim does not "
                "compute: it gets 0, and checks find nothing wrong; sizes that "
                "depend on them are guesses");
}

/* The next of the series X, X / 1.01, X / 1.02, ...: what a loss looks like
 * that falls. One for each read, the same in each run. */
static double series_next(void)
{
    static uint64_t reads;
    const struct session *s = memsim_session();
    uint64_t n = __atomic_fetch_add(&reads, 1, __ATOMIC_RELAXED);

    return s ? s->unknown_value / (1 + (double)n / SERIES_FALL) : 0;
}

/* Puts VALUE, as numbers of TYPE, where the BYTES at TO, copied from SOURCE,
 * are not known. */
static void value_fill(char *to, uint64_t source, uint64_t bytes,
                       enum number_type type, double value)
{
    uint64_t step = number_bytes(type);

    for (uint64_t i = 0; i + step <= bytes; i += step)
        if (!values_known(source + i, step))
            number_store(type, to + i, value);
}

/* A single flag that follows from unknown values may be one that a check asks
 * for, which finds nothing wrong, or that a loop waits for. */
static void flag_read(uint64_t destination)
{
    unsigned char *flag = (unsigned char *)destination;
    int wanted = python_check();

    *flag = wanted >= 0 ? (unsigned char)wanted : assumed_flag(*flag & 1);
}

static void known_read(uint64_t destination, uint64_t source, uint64_t bytes)
{
    const struct values_window *w = values_window(source);

    memsim_values_copy(destination, source, bytes);
    if (bytes == 1 && w &&
        values_known_at(w, source - w->base) == VALUES_ASSUMED &&
        torch_read_type() == NUMBER_BOOL)
        flag_read(destination);
}

void host_read(uint64_t destination, uint64_t source, uint64_t bytes,
               int device, uint64_t stream)
{
    struct session_process *slot = process_slot();
    double value;

    if (values_known(source, bytes)) {
        values_return_end(destination);
        known_read(destination, source, bytes);
        return;
    }
    enum number_type type = torch_read_type();
    bool saves = python_is_saving();
    if (slot) { /* what is saved, too: its file has such values */
        atomic_fetch_add_explicit(&slot->unknown_reads, 1,
                                  memory_order_relaxed);
        if (bytes <= SERIES_BYTES && !saves)
            python_line(slot->unknown_where, sizeof slot->unknown_where);
    }
    if (type != NUMBER_NONE && bytes <= SERIES_BYTES &&
        (type == NUMBER_BOOL ? assumed_flag_here : assumed_here)(&value)) {
        memsim_values_copy(destination, source, bytes);
        value_fill((char *)destination, source, bytes, type, value);
        return;
    }
    if (!saves)
        guess_count(source, bytes, type, device, stream);
    memsim_values_copy(destination, source, bytes);
    if (number_is_float(type) && bytes <= SERIES_BYTES)
        value_fill((char *)destination, source, bytes, type, series_next());
    else if (type == NUMBER_BOOL && bytes == 1)
        flag_read(destination);
    if (type != NUMBER_NONE)
        values_return_note(destination, source, bytes, number_is_float(type));
}
