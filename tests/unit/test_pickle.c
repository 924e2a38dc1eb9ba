/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/pickle.h"
#include "check.h"

static struct pickle *pickle;
static struct err err;

/* Decodes a string literal, NULs and all. */
#define PARSE(text) parse(text, sizeof(text) - 1)

static const struct pickle_value *parse(const char *data, size_t bytes)
{
    pickle_free(pickle);
    err_clear(&err);
    pickle = pickle_parse(data, bytes, "p", &err);
    return pickle ? pickle_root(pickle) : NULL;
}

static int64_t number(const struct pickle_value *v)
{
    return v && v->type == PICKLE_INT ? v->number : INT64_MIN;
}

TEST(reads_numbers)
{
    CHECK(PARSE("\x80\x02N.")->type == PICKLE_NONE);
    CHECK(PARSE("\x80\x02\x88.")->number == 1);
    CHECK(PARSE("\x80\x02\x89.")->number == 0);
    CHECK(number(PARSE("\x80\x02K\xff.")) == 255);
    CHECK(number(PARSE("\x80\x02M\x34\x12.")) == 0x1234);
    CHECK(number(PARSE("\x80\x02J\xff\xff\xff\xff.")) == -1);
    CHECK(number(PARSE("\x80\x02\x8a\x00.")) == 0);
    CHECK(number(PARSE("\x80\x02\x8a\x02\x00\xff.")) == -256);
    CHECK(number(PARSE("\x80\x02\x8a\x05\x00\x00\x00\x00\x01.")) == INT64_C(1)
                                                                        << 32);
    CHECK(
        number(PARSE("\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0.")) ==
        -1); /* 2^64 - 1, as 64 bits */
    CHECK(PARSE("\x80\x02G\x3f\xf8\0\0\0\0\0\0.")->real == 1.5);
}

/* Each byte would be a list of its own. */
TEST(refuses_what_would_take_too_much_memory)
{
    const size_t bytes = 4000000;
    char *data = malloc(bytes);

    memset(data, ']', bytes);
    memcpy(data, "\x80\x04", 2);
    data[bytes - 1] = '.';
    CHECK(!parse(data, bytes));
    CHECK(strstr(err.text, "too many values for a file of this size"));
    free(data);
}

TEST(reads_containers)
{
    uint64_t budget = 100;
    const struct pickle_value *v =
        PARSE("\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01"
              "a\x94](K\x01K\x02K\x03"
              "e\x8c\x01"
              "bK\x07\x86u.");

    CHECK(!v); /* a key without a value: ("b", 7) is one thing */
    v = PARSE("\x80\x04}\x94(\x8c\x01"
              "a\x94](K\x01K\x02K\x03"
              "e\x8c\x01"
              "bK\x07K\x08\x86u.");
    CHECK(v && v->type == PICKLE_DICT && pickle_count(v) == 4);
    const struct pickle_value *a = pickle_find(v, "a", &budget);
    const struct pickle_value *b = pickle_find(v, "b", &budget);
    CHECK(a && a->type == PICKLE_LIST && pickle_count(a) == 3);
    CHECK(number(pickle_item(a, 2)) == 3 && !pickle_item(a, 3));
    CHECK(b && b->type == PICKLE_TUPLE && number(pickle_item(b, 1)) == 8);
    CHECK(!pickle_find(v, "c", &budget) && !pickle_find(a, "a", &budget));
    CHECK(budget == 100 - 2 - 1 - 2);
    budget = 0;
    CHECK(!pickle_find(v, "a", &budget));
}

TEST(shares_what_is_shared)
{
    /* x = []; [x, x] after x.append(1) */
    const struct pickle_value *v = PARSE("\x80\x02](]q\x00K\x01"
                                         "ah\x00"
                                         "e.");

    CHECK(pickle_count(v) == 2);
    CHECK(pickle_count(pickle_item(v, 1)) == 1);
    /* a list in itself */
    v = PARSE("\x80\x02]q\x00h\x00"
              "a.");
    CHECK(pickle_count(pickle_item(pickle_item(v, 0), 0)) == 1);
}

