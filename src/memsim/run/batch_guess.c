/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/batch_guess.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/run/batch_cache.h"
#include "memsim/run/batch_search.h"

#define SEARCH_TO 65536 /* fit-batch's own limit */

static bool is_number(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    return digits && !text[digits];
}

/* Where the number of the batch stands in ARGUMENT, or in the one after it: at
 * its end; NULL: it is no batch. */
static const char *number_find(const char *argument, const char *after)
{
    const char *equals = strchr(argument, '=');
    size_t length = equals ? (size_t)(equals - argument) : strlen(argument);
    const char *found = strcasestr(argument, "batch");

    if (!found || found >= argument + length)
        return NULL;
    if (equals)
        return is_number(equals + 1) ? equals + 1 : NULL;
    return *argument == '-' && after && is_number(after) ? after : NULL;
}

char **batch_guess(char *const *command)
{
    size_t count = 0, found = 0, at = 0;
    const char *number = NULL;

    for (; command[count]; count++) {
        const char *n = number_find(command[count], command[count + 1]);

        if (!n)
            continue;
        found++;
        number = n;
        at = n == command[count + 1] ? count + 1 : count;
    }
    if (found != 1)
        return NULL;
    char **made = xcalloc(count + 1, sizeof *made);
    for (size_t i = 0; i < count; i++)
        made[i] = i == at ? xasprintf("%.*s{}", (int)(number - command[i]),
                                      command[i])
                          : xstrdup(command[i]);
    return made;
}

char *batch_guess_option(char *const *template)
{
    size_t i = 0;

    while (!strstr(template[i], "{}"))
        i++;
    if (!strcmp(template[i], "{}"))
        return xstrdup(template[i - 1]);
    return xasprintf("%.*s", (int)strcspn(template[i], "={"), template[i]);
}

/* A word as a shell reads it. */
static void write_word(FILE *out, const char *word)
{
    size_t plain = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                                "UVWXYZ0123456789_-+=./:,@%{}");

    if (*word && !word[plain]) {
        fprintf(out, " %s", word);
        return;
    }
    fputs(" '", out);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", out);
        else
            fputc(*word, out);
    fputc('\'', out);
}

void batch_command_write(char *const *command, FILE *out)
{
    for (; *command; command++)
        write_word(out, *command);
}

char *batch_guess_text(const struct job *job, char *const *template)
{
    const struct job_options *o = &job->options;
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    if (!out)
        abort(); /* only for lack of memory */
    fputs("memsim fit-batch", out);
    if (strcmp(o->gpu, JOB_GPU)) {
        fputs(" --gpu", out);
        write_word(out, o->gpu);
    }
    if (o->gpus != 1)
        fprintf(out, " --gpus %u", o->gpus);
    if (o->memory_bytes)
        fprintf(out, " --memory %" PRIu64, o->memory_bytes);
    fputs(" --", out);
    batch_command_write(template, out);
    fclose(out);
    return text;
}

static bool known_outcome(const struct batch_past *past, const struct job *job,
                          char *const *template, uint64_t batch,
                          struct batch_outcome *o)
{
    struct job filled = *job;

    filled.command = batch_command(template, batch);
    char *key = batch_key(&filled, past->programs, past->environment);
    bool found = batch_cache_load(past->directory, key, o);
    free(key);
    batch_command_free(filled.command);
    return found;
}

/* The search again, as far as the cache goes. */
uint64_t batch_known(const struct batch_past *past, const struct job *job,
                     char *const *template)
{
    struct batch_search s;
    struct batch_outcome o;
    uint64_t batch, largest = 0;

    if (batch_search_init(&s, 1, SEARCH_TO, 1))
        return 0;
    s.capacity_bytes = batch_capacity(job);
    while ((batch = batch_search_next(&s)) &&
           known_outcome(past, job, template, batch, &o))
        batch_search_tell(&s, o.verdict == BATCH_FITS, o.peak_allocated_bytes,
                          o.peak_used_bytes);
    if (!batch)
        largest = batch_search_largest(&s);
    batch_search_fini(&s);
    return largest;
}
