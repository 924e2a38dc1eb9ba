/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer on what `memsim report' reads, a session and a trace, through every
 * format that it writes. The input: a number of patches to a whole session, the
 * patches (an offset in units of four bytes, and four bytes), and the trace.
 * The checksums of the trace's header and first chunk are made to fit. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/crc32c.h"
#include "common/base/units.h"
#include "common/trace/session.h"
#include "common/trace/trace.h"
#include "memsim/cli/output.h"
#include "memsim/study/run_study.h"
#include "fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SLOTS       2
#define PATCH_BYTES 7

static char place[64], path[128];

static const char *in_place(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", place, name);
    return path;
}

static void demand(int condition)
{
    if (!condition)
        abort();
}

static void put_file(const char *name, const void *data, size_t size)
{
    int fd =
        open(in_place(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    demand(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
}

/* A session of a run that fitted, with an out-of-memory error it survived. */
static void session_make(struct session *s)
{
    memset(s, 0, session_bytes(SLOTS));
    memcpy(s->magic, SESSION_MAGIC, sizeof s->magic);
    s->version = SESSION_VERSION;
    s->bytes = sizeof *s;
    s->start_ns = 1;
    s->end_ns = 1000000000;
    strcpy(s->gpu.name, "h100-sxm-80gb");
    strcpy(s->gpu.device_name, "NVIDIA H100 80GB HBM3");
    s->gpu.memory_bytes = 80 * GIB;
    s->device_count = 1;
    s->devices[0].capacity_bytes = 80 * GIB;
    s->devices[0].peak_used_bytes = 3 * GIB;
    s->slot_count = SLOTS;
    s->process_count = 1;
    s->processes[0].state = SESSION_EXITED;
    s->processes[0].world_size = 1;
    strcpy(s->processes[0].torch_version, "2.11.0");
    s->processes[0].usage[0].context = 400 * MIB;
    s->processes[0].usage[0].peak_allocated = 2 * GIB;
    s->processes[0].usage[0].peak_reserved = 2 * GIB;
    s->processes[0].usage[0].peak_used = 3 * GIB;
    s->oom_count = s->note_count = s->guess_count = s->file_count = 1;
    s->ooms[0].ready = s->notes[0].ready = 1;
    s->guesses[0].ready = s->files[0].ready = 1;
    strcpy(s->notes[0].text, "a note");
    strcpy(s->guesses[0].operation, "nonzero");
    strcpy(s->files[0].path, "/x");
}

static size_t patch(unsigned char *session, const uint8_t *data, size_t size)
{
    size_t count = size ? data[0] % 32 : 0, at = size ? 1 : 0;

    for (; count && at + PATCH_BYTES <= size; count--, at += PATCH_BYTES) {
        size_t offset = 4 * ((size_t)data[at] | (size_t)data[at + 1] << 8 |
                             (size_t)(data[at + 2] & 3) << 16);
        if (offset + 4 <= session_bytes(SLOTS))
            memcpy(session + offset, data + at + 3, 4);
    }
    return at;
}

static void fix_checksums(uint8_t *trace, size_t size)
{
    struct trace_header h;
    struct trace_chunk c;

    if (size < TRACE_HEADER_BYTES)
        return;
    memcpy(&h, trace, sizeof h);
    h.crc = 0;
    h.crc = crc32c(0, &h, sizeof h);
    memcpy(trace, &h, sizeof h);
    if (size < TRACE_HEADER_BYTES + sizeof c)
        return;
    memcpy(&c, trace + TRACE_HEADER_BYTES, sizeof c);
    if (c.used_bytes < sizeof c || c.used_bytes > size - TRACE_HEADER_BYTES)
        return;
    c.crc = crc32c(0, trace + TRACE_HEADER_BYTES + sizeof c,
                   (size_t)c.used_bytes - sizeof c);
    memcpy(trace + TRACE_HEADER_BYTES, &c, sizeof c);
}

static void write_input(const uint8_t *data, size_t size)
{
    static unsigned char *session;

    if (!session)
        session = malloc(session_bytes(SLOTS));
    session_make((struct session *)session);
    size_t at = patch(session, data, size);
    put_file(SESSION_FILE, session, session_bytes(SLOTS));
    put_file(SESSION_COMMAND, "python\0train.py", 16);
    uint8_t *trace = malloc(size - at + 1);
    memcpy(trace, data + at, size - at);
    fix_checksums(trace, size - at);
    put_file("process-0000.trace", trace, size - at);
    free(trace);
}

static void report(struct rundir *dir, const struct output_options *options)
{
    const struct study_sources nothing = {0};
    struct err err = {""};
    static FILE *nowhere;
    bool told;

    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    char **command = rundir_command(dir, &err);
    demand(command != NULL);
    output_run(dir, &nothing, command, options, nowhere, &told);
    free(command);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char json[128], html[128], perfetto[128], snapshot[128];
    struct rundir dir;
    struct err err = {""};

    if (!place[0]) {
        snprintf(place, sizeof place, "%s/memsim-fuzz-report.%d",
                 fuzz_scratch(), (int)getpid());
        mkdir(place, 0700);
        stderr = fopen("/dev/null", "w"); /* libFuzzer keeps the real one */
    }
    write_input(data, size);
    strcpy(json, in_place("j.json"));
    strcpy(html, in_place("h.html"));
    strcpy(perfetto, in_place("p.json"));
    strcpy(snapshot, in_place("s.pickle"));
    const struct output_options all = {.json = json,
                                       .html = html,
                                       .perfetto = perfetto,
                                       .timeline = true,
                                       .study.advice = true};
    const struct output_options last = {.snapshot = snapshot, .quiet = true};
    if (rundir_open(&dir, place, &err)) {
        demand(err.text[0] != '\0');
        return 0;
    }
    report(&dir, &all);
    report(&dir, &last);
    rundir_close(&dir);
    return 0;
}
