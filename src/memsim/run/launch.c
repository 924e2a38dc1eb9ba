/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/launch.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/xmalloc.h"
#include "common/trace/session.h"
#include "memsim/run/ended.h"
#include "memsim/run/launch_line.h"
#include "memsim/run/ranks.h"

#define REAL_RANKS   SESSION_DEVICES /* a GPU for each */
#define END_SECONDS  10 /* from SIGTERM to SIGKILL, where a rank failed */
#define RANK_DIED    125 /* the job's status where a rank died of a signal */
#define LAUNCH_WORDS 7  /* before the rank's command */
#define NO_AXES      "-"

/* --- what is asked for ---------------------------------------------------- */

static int ranks_find(struct launch *l, const char *text, struct err *err)
{
    if (!text || !strcmp(text, "auto")) {
        l->chooses = true;
        rank_axes_ranks(&l->axes, l->world, &l->ranks);
        return 0;
    }
    if (!strcmp(text, "all")) {
        for (uint32_t i = 0; i < l->world && i <= REAL_RANKS; i++)
            rank_set_add(&l->ranks, i);
    } else if (rank_set_parse(&l->ranks, text, l->world, "--ranks", err)) {
        return -1;
    }
    if (!rank_set_has(&l->ranks, 0))
        return err_set(err, "--ranks %s: rank 0 is missing; the others meet at "
                            "it",
                       text);
    if (l->ranks.count > REAL_RANKS)
        return err_set(err, "--ranks %s: at most %d ranks can be run", text,
                       REAL_RANKS);
    return 0;
}

/* COMMAND behind LAUNCH_LINE_ROOM free words. */
static char **words_copy(char **command)
{
    size_t count = 0;

    while (command[count])
        count++;
    char **words = xcalloc(LAUNCH_LINE_ROOM + count + 1, sizeof *words);
    memcpy(words + LAUNCH_LINE_ROOM, command, count * sizeof *words);
    return words;
}

/* Sets NODES and LOCAL of a launcher's LINE where it has them otherwise: of so
 * many tasks. Returns whether memsim takes its place. */
static bool line_conclude(struct launch_line *line)
{
    if (line->tasks && !line->local && line->nodes)
        line->local = (line->tasks + line->nodes - 1) / line->nodes;
    if (line->tasks && !line->local)
        line->local = line->tasks < SESSION_DEVICES ? line->tasks : 8;
    line->local = line->local ? line->local : 1;
    if (line->tasks && !line->nodes)
        line->nodes = (line->tasks + line->local - 1) / line->local;
    line->nodes = line->nodes ? line->nodes : 1;
    return line->nodes > 1 || line->remote;
}

static int size_find(struct launch *launch, uint32_t nodes, uint32_t local,
                     uint32_t tasks, struct err *err)
{
    uint64_t world = tasks ? tasks : (uint64_t)nodes * local;

    if (!local || local > SESSION_DEVICES)
        return err_set(err, "--nproc-per-node: 1 to %d ranks of a node are "
                            "possible",
                       SESSION_DEVICES);
    if (world > RUN_RANKS_MAX || !nodes)
        return err_set(err, "--nnodes: 1 to %u ranks are possible",
                       RUN_RANKS_MAX);
    if (world > (uint64_t)nodes * local)
        return err_set(err, "%s: %u ranks do not fit on %u nodes of %u",
                       launch->words[LAUNCH_LINE_ROOM], tasks, nodes, local);
    launch->local = local;
    launch->world = (uint32_t)world;
    return 0;
}

int launch_find(struct launch *launch, const struct launch_options *options,
                char **command, struct err *err)
{
    struct launch_line line;
    char **words = words_copy(command);

    *launch = (struct launch){.words = words};
    int is_launcher = launch_line_read(&line, words + LAUNCH_LINE_ROOM, err);
    if (is_launcher < 0)
        return -1;
    launch->command = line.command;
    launch->environment =
        options->environment ? options->environment : line.environment;
    bool given = options->nodes || options->local;
    if (!given && is_launcher)
        given = line_conclude(&line) || options->ranks;
    else
        line.tasks = 0;
    if (!given && options->ranks)
        return err_set(err, "how many ranks has the job? Give --nnodes and "
                            "--nproc-per-node");
    if (!given)
        return 0;
    if (options->nodes || options->local) {
        line.nodes = options->nodes ? options->nodes : 1;
        line.local = options->local ? options->local : 1;
    }
    if (size_find(launch, line.nodes, line.local, line.tasks, err))
        return -1;
    return ranks_find(launch, options->ranks, err);
}

void launch_fini(struct launch *launch)
{
    rank_set_fini(&launch->ranks);
    free(launch->words);
}

