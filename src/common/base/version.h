/* SPDX-License-Identifier: Apache-2.0
 * The version of our programs. */
#ifndef MEMSIM_COMMON_BASE_VERSION_H
#define MEMSIM_COMMON_BASE_VERSION_H

/* The release and, if it was built in a repository, the commit:
 * "0.2.0 (28b82a1)"; "-dirty" follows the commit if a file was changed. */
const char *version_text(void);

#endif
