/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/warm.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/xmalloc.h"
#include "memsim/run/file_tree.h"

#define VARIABLE "MEMSIM_WARM"
#define EAGER    "eager" /* more than one run will come */

static char *folder; /* NULL: there is none of ours */

void warm_begin(void)
{
    const char *place = getenv("TMPDIR");

    if (folder || getenv(VARIABLE))
        return;
    char *made =
        xasprintf("%s/memsim-warm-XXXXXX", place && *place ? place : "/tmp");
    if (!mkdtemp(made)) {
        free(made);
        return;
    }
    char *eager = xasprintf("%s/" EAGER, made);
    int fd = open(eager, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    free(eager);
    if (fd >= 0)
        close(fd);
    setenv(VARIABLE, made, 1);
    folder = made;
}

void warm_end(void)
{
    if (!folder)
        return;
    unsetenv(VARIABLE);
    file_tree_remove(folder);
    free(folder);
    folder = NULL;
}
