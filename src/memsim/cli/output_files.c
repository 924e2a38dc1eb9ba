/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/output_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file_write.h"
#include "common/base/text_clean.h"
#include "common/base/xmalloc.h"

/* What an option of output_options names. */
static const struct output_file {
    const char *option;
    size_t path;       /* its member in output_options */
    size_t writer;     /* likewise in output_writers; ELSEWHERE */
    bool is_directory; /* which cannot be "-" */
    const char *said;  /* of the file, on the terminal; NULL: nothing */
} table[] = {
#define PATH(member) offsetof(struct output_options, member)
#define WRITER(member) offsetof(struct output_writers, member)
#define ELSEWHERE SIZE_MAX /* it needs more than the report */
    {"--json", PATH(json), WRITER(json), .said = NULL},
    {"--html", PATH(html), WRITER(html), .said = "the report's page is"},
    {"--perfetto", PATH(perfetto), WRITER(perfetto),
     .said = "ui.perfetto.dev shows"},
    {"--flame", PATH(flame), WRITER(flame), .said = NULL},
    {"--snapshot", PATH(snapshot), ELSEWHERE, .said = NULL},
    {"--kineto", PATH(study.kineto), ELSEWHERE, .said = NULL},
    {"--markdown", PATH(markdown), ELSEWHERE, .said = NULL},
    {"--chakra", PATH(study.chakra), ELSEWHERE, .is_directory = true},
};

#define FILES (sizeof table / sizeof *table)
_Static_assert(FILES == OUTPUT_TARGETS, "list has room for each");

static bool is_stdout(const char *path)
{
    return path && !strcmp(path, "-");
}

static const char *path_of(const struct output_options *options,
                           const struct output_file *file)
{
    const char *path;

    memcpy(&path, (const char *)options + file->path, sizeof path);
    return path;
}

size_t output_targets(const struct output_options *options,
                      struct output_target list[OUTPUT_TARGETS])
{
    for (size_t i = 0; i < FILES; i++)
        list[i] =
            (struct output_target){table[i].option, path_of(options, &table[i]),
                                   table[i].is_directory};
    return FILES;
}

bool output_targets_any(const struct output_options *options)
{
    for (size_t i = 0; i < FILES; i++)
        if (path_of(options, &table[i]))
            return true;
    return false;
}

bool output_targets_use_stdout(const struct output_target *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_stdout(list[i].path))
            return true;
    return false;
}

/* Of two options with one name the later file would replace the earlier. */
static int check_pair(const struct output_target *a,
                      const struct output_target *b, struct err *err)
{
    struct stat st;

    if (!a->path || !b->path || strcmp(a->path, b->path))
        return 0;
    if (is_stdout(a->path))
        return err_set(err, "%s and %s: only one of them can be -", a->option,
                       b->option);
    if (!stat(a->path, &st) && !S_ISREG(st.st_mode))
        return 0;
    return err_set(err, "%s and %s: both name the file %s", a->option,
                   b->option, a->path);
}

/* A file that cannot be made is found before anything is run for it. */
static int check_place(const struct output_target *target, struct err *err)
{
    struct stat st;

    if (!target->path || target->is_directory || is_stdout(target->path))
        return 0;
    if (!stat(target->path, &st))
        return S_ISDIR(st.st_mode)
                   ? err_set(err, "%s: %s is a directory; give a file",
                             target->option, target->path)
                   : 0;
    const char *slash = strrchr(target->path, '/');
    char *folder = slash ? xasprintf("%.*s", (int)(slash - target->path) + 1,
                                     target->path)
                         : xstrdup(".");
    int rc = access(folder, W_OK | X_OK)
                 ? err_set(err, "%s: cannot write it: %s", target->path,
                           strerror(errno))
                 : 0;
    free(folder);
    return rc;
}

int output_targets_check(const struct output_target *list, size_t count,
                         struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].is_directory && is_stdout(list[i].path))
            return err_set(err, "%s: needs a directory, not -",
                           list[i].option);
        if (check_place(&list[i], err))
            return -1;
        for (size_t j = 0; j < i; j++)
            if (check_pair(&list[j], &list[i], err))
                return -1;
    }
    return 0;
}

static bool is_run_file(const char *name)
{
    return !strcmp(name, SESSION_FILE) || !strcmp(name, SESSION_COMMAND) ||
           !strcmp(name, RUN_RANKS) || !strcmp(name, SESSION_AXES) ||
           !strcmp(name, SESSION_SCAN) ||
           !strcmp(name, RUN_OPTIONS) || !strcmp(name, RUN_INVOCATION) ||
           run_is_trace(name);
}

static int check_file_input(const struct output_target *list, size_t count,
                            const char *input, struct err *err)
{
    for (size_t i = 0; i < count; i++)
        if (file_write_check(list[i].option, list[i].path, input, err))
            return -1;
    return 0;
}

static int check_directory_input(const struct output_target *list, size_t count,
                                 const char *path, DIR *dir, struct err *err)
{
    int rc = 0;

    for (const struct dirent *e; !rc && (e = readdir(dir));) {
        if (!is_run_file(e->d_name))
            continue;
        char *file = xasprintf("%s/%s", path, e->d_name);
        rc = check_file_input(list, count, file, err);
        free(file);
    }
    return rc;
}

int output_targets_check_input(const struct output_target *list, size_t count,
                               const char *input, struct err *err)
{
    DIR *dir = input ? opendir(input) : NULL;

    if (!dir)
        return input ? check_file_input(list, count, input, err) : 0;
    int rc = check_directory_input(list, count, input, dir, err);
    closedir(dir);
    return rc;
}

static void tell_file(const char *said, const char *path)
{
    char shown[1024];

    text_quote(shown, sizeof shown, path);
    fprintf(stderr, "memsim: %s %s\n", said, shown);
}

static int write_file(const struct output_file *file, const char *path,
                      const struct output_writers *writers, const void *report,
                      struct err *err)
{
    const struct report_ops *ops;

    memcpy(&ops, (const char *)writers + file->writer, sizeof ops);
    return ops ? report_write(ops, report, path, err)
               : err_set(err, "%s is of a run, not of a replay", file->option);
}

int output_files(const struct output_options *options,
                 const struct output_writers *writers, const void *report,
                 struct err *err)
{
    for (size_t i = 0; i < FILES; i++) {
        const char *path = path_of(options, &table[i]);

        if (!path || table[i].writer == ELSEWHERE)
            continue;
        if (write_file(&table[i], path, writers, report, err))
            return -1;
        if (table[i].said && !options->quiet && !is_stdout(path))
            tell_file(table[i].said, path);
    }
    return 0;
}
