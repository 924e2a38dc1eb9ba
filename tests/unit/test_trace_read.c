/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trace/trace_read.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "check.h"
#include "common/trace/trace_write.h"
#include "trace_build.h"

/* Reads all of B; the number of known records, or -1 with ERR set. */
static int read_all(const struct build *b, struct err *err)
{
    struct trace_reader r;
    struct trace_item item;
    int count = 0, rc;

    if (trace_reader_open_memory(&r, b->data, b->bytes, "T", err))
        return -1;
    while ((rc = trace_reader_next(&r, &item, err)) > 0)
        count++;
    trace_reader_close(&r);
    return rc < 0 ? -1 : count;
}

static void check_error(struct build *b, const char *text)
{
    struct err err = {""};
    int count = read_all(b, &err);

    if (count >= 0)
        CHECK_FAIL("read as %d records, no error \"%s\"", count, text);
    CHECK_STR(err.text, text);
    free(b->data);
}

TEST(reads_what_was_written)
{
    struct build b = build_start();
    struct trace_reader r;
    struct trace_item item;
    struct err err = {""};

    b.thread = 3;
    BUILD_TEXT(&b, NAME, "kernel", .name = 7);
    BUILD(&b, FORK, .child = 4711);
    CHECK(!trace_reader_open_memory(&r, b.data, b.bytes, "T", &err));
    CHECK(trace_reader_next(&r, &item, &err) == 1);
    CHECK_UINT(item.head.kind, TRACE_NAME);
    CHECK_UINT(item.head.thread, 3);
    CHECK_UINT(item.fields[0], 7);
    CHECK_UINT(item.head.text_bytes, 6);
    CHECK(!memcmp(item.text, "kernel", 6));
    CHECK(trace_reader_next(&r, &item, &err) == 1);
    CHECK_UINT(item.head.time_ns, 1);
    CHECK_UINT(item.fields[0], 4711);
    CHECK_UINT(item.fields[1], 0);
    CHECK(trace_reader_next(&r, &item, &err) == 0);
    CHECK_UINT(r.records, 2);
    trace_reader_close(&r);
    free(b.data);
}

TEST(goes_from_chunk_to_chunk)
{
    struct build b = build_start();
    struct err err = {""};

    for (int i = 0; i < 1000; i++)
        BUILD(&b, FORK, .child = (uint64_t)i);
    CHECK(b.bytes > TRACE_HEADER_BYTES + 3 * BUILD_CHUNK);
    CHECK_UINT(read_all(&b, &err), 1000);
    free(b.data);
}

static void count_progress(const struct trace_reader *r, void *context)
{
    unsigned *calls = context;

    ++*calls;
    CHECK(r->read_bytes <= r->file_bytes);
    CHECK_UINT((r->read_bytes - 1) / BUILD_CHUNK, *calls);
}

TEST(tells_its_progress)
{
    struct build b = build_start();
    struct trace_reader r;
    struct trace_item item;
    unsigned calls = 0;

    for (int i = 0; i < 1000; i++)
        BUILD(&b, FORK, .child = (uint64_t)i);
    CHECK(!trace_reader_open_memory(&r, b.data, b.bytes, "T", NULL));
    r.progress = count_progress;
    r.context = &calls;
    while (trace_reader_next(&r, &item, NULL) > 0)
        ;
    CHECK_UINT(calls, (b.bytes - TRACE_HEADER_BYTES) / BUILD_CHUNK);
    CHECK_UINT(r.read_bytes,
               b.bytes - BUILD_CHUNK + build_chunk(&b)->used_bytes);
    trace_reader_close(&r);
    free(b.data);
}

TEST(takes_a_last_chunk_cut_to_its_length)
{
    struct build b = build_start();
    struct err err = {""};

    BUILD(&b, FORK, .child = 1);
    build_seal(&b);
    b.bytes = TRACE_HEADER_BYTES + build_chunk(&b)->used_bytes;
    CHECK_UINT(read_all(&b, &err), 1);
    free(b.data);
}

TEST(ends_where_the_writer_was)
{
    struct build b = build_start();
    struct err err = {""};

    BUILD(&b, FORK, .child = 1);
    build_chunk_add(&b);
    build_chunk(&b)->magic = 0; /* space taken, nothing written yet */
    CHECK_UINT(read_all(&b, &err), 1);
    build_chunk(&b)->magic = TRACE_CHUNK_MAGIC;
    build_chunk(&b)->used_bytes = 0; /* nor does it say how much */
    CHECK_UINT(read_all(&b, &err), 1);
    b.bytes = TRACE_HEADER_BYTES; /* no chunk at all */
    CHECK_UINT(read_all(&b, &err), 0);
    free(b.data);
}

