/* SPDX-License-Identifier: Apache-2.0
 * Mirrors c10/core/AllocatorConfig.cpp (2.10 and later) and
 * c10/cuda/CUDAAllocatorConfig.cpp (before) of PyTorch. */
#include "memsim/alloc/alloc_conf.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/suggest.h"
#include "common/base/units.h"

#define MAX_MIB    (UINT64_MAX >> 20)
#define UNIT_BYTES UINT64_C(512) /* kMinBlockSize */

/* A row states what its release does; those between two rows behave as the row
 * above them. The changes, as pull requests of pytorch/pytorch:
 *   2.6   #136174 max_non_split_rounding_mb
 *   2.7   #148378 no expandable segments in a MemPool with its own allocator
 *   2.8   #151487 MemPool(use_on_oom); #154746 a flush spares captures
 *   2.10  #161035 per_process_memory_fraction; 1.0 means unlimited; #159553 the
 *         options are read by c10/core/AllocatorConfig.cpp, whose bounds differ
 *         a little; the expandable segments of a pool are no fallback any more;
 *         of pools begun inside one another the innermost counts
 *   2.11  #169699 use_on_oom pools are tried before the cache is released;
 *         #169739 MemPool(no_split); #172056 large_segment_size_mb
 *   2.12  #178362 of equal blocks the oldest goes first, not the lowest
 *   2.13  #181830 only a capture is one, not any use of a private pool; #183591
 *         a block is as old as its segment; of equals the lowest */
static const struct alloc_rules all_rules[] = {
    {2, 5, .own_pool_expands = true, .scope_is_capture = true,
     .min_max_split_bytes = 21 * MIB},
    {2, 6, .own_pool_expands = true, .non_split_rounding_option = true,
     .scope_is_capture = true, .min_max_split_bytes = 21 * MIB},
    {2, 7, .non_split_rounding_option = true, .scope_is_capture = true,
     .min_max_split_bytes = 21 * MIB},
    {2, 8, .non_split_rounding_option = true, .pool_is_fallback = true,
     .fallback_is_last = true, .fallback_expands = true,
     .flush_spares_captures = true, .scope_is_capture = true,
     .min_max_split_bytes = 21 * MIB},
    {2, 10, .non_split_rounding_option = true, .pool_is_fallback = true,
     .fallback_is_last = true, .flush_spares_captures = true,
     .newest_capture_first = true, .rest_excludes_last = true,
     .fraction_option = true, .fraction_1_means_unlimited = true,
     .scope_is_capture = true, .min_max_split_bytes = 20 * MIB},
    {2, 11, .non_split_rounding_option = true, .pool_is_fallback = true,
     .flush_spares_captures = true, .newest_capture_first = true,
     .rest_excludes_last = true, .fraction_option = true,
     .fraction_1_means_unlimited = true, .large_segment_option = true,
     .pool_is_unsplit = true, .scope_is_capture = true,
     .min_max_split_bytes = 20 * MIB},
    {2, 12, .non_split_rounding_option = true, .pool_is_fallback = true,
     .flush_spares_captures = true, .newest_capture_first = true,
     .rest_excludes_last = true, .fraction_option = true,
     .fraction_1_means_unlimited = true, .large_segment_option = true,
     .pool_is_unsplit = true, .scope_is_capture = true, .age = ALLOC_AGE_BLOCK,
     .min_max_split_bytes = 20 * MIB},
    {2, 13, .non_split_rounding_option = true, .pool_is_fallback = true,
     .flush_spares_captures = true, .newest_capture_first = true,
     .rest_excludes_last = true, .fraction_option = true,
     .fraction_1_means_unlimited = true, .large_segment_option = true,
     .pool_is_unsplit = true, .age = ALLOC_AGE_SEGMENT,
     .min_max_split_bytes = 20 * MIB},
};

enum {
    RULES = sizeof all_rules / sizeof *all_rules,
    NEWEST_MINOR = 15, /* of 2, held against PyTorch (tests/torch) */
};

const struct alloc_rules *alloc_rules_find(const char *version, bool *known,
                                           struct err *err)
{
    unsigned major, minor;

    if (sscanf(version, "%u.%u", &major, &minor) != 2) {
        err_set(err,
                "torch version '%s': not a version; expected one like "
                "2.11.0",
                version);
        return NULL;
    }
    if (known)
        *known = major < 2 || (major == 2 && minor <= NEWEST_MINOR);
    for (int i = RULES - 1; i >= 0; i--) {
        const struct alloc_rules *r = &all_rules[i];

        if (major > r->major || (major == r->major && minor >= r->minor))
            return r;
    }
    err_set(err, "torch version '%s': older than the allocators known (%s)",
            version, alloc_rules_range());
    return NULL;
}

