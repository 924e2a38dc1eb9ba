/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/result/result.h"

#include <cjson/cJSON.h>

#include "check.h"
#include "common/trace/trace.h"
#include "common/base/units.h"
#include "memsim/report/report.h"

static union {
    struct session session;
    char bytes[sizeof(struct session) + 8 * sizeof(struct session_process)];
} memory;
#define session memory.session
static char *command[] = {"python", "train \"x\".py", NULL};

static void session_start(uint32_t devices)
{
    memset(&memory, 0, sizeof memory);
    session.start_ns = 1000;
    session.end_ns = 1000 + UINT64_C(12300000000);
    session.device_count = devices;
    strcpy(session.gpu.name, "card");
    strcpy(session.gpu.device_name, "A Card 80GB");
    session.gpu.memory_bytes = 80 * GIB;
    for (uint32_t i = 0; i < devices; i++)
        session.devices[i].capacity_bytes = 80 * GIB;
}

/* A process that used DEVICE. */
static struct session_process *add_process(uint32_t rank, uint32_t device,
                                           uint64_t allocated)
{
    struct session_process *p = &session.processes[session.slot_count++];

    p->state = SESSION_EXITED;
    p->number = session.process_count++;
    p->rank = rank;
    strcpy(p->torch_version, "2.11.0");
    p->usage[device].context = GIB;
    p->usage[device].peak_allocated = allocated;
    p->usage[device].peak_reserved = allocated + GIB;
    p->usage[device].peak_used = allocated + 2 * GIB;
    session_raise(&session.devices[device].peak_used_bytes,
                  allocated + 2 * GIB);
    return p;
}

static struct session_oom *add_oom(uint32_t process, uint64_t time_ns)
{
    struct session_oom *o = &session.ooms[session.oom_count++];

    *o = (struct session_oom){.process = process,
                              .torch = 1,
                              .time_ns = time_ns,
                              .requested_bytes = 3 * GIB,
                              .refused_bytes = 3 * GIB + 1 * MIB,
                              .free_bytes = 2 * GIB,
                              .allocated_bytes = 70 * GIB,
                              .reserved_bytes = 71 * GIB};
    o->ready = 1;
    session.processes[process].last_oom_ns = time_ns;
    session.processes[process].usage[0].ooms++;
    return o;
}

static struct result result_of(void)
{
    struct result r;

    result_init(&r, &session, command);
    return r;
}

TEST(a_run_that_fits)
{
    session_start(1);
    add_process(0, 0, 40 * GIB);
    struct result r = result_of();
    CHECK(r.verdict == VERDICT_FITS);
    CHECK_UINT((uint64_t)r.exit_status, 0);
    CHECK_NEAR(r.seconds, 12.3, 1e-12);
    CHECK_STR(r.torch_version, "2.11.0");
    CHECK_UINT(r.rank_count, 1);
    const struct result_device *d = &r.ranks[0].devices[0];
    CHECK_UINT(d->peak_allocated_bytes, 40 * GIB);
    CHECK_UINT(d->peak_reserved_bytes, 41 * GIB);
    CHECK_UINT(d->peak_used_bytes, 42 * GIB);
    CHECK_UINT(d->headroom_bytes, 38 * GIB);
    CHECK_UINT(d->context_bytes, GIB);
    CHECK_UINT(r.note_count, 0);
    result_fini(&r);
}

TEST(the_limit_is_of_what_the_card_shows_as_used)
{
    session_start(1);
    add_process(0, 0, 40 * GIB); /* used: 42 of 80 GiB, 52.5 % */
    session.fail_above_percent = 52.5;
    struct result r = result_of();
    CHECK(r.verdict == VERDICT_FITS);
    result_fini(&r);
    session.fail_above_percent = 52.4;
    r = result_of();
    CHECK(r.verdict == VERDICT_OVER_LIMIT);
    CHECK_UINT((uint64_t)r.exit_status, 121);
    result_fini(&r);
    session.exit_status = 3; /* a failure is told first */
    r = result_of();
    CHECK(r.verdict == VERDICT_FAILED);
    CHECK_UINT((uint64_t)r.exit_status, 3);
    result_fini(&r);
}