TEST(the_last_of_equal_keys_counts)
{
    uint64_t budget = 10;

    CHECK(number(pickle_find(PARSE("\x80\x02}(X\x01\0\0\0kK\x01X\x01\0\0\0kK"
                                   "\x02u."),
                             "k", &budget)) == 2);
}

TEST(refuses_what_runs)
{
    const char *bad[] = {
        "\x80\x02"
        "cos\nsystem\n.",
        "\x80\x02\x8c\x02os\x8c\x06system\x93.", /* STACK_GLOBAL */
        "\x80\x02N)R.",                          /* REDUCE */
        "\x80\x02N}b.",                          /* BUILD */
        "\x80\x02(i__main__\nX\n.",              /* INST */
        "\x80\x02(No.",                          /* OBJ */
        "\x80\x02N)\x81.",                       /* NEWOBJ */
        "\x80\x02PX\n.",                         /* PERSID */
        "\x80\x02NQ.",                           /* BINPERSID */
        "\x80\x02\x82\x01.",                     /* EXT1 */
        "\x80\x04\x97.",                         /* NEXT_BUFFER */
        "\x80\x04\x8f.",                         /* EMPTY_SET */
        "I1\n.",                                 /* protocol 0 */
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(!parse(bad[i], strlen(bad[i])));
        CHECK(strstr(err.text, "builds more than plain data") != NULL);
    }
    parse(bad[0], strlen(bad[0]));
    CHECK_STR(err.text, "p:byte 2: opcode 0x63 builds more than plain data; a "
                        "memory snapshot has none such");
}

TEST(refuses_what_is_broken)
{
    const struct {
        const char *data;
        size_t bytes;
    } bad[] = {
#define BAD(text) {text, sizeof(text) - 1}
        BAD(""),
        BAD("\x80"),
        BAD("\x80\x06N."),
        BAD("\x80\x02"),
        BAD("\x80\x02."),
        BAD("\x80\x02NN."),
        BAD("\x80\x02(."),
        BAD("\x80\x02(N."),
        BAD("\x80\x02N.N"),
        BAD("\x80\x02"
            "e."),
        BAD("\x80\x02"
            "0."),
        BAD("\x80\x02N(0"
            "0."),
        BAD("\x80\x02"
            "1."),
        BAD("\x80\x02Na."),
        BAD("\x80\x02NNs."),
        BAD("\x80\x02}NNNs."),
        BAD("\x80\x02](Nu."),
        BAD("\x80\x02}(Nu."),
        BAD("\x80\x02(Nd."),
        BAD("\x80\x02h\x00."),
        BAD("\x80\x02Nq\x01."),
        BAD("\x80\x02q\x00."),
        BAD("\x80\x02Nr\xff\xff\xff\xff."),
        BAD("\x80\x02\x85."),
        BAD("\x80\x02NN\x87."),
        BAD("\x80\x02N(\x85."),
        BAD("\x80\x02X\xff\xff\xff\xffx."),
        BAD("\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\xff."),
        BAD("\x80\x02\x8a\x0a\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01."),
        BAD("\x80\x02\x8a\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01."),
        BAD("\x80\x02\x8b\xff\xff\xff\xff."),
        BAD("\x80\x02G\x01."),
        BAD("\x80\x02](N(a."),
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (parse(bad[i].data, bad[i].bytes))
            CHECK_FAIL("case %zu was taken", i);
        CHECK(!strncmp(err.text, "p:byte ", 7));
    }
}

TEST(depth_costs_nothing)
{
    size_t n = 10000;
    char *data = malloc(2 * n + 3);

    memcpy(data, "\x80\x02", 2);
    memset(data + 2, ']', n);
    memset(data + 2 + n, 'a', n - 1);
    data[2 * n + 1] = '.';
    CHECK(pickle_count(parse(data, 2 * n + 2)) == 1);
    memset(data + 2, '(', 2 * n);
    CHECK(!parse(data, 2 * n + 2));
    pickle_free(pickle);
    pickle = NULL;
    free(data);
}