TEST(skips_kinds_of_the_future)
{
    struct build b = build_start();
    struct trace_reader r;
    struct trace_item item;
    struct err err = {""};

    const uint64_t words[] = {4711, 1, 2};
    build_put_text(&b, 250, "what is this", words, 3);
    build_put_text(&b, TRACE_FORK, NULL, words, 3); /* new fields, too */
    CHECK(!trace_reader_open_memory(&r, b.data, b.bytes, "T", &err));
    CHECK(trace_reader_next(&r, &item, &err) == 1);
    CHECK_UINT(item.head.kind, TRACE_FORK);
    CHECK_UINT(item.fields[2], 2);
    CHECK(trace_reader_next(&r, &item, &err) == 0);
    CHECK_UINT(r.unknown, 1);
    trace_reader_close(&r);
    free(b.data);
}

TEST(refuses_what_is_no_trace)
{
    struct build b = build_start();

    b.data[0] = 'M';
    check_error(&b, "T: is not a memsim trace");
    b = build_start();
    b.bytes = 10;
    check_error(&b, "T: is no memsim trace: 10 bytes only");
    b = build_start();
    build_header(&b, 1);
    check_error(&b, "T: is a trace of version 1, this memsim reads version 2; "
                    "use the memsim that wrote it");
    b = build_start();
    b.data[20] ^= 1;
    check_error(&b, "T: header: its checksum is wrong; the file is damaged");
}

TEST(refuses_impossible_chunk_sizes)
{
    const uint32_t sizes[] = {0, 64, 4097, 65u << 20, UINT32_MAX & ~7u};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct build b = build_start();
        struct trace_header *h = (struct trace_header *)b.data;
        char text[64];

        h->chunk_bytes = sizes[i];
        h->crc = 0;
        h->crc = crc32c(0, h, sizeof *h);
        snprintf(text, sizeof text, "T: header: chunks of %u bytes", sizes[i]);
        check_error(&b, text);
    }
}

#define DAMAGED "; the file is damaged"

TEST(names_the_place_of_damage_to_a_chunk)
{
    struct build b = build_start();

    build_chunk(&b)->magic ^= 1;
    check_error(&b, "T: chunk 0, offset 0: no chunk begins here" DAMAGED);
    b = build_start();
    build_chunk_add(&b);
    build_chunk(&b)->index = 2;
    check_error(&b, "T: chunk 1, offset 4: a chunk is missing" DAMAGED);
    b = build_start();
    build_chunk(&b)->used_bytes = BUILD_CHUNK + 8;
    check_error(&b, "T: chunk 0, offset 8: its length is impossible" DAMAGED);
    b = build_start();
    build_chunk(&b)->used_bytes = 71;
    check_error(&b, "T: chunk 0, offset 8: its length is impossible" DAMAGED);
    b = build_start();
    BUILD(&b, FORK, .child = 1);
    build_seal(&b);
    b.data[TRACE_HEADER_BYTES + 70] ^= 1;
    check_error(&b, "T: chunk 0, offset 20: its checksum is wrong" DAMAGED);
}

/* The first record, in a chunk whose checksum nobody looks at. */
static uint64_t *first_record(const struct build *b)
{
    return (uint64_t *)(build_chunk(b) + 1);
}

TEST(names_the_place_of_damage_to_a_record)
{
    struct build b = build_start();

    BUILD(&b, FORK, .child = 1);
    *first_record(&b) &= ~UINT64_C(0xff);
    check_error(&b, "T: chunk 0, offset 64: a record of no kind" DAMAGED);
    b = build_start();
    BUILD(&b, FORK, .child = 1);
    *first_record(&b) |= UINT64_C(2) << TRACE_WORD_FIELD_0;
    check_error(&b, "T: chunk 0, offset 64: a record is longer than its "
                    "chunk" DAMAGED);
    b = build_start();
    BUILD_TEXT(&b, NAME, "a name", .name = 1);
    first_record(&b)[1] = TRACE_TEXT_MAX + 1;
    check_error(&b, "T: chunk 0, offset 64: a text is too long" DAMAGED);
    b = build_start();
    BUILD_TEXT(&b, NAME, "a name", .name = 1);
    first_record(&b)[1] = 9;
    check_error(&b, "T: chunk 0, offset 64: a record is longer than its "
                    "chunk" DAMAGED);
    b = build_start();
    BUILD(&b, FORK, .child = 1);
    build_chunk(&b)->used_bytes += 8;
    first_record(&b)[2] = TRACE_NAME | TRACE_WORD_TEXT;
    check_error(&b, "T: chunk 0, offset 80: a record is cut" DAMAGED);
}

