/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/version.h"

#include "memsim_version.h" /* made by the Makefile */

const char *version_text(void)
{
    return MEMSIM_VERSION;
}
