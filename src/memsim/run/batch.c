/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/batch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

static const struct {
    const char *name, *text;
} verdicts[] = {
    [BATCH_FITS] = {"fits", "fits"},
    [BATCH_OOM] = {"oom", "out of memory"},
    [BATCH_CAUGHT] = {"caught-oom", "oom, caught"},
    [BATCH_OVER_LIMIT] = {"over-limit", "over the limit"},
    [BATCH_GROWS] = {"grows", "grows"},
    [BATCH_FAILED] = {"failed", "failed"},
    [BATCH_NONE] = {"none", "no GPU used"},
    [BATCH_TIMEOUT] = {"timeout", "timed out"},
};

void batch_outcome_late(struct batch_outcome *o)
{
    if (o->verdict == BATCH_FITS || batch_verdict_ends(o->verdict))
        o->verdict = BATCH_TIMEOUT;
}

bool batch_verdict_ends(enum batch_verdict verdict)
{
    return verdict == BATCH_FAILED || verdict == BATCH_NONE ||
           verdict == BATCH_TIMEOUT;
}

const char *batch_verdict_text(enum batch_verdict verdict)
{
    return verdicts[verdict].text;
}

const char *batch_verdict_name(enum batch_verdict verdict)
{
    return verdicts[verdict].name;
}

int batch_verdict_find(const char *name)
{
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++)
        if (!strcmp(verdicts[i].name, name))
            return (int)i;
    return -1;
}

bool batch_command_has_place(char *const *command)
{
    for (; *command; command++)
        if (strstr(*command, "{}"))
            return true;
    return false;
}

static char *substitute_batch(const char *text, uint64_t batch)
{
    char *made = xstrdup("");

    for (const char *place; (place = strstr(text, "{}")); text = place + 2) {
        char *longer =
            xasprintf("%s%.*s%" PRIu64, made, (int)(place - text), text, batch);
        free(made);
        made = longer;
    }
    char *whole = xasprintf("%s%s", made, text);
    free(made);
    return whole;
}

char **batch_command(char *const *command, uint64_t batch)
{
    size_t count = 0;

    while (command[count])
        count++;
    char **made = xcalloc(count + 1, sizeof *made);
    for (size_t i = 0; i < count; i++)
        made[i] = substitute_batch(command[i], batch);
    return made;
}

void batch_command_free(char **command)
{
    for (char **p = command; *p; p++)
        free(*p);
    free(command);
}