int launch_classes_write(const struct launch *launch, const char *directory,
                         struct err *err)
{
    struct run_ranks classes = {0};
    struct rank_set *members =
        xcalloc(launch->ranks.count, sizeof *members);
    uint32_t *stands =
        rank_axes_stands(&launch->axes, &launch->ranks, launch->world);
    size_t i = 0;

    for (uint32_t r = 0; r < launch->world; r++) {
        size_t at = 0;
        for (uint32_t k = 0;
             rank_set_next(&launch->ranks, k, &k) && k < stands[r]; k++)
            at++;
        rank_set_add(&members[at], r);
    }
    for (uint32_t r = 0; rank_set_next(&launch->ranks, r, &r); r++, i++) {
        run_classes_add(&classes, r, &members[i]);
        rank_set_fini(&members[i]);
    }
    free(members);
    free(stands);
    int rc = run_classes_write(&classes, directory, err);
    run_ranks_fini(&classes);
    return rc;
}

static const char *at_place(const char *place)
{
    return *place ? " at " : "";
}

static const char *axis_words(const struct rank_axis *axis)
{
    if (!strcmp(axis->kind, RANK_AXIS_MESSAGES))
        return "send each other messages";
    if (!strcmp(axis->kind, RANK_AXIS_GPUS))
        return "use one another's GPUs";
    return "send each other unequal shares";
}

/* What has been found out since BEFORE. */
static char *axes_news(const struct rank_axes *axes,
                       const struct rank_axes *before)
{
    char *text = xstrdup("");

    for (uint32_t i = before->count; i < axes->count; i++) {
        const struct rank_axis *x = &axes->axis[i];
        char *more = xasprintf(
            "%s%sranks that are %u apart, in groups of %u, %s%s%s", text,
            *text ? "; " : "", x->stride, x->size,
            axis_words(x),
            at_place(x->place), x->place);
        free(text);
        text = more;
    }
    if (axes->alone_count > before->alone_count) {
        char *more = xasprintf("%s%sranks do what the others do not%s%s", text,
                               *text ? "; " : "", at_place(axes->alone_place),
                               axes->alone_place);
        free(text);
        text = more;
    }
    return text;
}

bool launch_is_again(struct launch *launch, const char *directory, char **text)
{
    struct rank_axes before = launch->axes;

    *text = NULL;
    if (!launch->chooses || !rank_axes_read(&launch->axes, directory,
                                            launch->world, REAL_RANKS))
        return false;
    char *why = axes_news(&launch->axes, &before);
    rank_set_fini(&launch->ranks);
    rank_axes_ranks(&launch->axes, launch->world, &launch->ranks);
    char *ranks = rank_set_text(&launch->ranks);
    *text = xasprintf("%s; running again with ranks %s", why, ranks);
    free(ranks);
    free(why);
    return true;
}

bool launch_learn(struct launch *launch, const char *directory)
{
    return launch->world && !launch->chooses &&
           rank_axes_read(&launch->axes, directory, launch->world, REAL_RANKS);
}

void launch_settle(struct launch *launch)
{
    launch->chooses = false;
    launch->axes = (struct rank_axes){.count = 0};
}

char **launch_command(const struct launch *launch)
{
    size_t words = 0;

    while (launch->command[words])
        words++;
    char **command = xcalloc(words + LAUNCH_WORDS + 1, sizeof *command);
    command[0] = xstrdup("/proc/self/exe");
    command[1] = xstrdup(LAUNCH_COMMAND);
    command[2] = rank_set_text(&launch->ranks);
    command[3] = xasprintf("%u", launch->world);
    command[4] = xasprintf("%u", launch->local);
    command[5] = xasprintf("%d", launch->environment);
    command[6] = launch->chooses ? rank_axes_text(&launch->axes)
                                 : xstrdup(NO_AXES);
    for (size_t i = 0; i < words; i++)
        command[LAUNCH_WORDS + i] = xstrdup(launch->command[i]);
    return command;
}

void launch_command_free(char **command)
{
    for (char **word = command; word && *word; word++)
        free(*word);
    free(command);
}

/* --- starting the ranks --------------------------------------------------- */

struct started {
    uint32_t rank;
    pid_t pid; /* 0: it has ended */
};

static void set_variable(const char *name, uint32_t value)
{
    char text[16];

    snprintf(text, sizeof text, "%u", value);
    setenv(name, text, 1);
}

/* A port that is free now. */
static uint32_t free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool bound = fd >= 0 && !bind(fd, (struct sockaddr *)&address, length) &&
                 !getsockname(fd, (struct sockaddr *)&address, &length);

    if (fd >= 0)
        close(fd);
    return bound ? ntohs(address.sin_port) : 29500;
}