TEST(an_oom_that_reached_the_top_level_is_the_verdict)
{
    session_start(1);
    struct session_process *p = add_process(0, 0, 70 * GIB);
    add_oom(0, 500);
    p->went_on_ns = 900; /* tidying up, say */
    p->died_of_oom = 1;
    session.exit_status = 1;
    struct result r = result_of();
    CHECK(r.verdict == VERDICT_OOM);
    CHECK_UINT((uint64_t)r.exit_status, 120);
    CHECK_UINT((uint64_t)r.command_status, 1);
    const struct result_device *d = &r.ranks[0].devices[0];
    CHECK_UINT(d->oom_count, 1);
    CHECK(!d->ooms[0].caught && d->ooms[0].torch);
    CHECK_UINT(d->ooms[0].requested_bytes, 3 * GIB);
    CHECK_UINT(d->ooms[0].unallocated_bytes, GIB);
    /* 1 GiB and 1 MiB are missing: whole 2 MiB granules */
    CHECK_UINT(d->ooms[0].missing_bytes, GIB + 2 * MIB);
    result_fini(&r);
}

TEST(an_oom_after_which_nothing_was_launched_is_too)
{
    session_start(1);
    struct session_process *p = add_process(0, 0, 70 * GIB);
    add_oom(0, 500);
    p->went_on_ns = 499;
    session.exit_status = 137;
    struct result r = result_of();
    CHECK(r.verdict == VERDICT_OOM);
    result_fini(&r);
    p->went_on_ns = 501; /* it went on, and died of something else */
    r = result_of();
    CHECK(r.verdict == VERDICT_FAILED);
    CHECK_UINT((uint64_t)r.exit_status, 137);
    CHECK(r.ranks[0].devices[0].ooms[0].caught);
    result_fini(&r);
}

TEST(an_oom_that_was_survived_changes_nothing)
{
    session_start(1);
    add_process(0, 0, 70 * GIB);
    add_oom(0, 500);
    struct result r = result_of();
    CHECK(r.verdict == VERDICT_FITS);
    CHECK_UINT((uint64_t)r.exit_status, 0);
    CHECK(r.ranks[0].devices[0].ooms[0].caught);
    result_fini(&r);
}

/* Of the command C, from START to END, with STATUS. */
static struct session_process *add_ended(uint64_t c, uint64_t start_ns,
                                         uint64_t end_ns, uint32_t status)
{
    struct session_process *p = add_process(0, 0, GIB);

    p->pid = 100 + p->number;
    p->command = c;
    p->start_ns = start_ns;
    p->end_ns = end_ns;
    p->exit_status = status;
    strcpy(p->program, "python");
    return p;
}

TEST(a_process_that_failed_is_the_verdict_though_the_command_ended_well)
{
    session_start(1);
    add_ended(1, 2000, 1000 + UINT64_C(2500000000), 3);
    struct result r = result_of();
    CHECK(r.verdict == VERDICT_FAILED);
    CHECK_UINT((uint64_t)r.exit_status, 125);
    CHECK_UINT(r.failure_count, 1);
    CHECK_STR(r.notes[0],
              "process 100 (python) ended with status 3 after 2.5 s");
    result_fini(&r);
    session.ignore_children = 1;
    r = result_of();
    CHECK(r.verdict == VERDICT_FITS);
    CHECK_UINT(r.failure_count, 1);
    result_fini(&r);
}

TEST(one_that_was_refused_memory_is_out_of_memory)
{
    session_start(1);
    add_ended(1, 2000, 3000, 1);
    add_oom(0, 2500);
    struct result r = result_of();
    CHECK(r.verdict == VERDICT_OOM);
    CHECK_UINT((uint64_t)r.exit_status, 120);
    CHECK(!r.ranks[0].devices[0].ooms[0].caught);
    result_fini(&r);
    session.processes[0].went_on_ns = 2600;
    r = result_of();
    CHECK(r.verdict == VERDICT_FAILED);
    CHECK(r.ranks[0].devices[0].ooms[0].caught);
    result_fini(&r);
}