TEST(tells_threads_and_times_apart)
{
    const struct {
        uint32_t thread;
        uint64_t time_ns;
    } all[] = {{0, 5}, {0, 5}, {7, 6}, {0, 6}, {0, UINT64_C(1) << 40}};
    struct build b = build_start();
    struct trace_reader r;
    struct trace_item item;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        b.thread = all[i].thread;
        b.time_ns = all[i].time_ns;
        BUILD(&b, FORK, .child = i);
    }
    CHECK(!trace_reader_open_memory(&r, b.data, b.bytes, "T", NULL));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        CHECK(trace_reader_next(&r, &item, NULL) == 1);
        CHECK_UINT(item.fields[0], i);
        CHECK_UINT(item.head.thread, all[i].thread);
        CHECK_UINT(item.head.time_ns, all[i].time_ns);
    }
    CHECK(!trace_reader_next(&r, &item, NULL));
    CHECK_UINT(r.records, sizeof all / sizeof *all);
    trace_reader_close(&r);
    free(b.data);
}

TEST(leaves_away_fields_that_are_0)
{
    struct build b = build_start();
    struct trace_reader r;
    struct trace_item item;

    BUILD(&b, COPY, .stream = 7, .source = 9);
    CHECK_UINT(build_chunk(&b)->used_bytes, sizeof(struct trace_chunk) + 3 * 8);
    BUILD(&b, COPY, .device = 1, .stream = 1, .direction = 1, .destination = 1,
          .source = 1, .bytes = 1, .blocking = 1);
    BUILD(&b, COPY);
    CHECK(!trace_reader_open_memory(&r, b.data, b.bytes, "T", NULL));
    CHECK(trace_reader_next(&r, &item, NULL) == 1);
    CHECK_UINT(item.head.fields, 5);
    CHECK_UINT(item.fields[1], 7);
    CHECK_UINT(item.fields[3], 0);
    CHECK_UINT(item.fields[4], 9);
    CHECK(trace_reader_next(&r, &item, NULL) == 1);
    CHECK(trace_reader_next(&r, &item, NULL) == 1);
    CHECK_UINT(item.head.fields, 0);
    CHECK_UINT(item.fields[1], 0);
    trace_reader_close(&r);
    free(b.data);
}

TEST(survives_every_cut)
{
    struct build b = build_start();
    size_t whole;

    for (int i = 0; i < 300; i++)
        BUILD_TEXT(&b, NAME, "some text", .name = (uint64_t)i);
    whole = b.bytes;
    for (b.bytes = 0; b.bytes < whole; b.bytes += 7) {
        /* A copy of that length, so that ASan sees what lies beyond. */
        struct build cut = {.data = malloc(b.bytes + !b.bytes),
                            .bytes = b.bytes};
        struct err err = {""};

        memcpy(cut.data, b.data, b.bytes);
        int count = read_all(&cut, &err);
        CHECK((count < 0) == (err.text[0] != '\0'));
        CHECK(count <= 300);
        free(cut.data);
    }
    free(b.data);
}

/* A path for a test's own file. */
static const char *scratch(void)
{
    static char path[64];

    snprintf(path, sizeof path, "/tmp/test_trace_read.%d.trace", getpid());
    unlink(path);
    return path;
}

static uint64_t count_file(const char *path, uint16_t *last_kind)
{
    struct trace_reader r;
    struct trace_item item;
    struct err err = {""};
    uint64_t count = 0;

    if (trace_reader_open(&r, path, &err)) {
        CHECK_FAIL("%s", err.text);
        return 0;
    }
    while (trace_reader_next(&r, &item, &err) > 0) {
        *last_kind = item.head.kind;
        if (item.head.kind == TRACE_MARK)
            CHECK_UINT(item.fields[0], count);
        count++;
    }
    CHECK_STR(err.text, "");
    trace_reader_close(&r);
    return count;
}