/* What RANK sees of the launcher that it expects. */
static void rank_environment(const struct launch *l, uint32_t rank)
{
    uint32_t node = rank / l->local, nodes = (l->world - 1) / l->local + 1;
    uint32_t local_rank = rank % l->local;
    const struct {
        int environment;
        const char *name;
        uint32_t value;
    } variables[] = {
        {LAUNCH_TORCHRUN, "RANK", rank},
        {LAUNCH_TORCHRUN, "LOCAL_RANK", local_rank},
        {LAUNCH_TORCHRUN, "WORLD_SIZE", l->world},
        {LAUNCH_TORCHRUN, "LOCAL_WORLD_SIZE", l->local},
        {LAUNCH_TORCHRUN, "GROUP_RANK", node},
        {LAUNCH_TORCHRUN, "GROUP_WORLD_SIZE", nodes},
        {LAUNCH_TORCHRUN, "ROLE_RANK", rank},
        {LAUNCH_TORCHRUN, "ROLE_WORLD_SIZE", l->world},
        {LAUNCH_SLURM, "SLURM_PROCID", rank},
        {LAUNCH_SLURM, "SLURM_LOCALID", local_rank},
        {LAUNCH_SLURM, "SLURM_NTASKS", l->world},
        {LAUNCH_SLURM, "SLURM_NPROCS", l->world},
        {LAUNCH_SLURM, "SLURM_STEP_NUM_TASKS", l->world},
        {LAUNCH_SLURM, "SLURM_NTASKS_PER_NODE", l->local},
        {LAUNCH_SLURM, "SLURM_NODEID", node},
        {LAUNCH_SLURM, "SLURM_NNODES", nodes},
        {LAUNCH_SLURM, "SLURM_JOB_NUM_NODES", nodes},
        {LAUNCH_SLURM, "SLURM_JOB_ID", 1},
        {LAUNCH_OPENMPI, "OMPI_COMM_WORLD_RANK", rank},
        {LAUNCH_OPENMPI, "OMPI_COMM_WORLD_SIZE", l->world},
        {LAUNCH_OPENMPI, "OMPI_COMM_WORLD_LOCAL_RANK", local_rank},
        {LAUNCH_OPENMPI, "OMPI_COMM_WORLD_NODE_RANK", local_rank},
        {LAUNCH_OPENMPI, "OMPI_COMM_WORLD_LOCAL_SIZE", l->local},
        {LAUNCH_OPENMPI, "OMPI_UNIVERSE_SIZE", l->world},
        {LAUNCH_OPENMPI, "PMI_RANK", rank}, /* MPICH's */
        {LAUNCH_OPENMPI, "PMI_SIZE", l->world},
        {LAUNCH_OPENMPI, "MPI_LOCALRANKID", local_rank},
        {LAUNCH_OPENMPI, "MPI_LOCALNRANKS", l->local},
        {LAUNCH_DEEPSPEED, "LOCAL_SIZE", l->local},
        {LAUNCH_DEEPSPEED, "CROSS_RANK", node},
        {LAUNCH_DEEPSPEED, "CROSS_SIZE", nodes},
        {LAUNCH_ACCELERATE, "MEMSIM_LAUNCHER", 1}, /* py/launcher.py */
    };

    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (!variables[i].environment ||
            variables[i].environment == l->environment)
            set_variable(variables[i].name, variables[i].value);
}

/* Writes LOCAL_RANK where the command has "{}" for it. */
static void rank_words(const struct launch *l, uint32_t rank)
{
    for (char **word = l->command; *word; word++)
        if (!strcmp(*word, LAUNCH_LOCAL_RANK))
            *word = xasprintf("--local_rank=%u", rank % l->local);
}

/* Tells the ranks which ones are run (py/world.py), each by its number. */
static void ranks_tell(const struct rank_set *ranks)
{
    char *text = xmalloc((size_t)ranks->count * sizeof "4294967295,");
    char *at = text;

    *at = '\0';
    for (uint32_t r = 0; rank_set_next(ranks, r, &r); r++)
        at += sprintf(at, "%s%" PRIu32, at > text ? "," : "", r);
    setenv("MEMSIM_RANKS", text, 1);
    free(text);
}

/* What all ranks see. */
static void common_environment(const struct launch *l, const char *axes)
{
    setenv("MASTER_ADDR", "127.0.0.1", 0);
    if (!getenv("MASTER_PORT"))
        set_variable("MASTER_PORT", free_port());
    setenv("OMP_NUM_THREADS", "1", 0);
    if (l->environment == LAUNCH_SLURM) {
        setenv("SLURM_JOB_NODELIST", "localhost", 1);
        setenv("SLURM_NODELIST", "localhost", 1);
        setenv("SLURM_LAUNCH_NODE_IPADDR", "127.0.0.1", 1);
    }
    if (l->ranks.count < l->world)
        ranks_tell(&l->ranks);
    if (strcmp(axes, NO_AXES))
        setenv("MEMSIM_AXES", axes, 1);
}