TEST(a_killed_process_failed_and_one_that_was_stopped_did_not)
{
    session_start(1);
    struct session_process *p = add_ended(1, 2000, 0, 0);
    p->state = SESSION_KILLED;
    struct result r = result_of();
    CHECK(r.verdict == VERDICT_FAILED);
    CHECK_STR(r.notes[0], "process 100 (python) was killed, or crashed");
    result_fini(&r);
    p->stopped_by = 15;
    r = result_of();
    CHECK(r.verdict == VERDICT_FITS && !r.failure_count);
    result_fini(&r);
    p->state = SESSION_EXITED; /* its handler ended it */
    p->exit_status = 143;
    r = result_of();
    CHECK(r.verdict == VERDICT_FITS && !r.failure_count);
    result_fini(&r);
    add_oom(0, 2500); /* and it had not come further */
    r = result_of();
    CHECK(r.verdict == VERDICT_OOM);
    result_fini(&r);
}

TEST(a_later_run_of_the_same_command_makes_a_failure_good)
{
    session_start(1);
    add_ended(1, 2000, 3000, 1);
    struct session_process *next = add_ended(1, 3000, 4000, 0);
    struct result r = result_of();
    CHECK(r.verdict == VERDICT_FITS);
    CHECK(r.failure_count == 1 && r.failures[0].made_good);
    result_fini(&r);
    next->start_ns = 2999; /* beside it */
    r = result_of();
    CHECK(r.verdict == VERDICT_FAILED);
    result_fini(&r);
    next->start_ns = 3000;
    next->command = 2;
    r = result_of();
    CHECK(r.verdict == VERDICT_FAILED);
    result_fini(&r);
    next->command = 1;
    next->exit_status = 1;
    r = result_of();
    CHECK(r.verdict == VERDICT_FAILED);
    CHECK_UINT(r.failure_count, 2);
    result_fini(&r);
}

TEST(only_the_last_oom_is_the_fatal_one)
{
    session_start(1);
    add_process(0, 0, 70 * GIB);
    add_oom(0, 500);
    add_oom(0, 700);
    session.exit_status = 1;
    struct result r = result_of();
    const struct result_device *d = &r.ranks[0].devices[0];
    CHECK_UINT(d->oom_count, 2);
    CHECK(d->ooms[0].caught);
    CHECK(!d->ooms[1].caught);
    result_fini(&r);
}

TEST(a_limit_of_the_programs_own_lacks_no_memory)
{
    session_start(1);
    add_process(0, 0, 10 * GIB);
    add_oom(0, 500)->free_bytes = 60 * GIB;
    struct result r = result_of();
    CHECK_UINT(r.ranks[0].devices[0].ooms[0].missing_bytes, 0);
    result_fini(&r);
}

TEST(ranks_and_cards_are_in_order)
{
    session_start(4);
    add_process(3, 3, 4 * GIB);
    add_process(1, 1, 2 * GIB);
    add_process(2, 2, 3 * GIB);
    add_process(0, 2, 7 * GIB);
    add_process(0, 0, 1 * GIB);
    struct result r = result_of();
    CHECK_UINT(r.rank_count, 4);
    for (unsigned i = 0; i < 4; i++)
        CHECK_UINT(r.ranks[i].rank, i);
    CHECK_UINT(r.ranks[0].device_count, 2);
    CHECK_UINT(r.ranks[0].devices[0].index, 0);
    CHECK_UINT(r.ranks[0].devices[1].index, 2);
    CHECK_UINT(r.ranks[0].devices[1].process, 3);
    result_fini(&r);
}

