/* SPDX-License-Identifier: Apache-2.0
 * PNG through what draws SVG already. */
#include "commfit/plot_png.h"
#include "common/base/err.h"
#include "common/base/xmalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each reads SVG from its standard input; the file's name comes last. */
static char *const converters[][6] = {
    {"rsvg-convert", "--zoom=1.5", "-o"},
    {"inkscape", "--pipe", "--export-type=png", "--export-dpi=144", "-o"},
};

#define CONVERTERS (sizeof converters / sizeof *converters)

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

/* Returns 0, or the errno value where it could not be started, or -1 where it
 * ended badly. */
static int convert(char *const *converter, FILE *input, char *output)
{
    char *argv[8] = {NULL};
    posix_spawn_file_actions_t actions;
    size_t count = 0;
    int status;
    pid_t child;

    for (; converter[count]; count++)
        argv[count] = converter[count];
    argv[count] = output;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fileno(input), STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null",
                                     O_WRONLY, 0);
    int error = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        return error;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -1;
}

static int convert_any(FILE *input, char *output, const char *path,
                       struct err *err)
{
    int rc = ENOENT;
    size_t i;

    for (i = 0; i < CONVERTERS && rc == ENOENT; i++)
        rc = convert(converters[i], input, output);
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

int plot_png_write(const char *svg, size_t length, const char *path,
                   struct err *err)
{
    FILE *input = input_make(svg, length);
    char *temporary = xasprintf("%s.XXXXXX", path);
    int fd = input ? mkstemp(temporary) : -1; /* mode 0600 */
    int rc = -1;

    if (fd < 0) {
        err_set(err, "%s: %s", path, strerror(errno));
        goto close_input;
    }
    close(fd);
    rc = convert_any(input, temporary, path, err);
    if (!rc && rename(temporary, path))
        rc = err_set(err, "%s: %s", path, strerror(errno));
    if (rc)
        unlink(temporary);
close_input:
    if (input)
        fclose(input);
    free(temporary);
    return rc;
}
