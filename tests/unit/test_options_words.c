/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/options_words.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

struct values {
    const char *gpu;
    uint64_t memory;
    uint32_t gpus;
    double limit;
    int color;
    bool quiet;
};

#define VALUE(field) .offset = offsetof(struct values, field)

static const struct option_row rows[] = {
    {"gpu", 0, OPTION_STRING, "NAME", VALUE(gpu)},
    {"memory", 0, OPTION_BYTES, "SIZE", VALUE(memory)},
    {"gpus", 0, OPTION_COUNT, "N", VALUE(gpus), .maximum = 16},
    {"fail-above", 0, OPTION_PERCENT, "PCT", VALUE(limit)},
    {"color", 0, OPTION_CHOICE, "auto|always|never", VALUE(color)},
    {"quiet", 'q', OPTION_FLAG, NULL, VALUE(quiet)},
    {0},
};

static const struct values defaults = {.gpu = "h100", .gpus = 1};

/* The words for V, joined by blanks. */
static void joined(const struct values *v, char *text, size_t size)
{
    char **words = NULL;
    size_t count = 0;

    text[0] = '\0';
    options_words_add(&words, &count, rows, v, &defaults);
    for (size_t i = 0; i < count; i++) {
        snprintf(text + strlen(text), size - strlen(text), "%s%s",
                 i ? " " : "", words[i]);
        free(words[i]);
    }
    free(words);
}

TEST(what_is_as_usual_is_no_word)
{
    char text[200], same[] = "h100";
    struct values v = defaults;

    v.gpu = same;
    joined(&v, text, sizeof text);
    CHECK_STR(text, "");
}

TEST(every_type_is_a_word_that_is_read_again)
{
    struct values v = {"l4 x", 1 << 30, 8, 92.5, 2, true}, again = defaults;
    struct options options = {.command = "x", .rows = rows};
    struct operands operands;
    struct err err = {""};
    char text[200], **words = NULL, **argv;
    size_t count = 0;

    joined(&v, text, sizeof text);
    CHECK_STR(text, "--gpu=l4 x --memory=1073741824 --gpus=8 "
                    "--fail-above=92.5 --color=never --quiet");
    options_words_add(&words, &count, rows, &v, &defaults);
    argv = calloc(count + 2, sizeof *argv);
    argv[0] = "x";
    memcpy(argv + 1, words, count * sizeof *argv);
    CHECK(options_parse(&options, (int)count + 1, argv, &again, &operands,
                        &err) == OPTIONS_OK);
    CHECK_STR(again.gpu, v.gpu);
    CHECK(again.memory == v.memory && again.gpus == v.gpus);
    CHECK(again.limit == v.limit && again.color == v.color && again.quiet);
    for (size_t i = 0; i < count; i++)
        free(words[i]);
    free(words);
    free(argv);
}

TEST(names_are_separated_by_commas)
{
    char *names = options_words_names(rows);

    CHECK_STR(names, "gpu,memory,gpus,fail-above,color,quiet");
    free(names);
}