const char *alloc_rules_range(void)
{
    return "2.5 to 2.15";
}

void alloc_conf_init(struct alloc_conf *conf)
{
    *conf = (struct alloc_conf){
        .max_split_bytes = UINT64_MAX,
        .max_non_split_rounding_bytes = 20 * MIB,
        .large_segment_bytes = 20 * MIB,
        .memory_fraction = 1.0,
    };
}

/* A cursor over the text; a token is one of ",:[]" or a run of others. */
struct lexer {
    const char *text, *at;
    char token[64];
    size_t place; /* of the token, from 1 */
    const struct alloc_rules *rules;
    struct err *err;
};

static int lexer_fail(const struct lexer *l, const char *cause)
{
    if (!l->token[0])
        return err_set(l->err, "alloc-conf:%zu: ends too early: %s", l->place,
                       cause);
    return err_set(l->err, "alloc-conf:%zu: '%s': %s", l->place, l->token,
                   cause);
}

/* Reads the next token, which is empty at the end. As in ConfigTokenizer,
 * spaces vanish wherever they stand. */
static int lexer_next(struct lexer *l)
{
    size_t n = 0;

    while (*l->at == ' ')
        l->at++;
    l->place = (size_t)(l->at - l->text) + 1;
    if (*l->at && strchr(",:[]", *l->at)) {
        l->token[n++] = *l->at++;
    } else {
        for (; *l->at && !strchr(",:[]", *l->at); l->at++) {
            if (n + 1 == sizeof l->token)
                return lexer_fail(l, "the word is too long");
            if (*l->at != ' ')
                l->token[n++] = *l->at;
        }
    }
    l->token[n] = '\0';
    return 0;
}

static int lexer_expect(struct lexer *l, const char *token)
{
    char cause[32];

    if (lexer_next(l))
        return -1;
    if (!strcmp(l->token, token))
        return 0;
    snprintf(cause, sizeof cause, "expected '%s'%s", token,
             *token == ':' ? " and a value" : "");
    return lexer_fail(l, cause);
}

static int token_number(struct lexer *l, uint64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoull(l->token, &end, 10);
    if (!isdigit((unsigned char)l->token[0]) || *end || errno)
        return lexer_fail(l, "expected a whole number");
    return 0;
}

static int read_number(struct lexer *l, uint64_t *number)
{
    return lexer_next(l) ? -1 : token_number(l, number);
}

static int read_mib(struct lexer *l, uint64_t least_bytes, uint64_t *bytes)
{
    uint64_t mib;
    char cause[64];

    if (read_number(l, &mib))
        return -1;
    if (mib < least_bytes / MIB) {
        snprintf(cause, sizeof cause, "must be at least %llu",
                 (unsigned long long)(least_bytes / MIB));
        return lexer_fail(l, cause);
    }
    *bytes = (mib < MAX_MIB ? mib : MAX_MIB) * MIB;
    return 0;
}

static int read_fraction(struct lexer *l, double *fraction)
{
    char *end;

    if (lexer_next(l))
        return -1;
    *fraction = strtod(l->token, &end);
    if (end == l->token || *end || !(*fraction >= 0 && *fraction <= 1))
        return lexer_fail(l, "expected a number from 0 to 1");
    return 0;
}

/* No block may be kept whole that is smaller than a large segment. */
static uint64_t least_split_bytes(const struct lexer *l,
                                  const struct alloc_conf *c)
{
    return l->rules->large_segment_option ? c->large_segment_bytes
                                          : l->rules->min_max_split_bytes;
}

static int parse_max_split(struct lexer *l, struct alloc_conf *c)
{
    return read_mib(l, least_split_bytes(l, c), &c->max_split_bytes);
}

static int parse_non_split_rounding(struct lexer *l, struct alloc_conf *c)
{
    return read_mib(l, least_split_bytes(l, c),
                    &c->max_non_split_rounding_bytes);
}

static int parse_large_segment(struct lexer *l, struct alloc_conf *c)
{
    return read_mib(l, 11 * MIB, &c->large_segment_bytes);
}

static int parse_gc_threshold(struct lexer *l, struct alloc_conf *c)
{
    if (read_fraction(l, &c->gc_threshold))
        return -1;
    if (c->gc_threshold == 0 || c->gc_threshold == 1)
        return lexer_fail(l, "must lie between 0 and 1");
    return 0;
}

static int parse_memory_fraction(struct lexer *l, struct alloc_conf *c)
{
    return read_fraction(l, &c->memory_fraction);
}