TEST(processes_of_a_rank_are_not_added_up)
{
    session_start(1);
    add_process(0, 0, 10 * GIB);
    add_process(0, 0, 30 * GIB);
    add_process(0, 0, 20 * GIB);
    session.devices[0].peak_used_bytes = 50 * GIB; /* two of them at once */
    struct result r = result_of();
    CHECK_UINT(r.rank_count, 1);
    const struct result_device *d = &r.ranks[0].devices[0];
    CHECK_UINT(d->peak_allocated_bytes, 30 * GIB);
    CHECK_UINT(d->process, 1);
    CHECK_UINT(d->others_bytes, 18 * GIB); /* beside its 32 */
    result_fini(&r);
}

static bool has_note(const struct result *r, const char *part)
{
    for (size_t i = 0; i < r->note_count; i++)
        if (strstr(r->notes[i], part))
            return true;
    return false;
}

/* 500 ranks of which every fifth has another peak: two classes. */
TEST(many_ranks_are_told_as_classes)
{
    enum { MANY = 500 };
    struct result r = {.command = command, .gpu.name = "card"};
    char text[20000] = "";

    r.ranks = calloc(MANY, sizeof *r.ranks);
    for (unsigned i = 0; i < MANY; i++) {
        struct result_rank *rank = &r.ranks[r.rank_count++];
        rank->rank = i;
        rank->devices = calloc(1, sizeof *rank->devices);
        rank->device_count = 1;
        rank->devices[0].peak_used_bytes = i % 5 ? GIB : 2 * GIB;
        rank->devices[0].process = i;
    }
    result_ranks_classify(&r);
    CHECK_UINT(r.rank_count, 2);
    CHECK_UINT(r.ranks[0].rank, 0);
    CHECK_UINT(r.ranks[0].members.count, 100);
    CHECK_UINT(r.ranks[0].members.range_count, 1);
    CHECK_UINT(r.ranks[1].rank, 1);
    CHECK_UINT(r.ranks[1].members.count, 400);
    CHECK_UINT(r.ranks[1].members.range_count, 100);
    CHECK_UINT(r.ranks[1].devices[0].process, 1);
    FILE *out = fmemopen(text, sizeof text, "w");
    report_json.write(&r, NULL, out);
    fclose(out);
    CHECK(strstr(text, "\"members\":\t\"0-495:5\""));
    CHECK(strstr(text, "\"1-4,6-9,11-14,"));
    result_fini(&r);
}

TEST(ranks_that_did_not_run_are_members)
{
    struct rank_set members = {.count = 0};
    struct run_ranks classes = {.count = 0};
    char text[20000] = "";

    session_start(1);
    add_process(0, 0, GIB);
    add_process(1, 0, 2 * GIB);
    struct result r = result_of();
    for (uint32_t rank = 1; rank < 128; rank++)
        rank_set_add(&members, rank);
    run_classes_add(&classes, 1, &members);
    result_ranks_expand(&r, &classes);
    CHECK_UINT(r.rank_count, 2);
    CHECK_UINT(r.ranks[0].members.count, 0);
    CHECK_UINT(r.ranks[1].members.count, 127);
    FILE *out = fmemopen(text, sizeof text, "w");
    report_json.write(&r, NULL, out);
    report_summary.write(&r, &(struct report_style){.depth = 1}, out);
    fclose(out);
    CHECK(strstr(text, "\"members\":\t\"1-127\""));
    CHECK(strstr(text, "ranks 1 to 127, each\n"));
    rank_set_fini(&members);
    run_ranks_fini(&classes);
    result_fini(&r);
}

TEST(few_ranks_are_told_one_by_one)
{
    session_start(1);
    for (uint32_t i = 0; i < 8; i++)
        add_process(i, 0, GIB);
    struct result r = result_of();
    CHECK_UINT(r.rank_count, 8);
    CHECK_UINT(r.ranks[3].members.count, 0);
    result_fini(&r);
}

