/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/library/memsim_study.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/share.h"
#include "common/base/xmalloc.h"
#include "memsim/library/questions.h"

#define EXPORTED __attribute__((visibility("default")))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The data lies beside this library, not beside the program. */
static void find_share(void)
{
    char path[PATH_MAX];
    Dl_info info;

    if (!dladdr((void *)memsim_study_version, &info) ||
        !realpath(info.dli_fname, path))
        return;
    *strrchr(path, '/') = '\0';
    share_beside(path);
}

/* Asks QUESTION about COUNT operands. */
static int answer_question(const struct library_question *question,
                           const char *const *operands,
                           const char *const *options, char **text)
{
    struct err err = {""};
    size_t bytes;

    *text = NULL;
    pthread_once(&once, find_share);
    pthread_mutex_lock(&lock);
    FILE *out = open_memstream(text, &bytes);
    int rc = out ? library_ask(question, operands, options, out, &err)
                 : err_set(&err, "no memory for the report");
    if (out)
        fclose(out);
    pthread_mutex_unlock(&lock);
    if (rc) {
        free(*text);
        *text = xstrdup(err.text);
    }
    return rc;
}

EXPORTED int memsim_study_version(void)
{
    return MEMSIM_STUDY_VERSION;
}

EXPORTED int memsim_study_report(const char *directory,
                                 const char *const *options, char **text)
{
    return answer_question(&library_report, &directory, options, text);
}

EXPORTED int memsim_study_replay(const char *recording,
                                 const char *const *options, char **text)
{
    return answer_question(&library_replay, &recording, options, text);
}

EXPORTED int memsim_study_diff(const char *before, const char *after,
                               const char *const *options, char **text)
{
    return answer_question(&library_diff, (const char *const[]){before, after},
                           options, text);
}

EXPORTED void memsim_study_free(char *text)
{
    free(text);
}
