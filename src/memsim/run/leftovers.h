/* SPDX-License-Identifier: Apache-2.0
 * What a run leaves behind that was killed together with memsim. */
#ifndef MEMSIM_MEMSIM_RUN_LEFTOVERS_H
#define MEMSIM_MEMSIM_RUN_LEFTOVERS_H

/* Removes the private directories of this user's runs in TEMPORARY of which no
 * process is left, and the checkpoints that those runs made. */
void leftovers_remove(const char *temporary);

#endif