TEST(notes_say_what_is_odd)
{
    session_start(1);
    struct result r = result_of();
    CHECK(has_note(&r, "never used a GPU"));
    CHECK_UINT(r.rank_count, 0);
    result_fini(&r);

    struct session_process *p = add_process(0, 0, GIB);
    p->unpriced = 7;
    p->trace_end = TRACE_END_LIMIT + 1;
    session.background = 2;
    session.lost_count = 3;
    session.oom_count = SESSION_OOMS + 1;
    session.note_count = 1;
    strcpy(session.notes[0].text, "cudaFrobnicate is not modelled");
    session.notes[0].ready = 1;
    r = result_of();
    CHECK(!has_note(&r, "7 calls"));
    result_note_unpriced(&r);
    CHECK(has_note(&r, "7 calls went"));
    CHECK(has_note(&r, "-o DIR keeps a trace that names them"));
    r.directory = "kept";
    result_note_unpriced(&r);
    CHECK(has_note(&r, "`memsim trace --kind unpriced kept' names them"));
    CHECK(has_note(&r, "--trace-limit was reached"));
    CHECK(has_note(&r, "2 processes are still running"));
    CHECK(has_note(&r, "3 processes of the run could not be measured"));
    CHECK_UINT(r.verdict, VERDICT_FAILED);
    CHECK_UINT(r.exit_status, 125);
    CHECK(has_note(&r, "65 requests were refused; only the first 64"));
    CHECK(has_note(&r, "cudaFrobnicate"));
    CHECK(!has_note(&r, "never used"));
    result_fini(&r);
}

TEST(guesses_are_listed_by_how_often)
{
    session_start(1);
    add_process(0, 0, GIB);
    for (unsigned i = 0; i < 3; i++) {
        struct session_guess *g = &session.guesses[i];
        strcpy(g->operation, "aten::nonzero");
        snprintf(g->module, sizeof g->module, "layers.%u", i);
        g->times = i == 1 ? 5 : 2;
        g->elements = 100;
        g->chosen = 50;
        g->ready = i != 2;
    }
    session.guess_count = SESSION_GUESSES + 2;
    struct result r = result_of();
    CHECK_UINT(r.guess_count, 2);
    CHECK_UINT(r.guesses_dropped, 2);
    CHECK_STR(r.guesses[0].module, "layers.1");
    CHECK_UINT(r.guesses[0].times, 5);
    CHECK_UINT(r.guesses[1].chosen, 50);
    CHECK(!has_note(&r, "before it failed"));
    result_fini(&r);
    session.exit_status = 1;
    session.guess_count = 1;
    r = result_of();
    CHECK(has_note(&r, "before it failed, memsim had guessed sizes or choices "
                       "at 1 place, "));
    result_fini(&r);
}

TEST(a_run_without_an_end_is_not_a_success)
{
    session_start(1);
    add_process(0, 0, GIB);
    session.end_ns = 0;
    struct result r = result_of();
    CHECK(!r.finished);
    CHECK(r.verdict == VERDICT_FAILED);
    CHECK(has_note(&r, "the run is not over"));
    result_fini(&r);
}

/* RESULT as OPS writes it; the caller frees. */
static char *written(const struct report_ops *ops, const struct result *result,
                     bool color)
{
    const struct report_style style = {.color = color};
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    ops->write(result, &style, out);
    fclose(out);
    return text;
}

static uint64_t number(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    CHECK(cJSON_IsNumber(item));
    return item ? (uint64_t)item->valuedouble : 0;
}