static int parse_expandable(struct lexer *l, struct alloc_conf *c)
{
    if (lexer_next(l))
        return -1;
    c->expandable_segments = !strcmp(l->token, "True");
    if (!c->expandable_segments && strcmp(l->token, "False"))
        return lexer_fail(l, "expected True or False");
    return 0;
}

static int parse_backend(struct lexer *l, struct alloc_conf *c)
{
    (void)c;
    if (lexer_next(l))
        return -1;
    if (strcmp(l->token, "native"))
        return lexer_fail(l, "only the native allocator can be replayed");
    return 0;
}

static int parse_ignored(struct lexer *l, struct alloc_conf *c)
{
    (void)c;
    return lexer_next(l);
}

/* A switch whose rules are not mirrored. */
static int parse_off(struct lexer *l, struct alloc_conf *c)
{
    (void)c;
    if (lexer_next(l))
        return -1;
    return strcmp(l->token, "False") ? lexer_fail(l, "only False can be played")
                                     : 0;
}

static bool is_power2(uint64_t n)
{
    return n && !(n & (n - 1));
}

static int read_divisions(struct lexer *l, uint64_t *divisions)
{
    if (read_number(l, divisions))
        return -1;
    if (*divisions && !is_power2(*divisions))
        return lexer_fail(l, "divisions must be a power of two or 0");
    return 0;
}

static unsigned interval_of_mib(uint64_t mib)
{
    unsigned log2 = 63 - (unsigned)__builtin_clzll(mib);

    return log2 < ALLOC_ROUNDUP_INTERVALS ? log2 : ALLOC_ROUNDUP_INTERVALS - 1;
}

/* One "MIB:DIVISIONS" or ">:DIVISIONS" of a list. The first also covers the
 * intervals below its own, ">" those above the last one named, where none was
 * the first interval (parseRoundUpPower2Divisions). */
static int parse_interval(struct lexer *l, uint64_t *table, int *last)
{
    uint64_t mib = 0, divisions;
    bool rest = !strcmp(l->token, ">");

    if (!rest && token_number(l, &mib))
        return -1;
    if (!rest && !is_power2(mib))
        return lexer_fail(l, "intervals must be powers of two");
    if (lexer_expect(l, ":") || read_divisions(l, &divisions))
        return -1;
    int to = ALLOC_ROUNDUP_INTERVALS - 1;
    int from = (*last < 0 ? 0 : *last) + l->rules->rest_excludes_last;
    if (!rest) {
        to = (int)interval_of_mib(mib);
        from = *last < 0 ? 0 : to;
        *last = to;
    }
    for (int i = from; i <= to; i++)
        table[i] = divisions;
    return 0;
}

static int parse_roundup(struct lexer *l, struct alloc_conf *c)
{
    uint64_t divisions;
    int last = -1;

    if (lexer_next(l))
        return -1;
    if (strcmp(l->token, "[")) {
        if (token_number(l, &divisions))
            return -1;
        if (!is_power2(divisions))
            return lexer_fail(l, "divisions must be a power of two");
        for (int i = 0; i < ALLOC_ROUNDUP_INTERVALS; i++)
            c->roundup_divisions[i] = divisions;
        return 0;
    }
    do {
        if (lexer_next(l) || parse_interval(l, c->roundup_divisions, &last) ||
            lexer_next(l))
            return -1;
    } while (!strcmp(l->token, ","));
    return strcmp(l->token, "]") ? lexer_fail(l, "expected ',' or ']'") : 0;
}

static const struct option {
    const char *name;
    int (*parse)(struct lexer *l, struct alloc_conf *c);
    size_t known; /* where in struct alloc_rules it says so; 0: always */
} options[] = {
    {"max_split_size_mb", parse_max_split, 0},
    {"max_non_split_rounding_mb", parse_non_split_rounding,
     offsetof(struct alloc_rules, non_split_rounding_option)},
    {"large_segment_size_mb", parse_large_segment,
     offsetof(struct alloc_rules, large_segment_option)},
    {"garbage_collection_threshold", parse_gc_threshold, 0},
    {"roundup_power2_divisions", parse_roundup, 0},
    {"expandable_segments", parse_expandable, 0},
    {"per_process_memory_fraction", parse_memory_fraction,
     offsetof(struct alloc_rules, fraction_option)},
    {"backend", parse_backend, 0},
    {"release_lock_on_cudamalloc", parse_ignored, 0},
    {"pinned_use_cuda_host_register", parse_ignored, 0},
    {"pinned_num_register_threads", parse_ignored, 0},
    {"pinned_use_background_threads", parse_ignored, 0},
    {"pinned_reserve_segment_size_mb", parse_ignored, 0},
    {"pinned_max_round_threshold_mb", parse_ignored, 0},
    {"pinned_max_cached_size_mb", parse_ignored, 0},
    {"pinned_free_catch_all", parse_ignored, 0},
    {"throw_on_cudamalloc_oom", parse_off, 0},
    {"graph_capture_record_stream_reuse", parse_ignored, 0},
};

