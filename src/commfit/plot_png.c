/* SPDX-License-Identifier: Apache-2.0
 * PNG through what draws SVG already. */
#include "commfit/plot_png.h"
#include "common/base/err.h"
#include "common/base/file_write.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each reads SVG from its standard input and writes PNG to its output. */
static char *const converters[][5] = {
    {"rsvg-convert", "--zoom=1.5"},
    {"inkscape", "--pipe", "--export-type=png", "--export-dpi=144",
     "--export-filename=-"},
};

#define CONVERTERS (sizeof converters / sizeof *converters)
#define ARGUMENTS  (sizeof *converters / sizeof **converters)

/* The SVG as an open file at its beginning; NULL with errno set. */
static FILE *input_make(const char *svg, size_t length)
{
    FILE *input = tmpfile();

    if (!input)
        return NULL;
    if (fwrite(svg, 1, length, input) != length || fflush(input) ||
        lseek(fileno(input), 0, SEEK_SET)) {
        fclose(input);
        return NULL;
    }
    return input;
}

/* The temporary files that a converter reads and writes. */
struct files {
    FILE *svg, *png;
};

/* SIGXFSZ, which we ignore, gets its default action in the converter. */
static int converter_start(pid_t *child, char *const *argv,
                           const struct files *files)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t signals;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fileno(files->svg),
                                     STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(files->png),
                                     STDOUT_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    sigemptyset(&signals);
    sigaddset(&signals, SIGXFSZ);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    int error =
        posix_spawnp(child, argv[0], &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Returns 0, or the errno value where it could not be started, or -1 where it
 * ended badly. */
static int run_converter(char *const *converter, const struct files *files)
{
    char *argv[ARGUMENTS + 1] = {NULL};
    int status;
    pid_t child;

    for (size_t i = 0; i < ARGUMENTS; i++)
        argv[i] = converter[i];
    int error = converter_start(&child, argv, files);
    if (error)
        return error;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -1;
}

static int convert_any(const struct files *files, const char *path,
                       struct err *err)
{
    int rc = ENOENT;
    size_t i;

    for (i = 0; i < CONVERTERS && rc == ENOENT; i++)
        rc = run_converter(converters[i], files);
    if (rc == ENOENT)
        return err_set(err,
                       "%s: a PNG takes rsvg-convert or inkscape, and neither "
                       "is here; install librsvg2-bin, or give FILE.svg",
                       path);
    if (rc)
        return err_set(err, "%s: %s failed%s%s", path, converters[i - 1][0],
                       rc > 0 ? ": " : "", rc > 0 ? strerror(rc) : "");
    return 0;
}

static void copy_png(const void *what, FILE *out)
{
    FILE *png = ((const struct files *)what)->png;
    char buffer[1 << 14];

    rewind(png);
    for (size_t got; (got = fread(buffer, 1, sizeof buffer, png));)
        fwrite(buffer, 1, got, out);
}

int plot_png_write(const char *svg, size_t length, const char *path,
                   struct err *err)
{
    struct files files = {.svg = input_make(svg, length), .png = tmpfile()};
    int rc;

    if (!files.svg || !files.png)
        rc = err_set(err, "%s: no temporary file: %s", path, strerror(errno));
    else
        rc = convert_any(&files, path, err);
    if (!rc)
        rc = file_write(copy_png, &files, path, err);
    if (files.svg)
        fclose(files.svg);
    if (files.png)
        fclose(files.png);
    return rc;
}