TEST(json_has_the_fixed_names)
{
    session_start(1);
    add_process(0, 0, 70 * GIB + 1);
    add_oom(0, 500);
    session.exit_status = 1;
    struct result r = result_of();
    char *text = written(&report_json, &r, false);
    cJSON *json = cJSON_Parse(text);
    CHECK_UINT(number(json, "schema"), 1);
    CHECK_UINT(number(json, "exit_status"), 120);
    CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(json, "verdict")),
              "oom");
    const cJSON *arguments = cJSON_GetObjectItem(json, "command");
    CHECK_UINT((uint64_t)cJSON_GetArraySize(arguments), 2);
    CHECK_STR(cJSON_GetStringValue(cJSON_GetArrayItem(arguments, 1)),
              "train \"x\".py");
    const cJSON *gpu = cJSON_GetObjectItem(json, "gpu");
    CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(gpu, "name")), "card");
    CHECK_UINT(number(gpu, "memory_bytes"), 80 * GIB);
    const cJSON *rank =
        cJSON_GetArrayItem(cJSON_GetObjectItem(json, "ranks"), 0);
    CHECK_UINT(number(rank, "rank"), 0);
    const cJSON *d =
        cJSON_GetArrayItem(cJSON_GetObjectItem(rank, "devices"), 0);
    CHECK_UINT(number(d, "index"), 0);
    CHECK_UINT(number(d, "capacity_bytes"), 80 * GIB);
    CHECK_UINT(number(d, "peak_allocated_bytes"), 70 * GIB + 1);
    CHECK_UINT(number(d, "peak_reserved_bytes"), 71 * GIB + 1);
    CHECK_UINT(number(d, "peak_used_bytes"), 72 * GIB + 1);
    CHECK_UINT(number(d, "headroom_bytes"), 8 * GIB - 1);
    const cJSON *oom = cJSON_GetArrayItem(cJSON_GetObjectItem(d, "ooms"), 0);
    CHECK_UINT(number(oom, "requested_bytes"), 3 * GIB);
    CHECK(cJSON_IsFalse(cJSON_GetObjectItem(oom, "caught")));
    cJSON_Delete(json);
    free(text);
    result_fini(&r);
}

/* Integers, not 1.23e+15: programs read them with integer parsers. */
TEST(json_prints_bytes_as_integers)
{
    session_start(1);
    session.gpu.memory_bytes = UINT64_C(9007199254740991);
    struct result r = result_of();
    char *text = written(&report_json, &r, false);
    CHECK(strstr(text, "9007199254740991"));
    free(text);
    session.gpu.memory_bytes = UINT64_MAX;
    result_fini(&r);
    r = result_of();
    text = written(&report_json, &r, false);
    CHECK(strstr(text, "18446744073709551615"));
    free(text);
    result_fini(&r);
}

static size_t longest_line(const char *text)
{
    size_t longest = 0;

    while (*text) {
        size_t length = strcspn(text, "\n");
        longest = length > longest ? length : longest;
        text += length + (text[length] != '\0');
    }
    return longest;
}

static void set_things(struct result_device *d)
{
    static const struct peak_thing things[] = {
        {.label = "log_softmax forward", .bytes = 4 * 394 * MIB, .count = 4},
        {.label = "a kernel whose name is longer than what the column can hold", .bytes = GIB, .count = 1234567},
        {.label = "add of layers.*", .bytes = 5 * MIB, .count = 2, .shape = "float32 8x16"},
        {.label = "cached by PyTorch, not in use", .bytes = 512 * MIB, .count = 0},
        {.label = "y", .bytes = 4, .count = 1},
        {.label = "the sixth", .bytes = 3, .count = 1},
    };

    d->things = malloc(sizeof things);
    memcpy(d->things, things, sizeof things);
    d->thing_count = sizeof things / sizeof *things;
}