static pid_t rank_start(const struct launch *l, uint32_t rank)
{
    pid_t pid = fork();

    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    rank_environment(l, rank);
    rank_words(l, rank);
    execvp(l->command[0], l->command);
    fprintf(stderr, "memsim: %s: %s\n", l->command[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

static struct started *find_started(struct started *all, size_t count,
                                    pid_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].pid == pid)
            return &all[i];
    return NULL;
}

static void signal_all(const struct started *all, size_t count, int signal)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].pid > 0)
            kill(all[i].pid, signal);
}

static volatile sig_atomic_t alarmed;

static void on_alarm(int signal)
{
    (void)signal;
    alarmed = 1;
}

/* A rank that died of a signal has no status of its own. What a user or a batch
 * system sends to the whole job is what the job ends with, as in a shell. */
static int rank_code(int status)
{
    if (!WIFSIGNALED(status))
        return ended_status(status);
    switch (WTERMSIG(status)) {
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
    case SIGQUIT:
        return ended_status(status);
    default:
        return RANK_DIED;
    }
}

/* Says why the ranks besides RANK are stopped. */
static void rank_end_say(uint32_t rank, int status)
{
    char how[64];

    if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "died of signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(how, sizeof how, "ended with status %d", WEXITSTATUS(status));
    fprintf(stderr, "memsim: rank %u %s; the other ranks are stopped\n", rank,
            how);
}

/* Waits for all; when one fails, the others are stopped. */
static int ranks_wait(struct started *all, size_t count)
{
    const struct sigaction action = {.sa_handler = on_alarm}; /* no restart */
    size_t left = count;
    int first = 0, status;

    sigaction(SIGALRM, &action, NULL);
    while (left) {
        pid_t pid = waitpid(-1, &status, 0);
        if (pid < 0 && alarmed) {
            alarmed = 0;
            signal_all(all, count, SIGKILL);
            continue;
        }
        if (pid < 0 && errno != EINTR)
            break;
        struct started *s = pid > 0 ? find_started(all, count, pid) : NULL;
        if (!s)
            continue;
        s->pid = 0;
        left--;
        int code = rank_code(status);
        if (!code || first)
            continue;
        first = code;
        signal_all(all, count, SIGTERM); /* at once: they go on without it */
        if (left && code != RANK_AXIS_AGAIN)
            rank_end_say(s->rank, status);
        alarm(END_SECONDS);
    }
    return first;
}

/* Starts the ranks of L, and waits for them. */
static int ranks_run(const struct launch *l, const char *axes)
{
    struct started *all = xcalloc(l->ranks.count, sizeof *all);
    size_t count = 0;

    common_environment(l, axes);
    for (uint32_t r = 0; rank_set_next(&l->ranks, r, &r); r++)
        all[count++] = (struct started){r, rank_start(l, r)};
    int status = ranks_wait(all, count);
    free(all);
    return status;
}

/* Those of L that run in TURN. */
static struct rank_set turn_ranks(const struct launch *l, uint32_t turn)
{
    struct rank_set set = {0};
    uint32_t ranks[SESSION_RANKS], count = 0;

    for (uint32_t r = 0; rank_set_next(&l->ranks, r, &r); r++)
        ranks[count++] = r;
    for (uint32_t i = 0; i < count; i++)
        if (session_turn(ranks, count, l->local, ranks[i]) == turn)
            rank_set_add(&set, ranks[i]);
    return set;
}

/* Ranks of real GPUs: who has the same one takes turns. */
static int turns_run(const struct launch *l, const char *axes)
{
    const char *port = getenv("MASTER_PORT");
    int status = 0;

    for (uint32_t turn = 0; !status; turn++) {
        struct launch one = *l;
        one.ranks = turn_ranks(l, turn);
        if (one.ranks.count) {
            if (!port)
                unsetenv("MASTER_PORT");
            status = ranks_run(&one, axes);
        }
        uint32_t count = one.ranks.count;
        rank_set_fini(&one.ranks);
        if (!count)
            break;
    }
    return status;
}

int launch_run(int argc, char **argv)
{
    struct launch l = {0};
    struct err err = {""};

    if (argc < LAUNCH_WORDS ||
        rank_set_parse(&l.ranks, argv[1], RUN_RANKS_MAX, "launch", &err))
        return 125;
    l.world = (uint32_t)strtoul(argv[2], NULL, 10);
    l.local = (uint32_t)strtoul(argv[3], NULL, 10);
    l.environment = (int)strtol(argv[4], NULL, 10);
    l.command = argv + LAUNCH_WORDS - 1;
    int status = getenv("MEMSIM_EMULATE") ? turns_run(&l, argv[5])
                                          : ranks_run(&l, argv[5]);
    rank_set_fini(&l.ranks);
    return status;
}
