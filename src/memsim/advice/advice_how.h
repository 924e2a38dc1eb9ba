/* SPDX-License-Identifier: Apache-2.0
 * What to change in a script, by the framework that it uses. */
#ifndef MEMSIM_MEMSIM_ADVICE_ADVICE_HOW_H
#define MEMSIM_MEMSIM_ADVICE_ADVICE_HOW_H

#include "memsim/advice/change.h"

/* How CHANGE, which is one alone, is made in a script; FRAMEWORK is a name as
 * sitecustomize.py gives it, "" for plain PyTorch or where it is not known. A
 * literal; NULL: what the advice is called says it. */
const char *advice_how(const struct change *change, const char *framework);

#endif
