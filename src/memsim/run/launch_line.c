/* SPDX-License-Identifier: Apache-2.0
 * The options are those of torch/distributed/run.py (2.5 to 2.15), of
 * accelerate/commands/launch.py (1.x), of deepspeed/launcher/runner.py (0.19),
 * of Open MPI's and MPICH's mpirun(1) and of Slurm's srun(1). An option that no
 * table names takes one value. */
#include "memsim/run/launch_line.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text_begins.h"
#include "common/base/xmalloc.h"

/* What an option says. */
enum say {
    OTHER, /* takes one value */
    FLAG,  /* takes none; so do the next three */
    MODULE,
    NO_PYTHON,
    NO_LOCAL_RANK,
    PAIR, /* takes two */
    NODES,
    LOCAL,
    TASKS,
    MAP_BY,   /* ppr:N:node */
    HOSTS,    /* node1:8,node2:8 */
    HOSTFILE, /* a line for each node, with slots=8 */
    CONFIG,   /* accelerate's */
    ASSIGN,   /* NAME=VALUE for the rank */
};

struct option_words {
    const char *names; /* between spaces */
    enum say say;
};

static const struct option_words torchrun_options[] = {
    {" nnodes ", NODES},
    {" nproc-per-node ", LOCAL},
    {" module m ", MODULE},
    {" no-python ", NO_PYTHON},
    {" standalone run-path help h virtual-local-rank ", FLAG},
    {0},
};

static const struct option_words accelerate_options[] = {
    {" num-machines ", NODES},
    {" num-processes ", TASKS},
    {" config-file ", CONFIG},
    {" module m no-python quiet q debug cpu multi-gpu tpu ipex use-deepspeed "
     "use-fsdp use-megatron-lm use-xpu use-parallelism-config "
     "tpu-cluster no-tpu-cluster tpu-use-sudo enable-cpu-affinity "
     "dynamo-use-fullgraph dynamo-use-dynamic "
     "dynamo-use-regional-compilation help h ",
     FLAG},
    {0},
};

static const struct option_words deepspeed_options[] = {
    {" num-nodes ", NODES},
    {" num-gpus num-accelerators ", LOCAL},
    {" hostfile H ", HOSTFILE},
    {" module ", MODULE},
    {" no-python ", NO_PYTHON},
    {" no-local-rank ", NO_LOCAL_RANK},
    {" no-ssh no-ssh-check force-multi save-pid elastic-training "
     "bind-cores-to-rank help h ",
     FLAG},
    {0},
};

static const struct option_words mpirun_options[] = {
    {" n np c ", TASKS},
    {" N npernode ppn perhost ", LOCAL},
    {" map-by ", MAP_BY},
    {" H host hosts ", HOSTS},
    {" hostfile machinefile f ", HOSTFILE},
    {" x ", ASSIGN},
    {" mca gmca genv env prtemca pmixmca ", PAIR},
    {" allow-run-as-root oversubscribe nooversubscribe tag-output verbose v q "
     "report-bindings bind-to-core bynode byslot display-map l genvall "
     "use-hwthread-cpus timestamp-output nolocal help h ",
     FLAG},
    {0},
};

static const struct option_words srun_options[] = {
    {" nodes N ", NODES},
    {" ntasks n ", TASKS},
    {" ntasks-per-node ", LOCAL},
    {" label l unbuffered u verbose v quiet Q overcommit O oversubscribe s "
     "exclusive kill-on-bad-exit K no-kill k overlap pty preserve-env E "
     "disable-status X contiguous spread-job use-min-nodes exact whole help ",
     FLAG},
    {0},
};

struct launcher {
    const char *names;   /* of the program, between spaces */
    const char *modules; /* of python -m, likewise */
    const char *verb;    /* the first argument; NULL: none */
    const struct option_words *options;
    int environment;
    bool remote;
};

static const struct launcher launchers[] = {
    {" torchrun ", " torch.distributed.run torch.distributed.launch ", NULL,
     torchrun_options, LAUNCH_TORCHRUN, false},
    {" accelerate-launch ", " accelerate.commands.launch ", NULL,
     accelerate_options, LAUNCH_ACCELERATE, false},
    {" accelerate ", " accelerate ", "launch", accelerate_options,
     LAUNCH_ACCELERATE, false},
    {" deepspeed ", " deepspeed.launcher.runner ", NULL, deepspeed_options,
     LAUNCH_DEEPSPEED, false},
    {" mpirun mpiexec orterun mpiexec.hydra ", " ", NULL, mpirun_options,
     LAUNCH_OPENMPI, true},
    {" srun ", " ", NULL, srun_options, LAUNCH_SLURM, true},
};

