/* SPDX-License-Identifier: Apache-2.0
 * libmemsim-study.so: memsim's reports, replays and comparisons without a
 * process. What each function gives is the JSON of the command, memsim-json(5).
 *
 * OPTIONS is a list of the command's long options, "cluster=h100:8" or
 * "advice", that NULL ends; NULL is an empty list. Those that name files to
 * write, or say how a summary looks, are not there.
 *
 * Every function returns 0 with *TEXT set to the JSON, or -1 with *TEXT set to
 * a message; both are to be given to memsim_study_free(). Nothing is printed.
 * One call runs at a time; a second thread waits. A host without memory ends
 * the process. */
#ifndef MEMSIM_MEMSIM_LIBRARY_MEMSIM_STUDY_H
#define MEMSIM_MEMSIM_LIBRARY_MEMSIM_STUDY_H

#ifdef __cplusplus
extern "C" {
#endif

#define MEMSIM_STUDY_VERSION 1 /* of these functions */

int memsim_study_version(void);

/* `memsim report DIRECTORY': a directory of `memsim run -o'. */
int memsim_study_report(const char *directory, const char *const *options,
                        char **text);

/* `memsim replay RECORDING': a trace, a directory, or a snapshot of PyTorch's,
 * on one GPU. */
int memsim_study_replay(const char *recording, const char *const *options,
                        char **text);

/* `memsim diff BEFORE AFTER': of two runs, or files of their JSON. */
int memsim_study_diff(const char *before, const char *after,
                      const char *const *options, char **text);

void memsim_study_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