static void put_marks(struct trace_writer *w, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        TRACE_PUT_TEXT(w, MARK, 0, i, "a mark", .domain = i);
}

TEST(reads_the_real_writer)
{
    const char *path = scratch();
    struct trace_writer w = TRACE_WRITER_INIT;
    struct err err = {""};
    uint16_t last;

    CHECK(!trace_writer_open(&w, path, 64 << 20, &err));
    put_marks(&w, 100000);
    CHECK_UINT(count_file(path, &last), 100000); /* while it is being written */
    trace_writer_close(&w, TRACE_END_EXIT, 0, 100000);
    CHECK_UINT(count_file(path, &last), 100001);
    CHECK_UINT(last, TRACE_END);
    unlink(path);
}

TEST(reads_what_a_killed_writer_left)
{
    const char *path = scratch();
    uint16_t last;
    pid_t pid = fork();

    if (!pid) {
        struct trace_writer w = TRACE_WRITER_INIT;
        if (!trace_writer_open(&w, path, 64 << 20, NULL))
            put_marks(&w, 54321);
        raise(SIGKILL);
    }
    waitpid(pid, NULL, 0);
    CHECK_UINT(count_file(path, &last), 54321);
    CHECK_UINT(last, TRACE_MARK);
    unlink(path);
}

/* A chunk that is full is appended, then slot 0 begins anew: a kill may come
 * before, within or between. */
TEST(reads_what_a_writer_left_that_was_killed_when_its_chunk_was_full)
{
    const char *path = scratch();
    struct trace_writer w = TRACE_WRITER_INIT;
    struct err err = {""};
    uint16_t last;
    uint64_t count = 0;

    CHECK(!trace_writer_open(&w, path, 64 << 20, &err));
    while (w.chunk->index < 2) {
        TRACE_PUT_TEXT(&w, MARK, 0, count, "a mark", .domain = count);
        count++;
    }
    CHECK_UINT(count_file(path, &last), count);
    w.chunk->used_bytes = sizeof *w.chunk;
    CHECK_UINT(count_file(path, &last), count - 1);
    w.chunk->index = 1;
    CHECK_UINT(count_file(path, &last), count - 1);
    /* records of chunk 2 without its header */
    CHECK(pwrite(w.fd, "records", 7,
                 TRACE_HEADER_BYTES + 3 * TRACE_CHUNK_BYTES + 64) == 7);
    CHECK_UINT(count_file(path, &last), count - 1);
    trace_writer_abandon(&w);
    unlink(path);
}

TEST(reads_a_trace_that_hit_its_limit)
{
    const char *path = scratch();
    struct trace_writer w = TRACE_WRITER_INIT;
    struct err err = {""};
    uint16_t last;

    CHECK(!trace_writer_open(&w, path, 2 << 20, &err));
    put_marks(&w, 100000);
    CHECK(count_file(path, &last) < 100000);
    CHECK_UINT(last, TRACE_END);
    unlink(path);
}

TEST(reports_files_that_are_not_there)
{
    struct trace_reader r;
    struct err err = {""};

    CHECK(trace_reader_open(&r, "/nowhere/x.trace", &err) == -1);
    CHECK_STR(err.text, "/nowhere/x.trace: No such file or directory");
}

TEST(kinds_are_found_by_number_and_name)
{
    const struct trace_kind_info *gemm = trace_kind_find_name("gemm");
    unsigned count = 0;

    CHECK(gemm && gemm->kind == TRACE_GEMM);
    CHECK(gemm == trace_kind_find(TRACE_GEMM));
    CHECK(!trace_kind_find(0));
    CHECK(!trace_kind_find(9));
    CHECK(!trace_kind_find(65535));
    CHECK(!trace_kind_find_name(""));
    for (const struct trace_kind_info *k = trace_kind_next(0); k;
         k = trace_kind_next(k->kind))
        count++;
#define X(...) +1
    CHECK_UINT(count, 0 TRACE_KINDS(X));
#undef X
    CHECK(trace_kind_for(TRACE_GEMM) == TRACE_FOR_TIME);
    CHECK(trace_kind_for(TRACE_BLOCK_FREE) == TRACE_FOR_MEMORY);
    CHECK(trace_kind_for(TRACE_EVENT_QUERY) == TRACE_FOR_ASIDE);
    CHECK(trace_kind_for(65535) == TRACE_FOR_TIME);
    CHECK_STR(gemm->fields[0], "name");
    CHECK_STR(gemm->fields[6], "batch");
    CHECK_UINT(gemm->field_count, 20);
    CHECK_UINT(trace_kind_find(TRACE_SETTING)->field_count, 0);
}