TEST(the_summary_tells_an_oom)
{
    session_start(1);
    add_process(0, 0, 70 * GIB);
    add_oom(0, 500);
    session.exit_status = 1;
    session.note_count = 1;
    memset(session.notes[0].text, 'w', SESSION_TEXT_BYTES - 1);
    for (int i = 9; i < SESSION_TEXT_BYTES - 1; i += 10)
        session.notes[0].text[i] = ' ';
    session.notes[0].ready = 1;
    struct result r = result_of();
    set_things(&r.ranks[0].devices[0]);
    char module[] = "decoder.head";
    const struct attribution_oom at = {module, 3, TRACE_PHASE_BACKWARD,
                                       EPISODE_NONE};
    r.ranks[0].devices[0].ooms[0].at = &at;
    char *text = written(&report_summary, &r, false);
    CHECK(
        !strncmp(text, "memsim: out of memory: A Card 80GB, 80.00 GiB\n", 46));
    CHECK(strstr(text,
                 "  PyTorch asked for 3.00 GiB in decoder.head.\n"
                 "  This was in step 3, backward.\n"
                 "  2.00 GiB was free, 1.00 GiB reserved but unallocated. "
                 "At least 1.00 GiB more\n"
                 "  memory would have been needed.\n"));
    CHECK(strstr(text, "1.54 GiB  log_softmax forward"));
    CHECK(strstr(text, "  4 x 394.00 MiB\n"));
    CHECK(strstr(text, "5.00 MiB  add of layers.*"));
    CHECK(strstr(text, "  2 x float32 8x16\n"));
    CHECK(!strstr(text, "the sixth"));
    CHECK(strstr(text, "took 12.3 s, PyTorch 2.11.0\n"));
    CHECK(!strchr(text, '\033'));
    CHECK(longest_line(text) <= 80);
    free(text);
    text = written(&report_summary, &r, true);
    CHECK(strstr(text, "\033[1;31mout of memory\033[0m"));
    free(text);
    result_fini(&r);
}

TEST(the_summary_tells_equal_ranks_once)
{
    session_start(4);
    for (uint32_t i = 0; i < 4; i++)
        add_process(i, i, i == 3 ? 9 * GIB : 5 * GIB);
    struct result r = result_of();
    char *text = written(&report_summary, &r, false);
    CHECK(strstr(text, "\nranks 0 to 2, each\n"));
    CHECK(strstr(text, "\nrank 3, GPU 3\n"));
    CHECK(!strstr(text, "rank 1"));
    CHECK(longest_line(text) <= 80);
    free(text);
    result_fini(&r);
}

TEST(the_summary_tells_nearly_equal_ranks_once)
{
    session_start(4);
    for (uint32_t i = 0; i < 4; i++)
        add_process(i, i, i == 2 ? 9 * GIB + 90 * MIB : 9 * GIB);
    struct result r = result_of();
    char *text = written(&report_summary, &r, false);
    CHECK(strstr(text, "\nranks 0 to 3, nearly equal; of these rank 2\n"));
    CHECK(strstr(text, "  these ranks: used "));
    CHECK(strstr(text, " (rank 0) to "));
    CHECK(!strstr(text, "rank 1"));
    CHECK(!strstr(text, "rank 3"));
    CHECK(longest_line(text) <= 80);
    free(text);
    result_fini(&r);
}

TEST(the_summary_keeps_to_80_columns)
{
    session_start(1);
    add_process(0, 0, 5 * GIB);
    memset(session.gpu.device_name, 'N', sizeof session.gpu.device_name - 1);
    session.fail_above_percent = 1.25;
    for (int color = 0; color < 2; color++) {
        struct result r = result_of();
        char *text = written(&report_summary, &r, color);
        CHECK(strstr(text, " of 1.25%\n  NNNN"));
        if (!color)
            CHECK(longest_line(text) <= 80);
        free(text);
        result_fini(&r);
    }
}

TEST(the_summary_of_an_unfinished_run_accuses_nobody)
{
    session_start(1);
    add_process(0, 0, 5 * GIB);
    session.end_ns = 0;
    struct result r = result_of();
    char *text = written(&report_summary, &r, false);
    CHECK(!strncmp(text, "memsim: not finished: A Card 80GB", 33));
    CHECK(!strstr(text, "not for lack"));
    free(text);
    result_fini(&r);
}

TEST(the_summary_counts_what_was_survived)
{
    session_start(1);
    add_process(0, 0, 5 * GIB)->went_on_ns = 1000;
    for (uint64_t i = 0; i < 5; i++)
        add_oom(0, 100 + i);
    struct result r = result_of();
    char *text = written(&report_summary, &r, false);
    CHECK(!strncmp(text, "memsim: fits", 12));
    CHECK(strstr(text, "the program went on.\n"));
    CHECK(strstr(text, "... and 4 more that it survived.\n"));
    CHECK(!strstr(text, "At least"));
    free(text);
    result_fini(&r);
}
