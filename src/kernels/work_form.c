/* SPDX-License-Identifier: Apache-2.0
 * Kernels whose work follows from rows, columns and how often each element is
 * read and written. */
#include "kernels/work_internal.h"

static uint64_t number_from(enum work_from from,
                            const struct work_launch *launch)
{
    switch (from) {
    case WORK_ONE:
        return 1;
    case WORK_GRID_X:
        return launch->grid[0];
    case WORK_ALL_THREADS:
        return launch->grid[0] * launch->grid[1] * launch->grid[2] *
               launch->block[0] * launch->block[1] * launch->block[2];
    default:
        return launch->rule == TRACE_RULE_SIZES
                   ? launch->words[from - WORK_WORD_0]
                   : 0;
    }
}

static uint8_t element_bytes(const struct work_form *form,
                             const struct work_kernel *kernel, uint8_t type)
{
    return form->bytes ? form->bytes : kernel->type_bytes[type];
}

bool work_form_apply(const struct work_form *form,
                     const struct work_kernel *kernel,
                     const struct work_launch *launch, struct work *work)
{
    const uint64_t limit = UINT64_C(1) << 44;
    uint64_t rows = number_from((enum work_from)form->rows[0], launch) *
                    number_from((enum work_from)form->rows[1], launch);
    uint64_t columns = number_from((enum work_from)form->columns, launch);
    double read = element_bytes(form, kernel, form->read_type);
    double written = element_bytes(form, kernel, form->written_type);

    if (!rows || !columns || rows > limit || columns > limit / rows ||
        (read <= 0 && written <= 0))
        return false;
    double elements = (double)rows * (double)columns;
    work->rows = (struct work_rows){rows, columns, 1, 0};
    work->elements = rows * columns;
    work->element_bytes = (uint32_t)(read > 0 ? read : written);
    work->flops = elements * (form->flops ? form->flops : 1);
    work->read_bytes =
        read * (elements * form->read + (double)columns * form->column_read) +
        (double)rows * form->row_read;
    work->written_bytes =
        elements * (written * form->written + form->element_written) +
        (double)rows * form->row_written;
    return true;
}