/* What files of this version contain: numbers of kinds, fields in their order.
 * A kind may be added, and a field behind a kind's last; then this sum is
 * another. Anything else needs a new TRACE_VERSION. */
TEST(the_layout_is_that_of_version_2)
{
    uint32_t sum = 0;
    char line[512];

    for (const struct trace_kind_info *k = trace_kind_next(0); k;
         k = trace_kind_next(k->kind)) {
        int n = snprintf(line, sizeof line, "%d %s", k->kind, k->name);

        for (unsigned i = 0; i < k->field_count; i++)
            n += snprintf(line + n, sizeof line - (size_t)n, " %s",
                          k->fields[i]);
        sum = crc32c(sum, line, (size_t)n);
    }
    CHECK_UINT(TRACE_VERSION, 2);
    CHECK_UINT(sum, 0xd71fcda7);
}

/* Kinds that trace_work takes for work are those with its fields first. */
TEST(work_begins_with_name_device_and_stream)
{
    static const uint64_t none[TRACE_FIELDS_MAX];

    for (const struct trace_kind_info *k = trace_kind_next(0); k;
         k = trace_kind_next(k->kind)) {
        const struct trace_item item = {.head = {.kind = (uint16_t)k->kind},
                                        .fields = none};
        bool is_work = k->field_count >= 3 && !strcmp(k->fields[0], "name") &&
                       !strcmp(k->fields[1], "device") &&
                       !strcmp(k->fields[2], "stream");

        if (is_work != (trace_work(&item) != NULL))
            CHECK_FAIL("%s", k->name);
    }
}

TEST(names_are_interned_by_id)
{
    struct trace_names names = {{0}};
    struct trace_item item = {.head = {.kind = TRACE_NAME, .fields = 1}};
    char text[16];

    CHECK_STR(trace_names_get(&names, 0), "");
    CHECK_STR(trace_names_get(&names, 5), "?");
    for (uint64_t id = 1; id < 3000; id++) {
        item.fields = TRACE_WORDS(NAME, .name = id * UINT64_C(0x100000001));
        item.text = text;
        item.head.text_bytes =
            (uint32_t)snprintf(text, sizeof text, "n%" PRIu64, id);
        trace_names_add(&names, &item);
    }
    CHECK_STR(trace_names_get(&names, 2999 * UINT64_C(0x100000001)), "n2999");
    CHECK_STR(trace_names_get(&names, UINT64_C(0x100000001)), "n1");
    CHECK_STR(trace_names_get(&names, 2), "?");
    trace_names_fini(&names);
}

/* Reads on in R, whose records are numbered from *NEXT. */
static void read_on(struct trace_reader *r, uint64_t *next)
{
    struct trace_item item;
    struct err err = {""};
    int rc;

    while ((rc = trace_reader_next(r, &item, &err)) > 0)
        if (item.head.kind == TRACE_FORK)
            CHECK_UINT(trace_as_fork(&item)->child, ++*next);
    CHECK_STR(err.text, "");
}

TEST(follows_a_trace_that_is_being_written)
{
    const char *path = scratch();
    struct trace_writer w;
    struct trace_reader r;
    struct err err = {""};
    uint64_t written = 0, next = 0;

    unlink(path);
    CHECK(!trace_writer_open(&w, path, 64 << 20, &err));
    CHECK(!trace_reader_open(&r, path, &err));
    r.follows = true;
    read_on(&r, &next);
    for (uint64_t some = 1; some < 200000; some *= 3) {
        for (uint64_t i = 0; i < some; i++) {
            written++;
            TRACE_PUT(&w, FORK, (uint32_t)(some & 3), written * 1000,
                      .child = written);
        }
        read_on(&r, &next);
        CHECK_UINT(next, written);
        read_on(&r, &next);
    }
    CHECK(r.chunk_index > 3);
    trace_writer_close(&w, TRACE_END_EXIT, 0, written * 1000);
    read_on(&r, &next);
    CHECK_UINT(next, written);
    trace_reader_close(&r);
    unlink(path);
}