/* What has been read of a line. */
struct reading {
    const struct launcher *launcher;
    struct launch_line *line;
    bool module, python, local_rank;
    char **assigned; /* NAME=VALUE, at the front of the command's words */
    size_t assigned_count;
};

/* --- names ---------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Whether NAME, LENGTH characters of it, is one of NAMES; "_" is "-". */
static bool is_one_of(const char *name, size_t length, const char *names)
{
    const char *at = names;

    while (*at == ' ' && at[1]) {
        size_t n = strcspn(++at, " "), i = 0;
        while (n == length && i < n &&
               (name[i] == at[i] || (name[i] == '_' && at[i] == '-')))
            i++;
        if (n == length && i == n)
            return true;
        at += n;
    }
    return false;
}

static bool has_word(const char *word, const char *names)
{
    return is_one_of(word, strlen(word), names);
}

static enum say option_say(const struct option_words *rows, const char *name,
                           size_t length)
{
    for (; rows->names; rows++)
        if (is_one_of(name, length, rows->names))
            return rows->say;
    return OTHER;
}

/* Where the options of L begin in COMMAND; 0: it is not L's. */
static int options_start(const struct launcher *l, char **command)
{
    int i = 0;

    if (has_word(base_name(command[0]), l->names))
        i = 1;
    else if (text_begins(base_name(command[0]), "python") && command[1] &&
             !strcmp(command[1], "-m") && command[2] &&
             has_word(command[2], l->modules))
        i = 3;
    if (i && l->verb && (!command[i] || strcmp(command[i++], l->verb)))
        return 0;
    return i;
}

/* --- values --------------------------------------------------------------- */

/* "4", or "2:4", of which all four may come, or Slurm's "2-4". */
static uint32_t number_read(const char *text)
{
    const char *last = strpbrk(text, ":-");
    unsigned long value = strtoul(last ? last + 1 : text, NULL, 10);

    return value < UINT32_MAX ? (uint32_t)value : 0;
}

static void hosts_count(const char *hosts, struct launch_line *line)
{
    line->nodes = 1;
    for (const char *p = hosts; *p; p++)
        line->nodes += *p == ',';
    const char *colon = strchr(hosts, ':');
    if (colon && !line->local)
        line->local = (uint32_t)strtoul(colon + 1, NULL, 10);
}

static void map_by(const char *text, struct launch_line *line)
{
    unsigned local;
    char unit[8];

    if (sscanf(text, "ppr:%u:%7[a-z]", &local, unit) == 2 &&
        !strcmp(unit, "node"))
        line->local = local;
}

/* A line for each node: "worker-1 slots=8". */
static void hostfile_line(const char *text, struct launch_line *line)
{
    const char *slots = strstr(text, "slots=");

    if (text[strspn(text, " \t\n")] == '\0' || *text == '#')
        return;
    line->nodes++;
    if (slots && !line->local)
        line->local = (uint32_t)strtoul(slots + strlen("slots="), NULL, 10);
}

/* accelerate's YAML, of which two lines matter. */
static void config_line(const char *text, struct launch_line *line)
{
    unsigned value;

    if (sscanf(text, "num_machines: %u", &value) == 1 && !line->nodes)
        line->nodes = value;
    if (sscanf(text, "num_processes: %u", &value) == 1 && !line->tasks)
        line->tasks = value;
}

static int file_read(const char *path,
                     void (*each)(const char *, struct launch_line *),
                     struct launch_line *line, struct err *err)
{
    FILE *file = fopen(path, "re");
    size_t capacity = 0;
    char *text = NULL;

    if (!file)
        return err_set(err, "%s: %s; it says how many ranks there are; give "
                            "--nnodes and --nproc-per-node",
                       path, strerror(errno));
    while (getline(&text, &capacity, file) > 0)
        each(text, line);
    free(text);
    fclose(file);
    return 0;
}

static int value_take(struct reading *r, enum say say, char *value,
                      struct err *err)
{
    struct launch_line *line = r->line;

    switch (say) {
    case NODES:
        line->nodes = number_read(value);
        return 0;
    case LOCAL:
        line->local = number_read(value);
        return 0;
    case TASKS:
        line->tasks = number_read(value);
        return 0;
    case MAP_BY:
        map_by(value, line);
        return 0;
    case HOSTS:
        hosts_count(value, line);
        return 0;
    case HOSTFILE: {
        uint32_t given = line->nodes;
        line->nodes = 0;
        int rc = file_read(value, hostfile_line, line, err);
        line->nodes = given ? given : line->nodes;
        return rc;
    }
    case CONFIG:
        return file_read(value, config_line, line, err);
    case ASSIGN:
        if (strchr(value, '='))
            r->assigned[r->assigned_count++] = value;
        return 0;
    default:
        return 0;
    }
}

