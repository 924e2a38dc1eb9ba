/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/result/result_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"
#include "common/base/status.h"
#include "common/base/units.h"
#include "memsim/run/host_limit.h"

static union {
    struct session session;
    char bytes[sizeof(struct session) + 8 * sizeof(struct session_process)];
} memory;
#define session memory.session
static char *command[] = {"python", NULL};

static void session_start(void)
{
    memset(&memory, 0, sizeof memory);
    session.start_ns = 1;
    session.end_ns = 2;
    session.device_count = 4;
    for (int i = 0; i < 4; i++)
        session.devices[i].capacity_bytes = GIB;
}

/* A process PID of the host; with RANK, 0 and above, it uses a GPU. */
static struct session_host *add(uint32_t pid, uint32_t parent, int rank,
                                uint64_t peak)
{
    struct session_host *h = &session.hosts[session.host_count++];

    h->state = SESSION_EXITED;
    h->pid = pid;
    h->parent = parent;
    h->peak = peak;
    if (rank < 0)
        return h;
    struct session_process *p = &session.processes[session.slot_count++];
    p->state = SESSION_EXITED;
    p->pid = pid;
    p->rank = (uint32_t)rank;
    p->usage[rank % 4].context = MIB;
    return h;
}

static struct result judged(void)
{
    struct result r;

    result_init(&r, &session, command);
    for (size_t i = 0; i < r.rank_count; i++)
        rank_set_add(&r.ranks[i].members, r.ranks[i].rank);
    result_hosts_fill(&r, &session);
    return r;
}

TEST(a_node_is_all_its_processes_without_memsim_s_own)
{
    session_start();
    add(10, 1, -1, 3 * GIB); /* torchrun */
    add(11, 10, 0, 5 * GIB)->own = GIB;
    add(12, 11, -1, 2 * GIB); /* a worker, and its own */
    add(13, 12, -1, GIB);
    session.shm_start = 7 * GIB;
    session.shm_peak = 8 * GIB;
    struct result r = judged();
    CHECK_UINT(r.host_count, 4);
    CHECK_UINT(r.host_bytes, (3 + 4 + 2 + 1 + 1) * GIB);
    CHECK(r.hosts[0].ranked && !r.hosts[0].below);
    CHECK(r.hosts[1].ranked && r.hosts[1].below);
    CHECK(r.hosts[2].ranked && r.hosts[2].below);
    CHECK(!r.hosts[3].ranked && r.hosts[3].below);
    CHECK(r.verdict == VERDICT_FITS);
    result_fini(&r);
}

TEST(ranks_that_were_not_run_take_what_their_class_does)
{
    session_start();
    session.world_size = 8;
    session.local_world_size = 4;
    add(10, 1, 0, 2 * GIB);
    add(11, 1, 7, 3 * GIB);
    struct result r;
    result_init(&r, &session, command);
    for (uint32_t rank = 0; rank < 7; rank++)
        rank_set_add(&r.ranks[0].members, rank);
    rank_set_add(&r.ranks[1].members, 7);
    result_hosts_fill(&r, &session);
    CHECK_UINT(r.host_bytes, 3 * 2 * GIB + 3 * GIB); /* of the second node */
    result_fini(&r);
}

TEST(a_program_that_executes_another_counts_once)
{
    session_start();
    add(10, 1, 0, 2 * GIB);
    session.slot_count = 1;
    add(10, 1, -1, 3 * GIB);
    struct result r = judged();
    CHECK_UINT(r.host_count, 1);
    CHECK_UINT(r.host_bytes, 3 * GIB);
    result_fini(&r);
}

TEST(over_the_limit_it_does_not_fit)
{
    session_start();
    add(10, 1, 0, 2 * GIB);
    session.host_limit_bytes = 2 * GIB;
    struct result r = judged();
    CHECK(r.verdict == VERDICT_FITS);
    result_fini(&r);
    session.host_limit_bytes = 2 * GIB - 1;
    r = judged();
    CHECK(r.verdict == VERDICT_HOST);
    CHECK_UINT((uint64_t)r.exit_status, CMD_RUN_HOST);
    result_fini(&r);
    session.exit_status = 3;
    r = judged();
    CHECK(r.verdict == VERDICT_FAILED);
    result_fini(&r);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    CHECK(file && fputs(text, file) >= 0 && !fclose(file));
}

TEST(the_lowest_limit_of_a_group_and_those_above_it)
{
    char root[] = "/tmp/test-host-XXXXXX", path[128];

    CHECK(mkdtemp(root));
    snprintf(path, sizeof path, "%s/a", root);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/a/b", root);
    mkdir(path, 0700);
    CHECK(host_limit_of(root, "/a/b", "max") == UINT64_MAX);
    snprintf(path, sizeof path, "%s/a/b/max", root);
    write_file(path, "max\n");
    CHECK(host_limit_of(root, "/a/b", "max") == UINT64_MAX);
    snprintf(path, sizeof path, "%s/a/max", root);
    write_file(path, "1000\n");
    CHECK_UINT(host_limit_of(root, "/a/b", "max"), 1000);
    snprintf(path, sizeof path, "%s/max", root);
    write_file(path, "9223372036854771712\n"); /* version 1's "none" */
    CHECK_UINT(host_limit_of(root, "/a/b", "max"), 1000);
    snprintf(path, sizeof path, "rm -r %s", root);
    CHECK(!system(path));
}