/* Says what could have been meant, or what there is. */
static void fail_unknown(const struct lexer *l)
{
    char cause[160] = "not an allocator option; those that matter here are "
                      "max_split_size_mb, roundup_power2_divisions, "
                      "garbage_collection_threshold and expandable_segments";
    struct suggest nearest;

    suggest_start(&nearest, l->token, 1);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        suggest_offer(&nearest, options[i].name);
    if (nearest.count)
        snprintf(cause, sizeof cause,
                 "not an allocator option; did you mean %s?", nearest.names[0]);
    lexer_fail(l, cause);
}

static const struct option *option_find(const struct lexer *l)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const struct option *o = &options[i];

        if (strcmp(l->token, o->name))
            continue;
        if (o->known && !*((const bool *)l->rules + o->known))
            lexer_fail(l, "this torch version does not know the option");
        else
            return o;
    }
    fail_unknown(l);
    return NULL;
}

/* Reads the options, or only ONLY's where that is not NULL. */
static int parse_options(struct lexer *l, struct alloc_conf *conf,
                         const char *only)
{
    if (lexer_next(l))
        return -1;
    while (l->token[0]) {
        const struct option *o = option_find(l);
        struct alloc_conf unused = *conf;
        bool wanted = o && (!only || !strcmp(o->name, only));

        if (!o || lexer_expect(l, ":") ||
            o->parse(l, wanted ? conf : &unused) || lexer_next(l))
            return -1;
        if (!l->token[0])
            return 0;
        if (strcmp(l->token, ","))
            return lexer_fail(l, "expected ','");
        if (lexer_next(l))
            return -1;
    }
    return 0;
}

int alloc_conf_parse(struct alloc_conf *conf, const char *text,
                     const struct alloc_rules *rules, struct err *err)
{
    struct lexer l = {.text = text, .at = text, .rules = rules};
    struct alloc_conf next;

    /* Most settings start from their defaults each time; these stay. */
    alloc_conf_init(&next);
    next.expandable_segments = conf->expandable_segments;
    next.memory_fraction = conf->memory_fraction;
    next.large_segment_bytes = conf->large_segment_bytes;
    next.max_non_split_rounding_bytes = conf->max_non_split_rounding_bytes;
    /* The segment size comes first, wherever it stands: others are bound by
     * it. Its own errors are found below. */
    parse_options(&l, &next, "large_segment_size_mb");
    if (rules->large_segment_option)
        next.max_non_split_rounding_bytes = next.large_segment_bytes;
    l.at = text;
    l.err = err;
    if (parse_options(&l, &next, NULL))
        return -1;
    *conf = next;
    return 0;
}

/* roundup_power2_next_division: DIVISIONS steps between powers of two. */
static uint64_t round_to_division(uint64_t bytes, uint64_t divisions)
{
    unsigned log2 = 63 - (unsigned)__builtin_clzll(bytes);
    unsigned log2_divisions = 63 - (unsigned)__builtin_clzll(divisions);
    uint64_t floor = UINT64_C(1) << log2;
    uint64_t step = log2 < log2_divisions ? 0 : floor >> log2_divisions;

    if (bytes == floor)
        return bytes;
    if (!step)
        return floor << 1;
    return (bytes + step - 1) & ~(step - 1);
}

/* AllocatorConfig::roundup_power2_divisions: intervals by power of two, of
 * which the first holds everything below 2 MiB. */
static uint64_t divisions_for(const struct alloc_conf *conf, uint64_t bytes)
{
    int interval = 63 - __builtin_clzll(bytes) - 20;

    if (interval < 0)
        interval = 0;
    if (interval >= ALLOC_ROUNDUP_INTERVALS)
        interval = ALLOC_ROUNDUP_INTERVALS - 1;
    return conf->roundup_divisions[interval];
}

/* round_size */
uint64_t alloc_conf_round(const struct alloc_conf *conf, uint64_t bytes)
{
    if (bytes < UNIT_BYTES)
        return UNIT_BYTES;
    uint64_t divisions = divisions_for(conf, bytes);
    if (divisions > 1 && bytes > UNIT_BYTES * divisions)
        return round_to_division(bytes, divisions);
    return (bytes + UNIT_BYTES - 1) & ~(UNIT_BYTES - 1);
}