/* --- a line --------------------------------------------------------------- */

/* The length of the name in OPTION, which has no dashes. *VALUE: the value
 * behind "=", or in a short one of srun's, as in -N16. */
static size_t name_length(const struct reading *r, const char *word,
                          const char *option, const char **value)
{
    const char *equals = strchr(option, '=');

    *value = equals ? equals + 1 : NULL;
    if (r->launcher->environment == LAUNCH_SLURM && word[1] != '-' &&
        option[1] && option[1] != '=') {
        *value = option + 1;
        return 1;
    }
    return equals ? (size_t)(equals - option) : strlen(option);
}

/* Reads the option at COMMAND[*I], and leaves *I at its last word. */
static int option_read(struct reading *r, char **command, int *i,
                       struct err *err)
{
    char *word = command[*i];
    const char *option = word + strspn(word, "-"), *value;
    size_t length = name_length(r, word, option, &value);
    enum say say = option_say(r->launcher->options, option, length);

    r->module = r->module || say == MODULE;
    r->python = r->python && say != NO_PYTHON;
    r->local_rank = r->local_rank && say != NO_LOCAL_RANK;
    if (say >= FLAG && say <= NO_LOCAL_RANK)
        return 0;
    if (say == PAIR) {
        for (int k = 0; k < 2 && command[*i + 1]; k++)
            ++*i;
        return 0;
    }
    if (!value && command[*i + 1])
        value = command[++*i];
    return value ? value_take(r, say, (char *)value, err) : 0;
}

/* The Python of a launcher's PROGRAM: it lies beside it. */
static char *python_of(char *program)
{
    const char *name = base_name(program);

    if (text_begins(name, "python"))
        return program;
    return xasprintf("%.*spython3", (int)(name - program), program);
}

/* What torchrun and deepspeed start: python, -m where it is a module, and what
 * follows. */
static char **python_command(const struct reading *r, char **command, int rest)
{
    static char dash_m[] = "-m", local_rank[] = LAUNCH_LOCAL_RANK;
    char *program = python_of(command[0]);

    if (r->launcher->environment == LAUNCH_DEEPSPEED && r->local_rank) {
        command[rest - 1] = command[rest];
        command[rest] = local_rank;
        rest--;
    }
    if (r->module)
        command[--rest] = dash_m;
    if (r->python)
        command[--rest] = program;
    return command + rest;
}

/* What mpirun and srun start: the command, behind env(1) where there are
 * variables for it. */
static char **plain_command(const struct reading *r, char **command, int rest)
{
    static char env[] = "env";

    for (size_t k = r->assigned_count; k-- > 0;)
        command[--rest] = r->assigned[k];
    if (r->assigned_count)
        command[--rest] = env;
    return command + rest;
}

static char **rank_command(const struct reading *r, char **command, int rest)
{
    switch (r->launcher->environment) {
    case LAUNCH_ACCELERATE:
        return command;
    case LAUNCH_OPENMPI:
    case LAUNCH_SLURM:
        return plain_command(r, command, rest);
    default:
        return python_command(r, command, rest);
    }
}

static int line_read(const struct launcher *l, int i, char **command,
                     struct launch_line *line, struct err *err)
{
    struct reading r = {l, line, false, true, true, command + 1, 0};
    int rc = 0;

    line->environment = l->environment;
    line->remote = l->remote;
    for (; !rc && command[i] && command[i][0] == '-'; i++) {
        if (!strcmp(command[i], "--")) {
            i++;
            break;
        }
        rc = option_read(&r, command, &i, err);
    }
    if (rc)
        return -1;
    if (!command[i])
        return 0;
    line->command = rank_command(&r, command, i);
    return 1;
}

/* A launcher that another one starts once on each node: srun torchrun. */
static int inner_read(struct launch_line *line, struct err *err)
{
    struct launch_line inner;
    uint32_t nodes = line->nodes ? line->nodes : line->tasks;
    bool is_once = line->local == 1 || line->tasks == nodes;
    int rc = is_once ? launch_line_read(&inner, line->command, err) : 0;

    if (rc <= 0)
        return rc;
    if (!inner.nodes || inner.nodes == 1)
        inner.nodes = nodes;
    inner.remote = true;
    *line = inner;
    return 0;
}

int launch_line_read(struct launch_line *line, char **command, struct err *err)
{
    *line = (struct launch_line){.command = command};
    for (size_t k = 0; k < sizeof launchers / sizeof *launchers; k++) {
        int i = options_start(&launchers[k], command);
        int rc = i ? line_read(&launchers[k], i, command, line, err) : 0;
        if (rc > 0 && launchers[k].remote && inner_read(line, err))
            return -1;
        if (rc)
            return rc;
    }
    return 0;
}
