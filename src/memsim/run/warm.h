/* SPDX-License-Identifier: Apache-2.0
 * Several runs of one command share a Python that has imported PyTorch: the
 * folder of capture/py/warm.py. */
#ifndef MEMSIM_MEMSIM_RUN_WARM_H
#define MEMSIM_MEMSIM_RUN_WARM_H

/* Makes the folder and names it in the environment, as MEMSIM_WARM. Where that
 * is set, if only to nothing, it stays as it is, as where no folder can be
 * made: then each run imports PyTorch itself. */
void warm_begin(void);

/* Removes the folder: its servers end when no run needs them. */
void warm_end(void);

#endif
