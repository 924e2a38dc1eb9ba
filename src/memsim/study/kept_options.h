/* SPDX-License-Identifier: Apache-2.0
 * The options that a run's times were predicted with. They stay in its
 * directory, so that `memsim report DIR` and its like give the run's figures
 * again. */
#ifndef MEMSIM_MEMSIM_STUDY_KEPT_OPTIONS_H
#define MEMSIM_MEMSIM_STUDY_KEPT_OPTIONS_H

#include "memsim/study/options.h"

/* OPTIONS as words "NAME=VALUE", paths absolute; NULL-terminated. */
char **kept_options_words(const struct study_options *options);
void kept_options_words_free(char **words);

/* Words that options borrow from. */
struct kept_options {
    char **words; /* NULL: none */
};

/* Gives OPTIONS what it lacks and the run in DIRECTORY had; OTHER_GPU: another
 * one than the run's is asked for, which the run's fit is not for. The links
 * and quantile of a cluster come with it. A directory without such options
 * gives none. Returns 0 with *KEPT to be given to kept_options_fini after the
 * last use of OPTIONS, or -1 with ERR set. */
int kept_options_recall(struct kept_options *kept, const char *directory,
                        bool other_gpu, struct study_options *options,
                        struct err *err);

/* The same for PATH, a directory or a trace in one; nothing for others. */
int kept_options_recall_beside(struct kept_options *kept, const char *path,
                               bool other_gpu, struct study_options *options,
                               struct err *err);

void kept_options_fini(struct kept_options *kept);

#endif
