/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/simulated.h"

#include "common/base/err.h"

int simulated_refuse(const char *file, struct err *err)
{
    return err_set(err,
                   "%s: memsim made these times, nothing was measured; give "
                   "measurements of a GPU, or --simulated to try a fit",
                   file);
}
