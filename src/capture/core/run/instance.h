/* SPDX-License-Identifier: Apache-2.0
 * The names of this library and of what `memsim run' tells it. A process may
 * have two: libmemsim.so, which stands in for a GPU, and libmemsim-real.so,
 * which records what a GPU does (capture/real) and may itself run on one that
 * is simulated. Files that need the names are compiled for each. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_INSTANCE_H
#define MEMSIM_CAPTURE_CORE_RUN_INSTANCE_H

#include <dlfcn.h>

#include "common/trace/session_mail.h"

#ifdef MEMSIM_REAL
#define INSTANCE_IS_REAL  true
#define INSTANCE_LIBRARY  "libmemsim-real.so"
#define INSTANCE_SESSION  "MEMSIM_REAL_SESSION"
#define INSTANCE_HANDOVER "MEMSIM_REAL_HANDOVER"
#define INSTANCE_MARK     "MEMSIM_REAL"
/* The program's clock, which a simulated GPU moves. */
#define INSTANCE_CLOCK RTLD_DEFAULT
#else
#define INSTANCE_IS_REAL  false
#define INSTANCE_LIBRARY  "libmemsim.so"
#define INSTANCE_SESSION  "MEMSIM_SESSION"
#define INSTANCE_HANDOVER SESSION_HANDOVER
#define INSTANCE_MARK     "MEMSIM"
#define INSTANCE_CLOCK    RTLD_NEXT
#endif

#endif
