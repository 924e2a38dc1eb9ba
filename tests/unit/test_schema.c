/* SPDX-License-Identifier: Apache-2.0
 * The table of JSON names, and the check of documents against it. */
#include "memsim/report/json/schema.h"

#include "check.h"

static bool base_is_known(const char *base)
{
    static const char *const plain[] = {"uint", "int",  "number",
                                        "bool", "text", "hex"};

    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!strcmp(base, plain[i]))
            return true;
    return strchr(base, '|') || schema_object_find(base);
}

TEST(every_row_has_a_type_and_a_meaning)
{
    for (const struct schema_object *o = schema_objects; o->name; o++) {
        CHECK(schema_object_find(o->name) == o);
        CHECK(o->meaning[0]);
        CHECK(!o->of || schema_object_find(o->of));
        for (const struct schema_field *f = o->fields; f->name; f++) {
            if (!base_is_known(schema_type_parse(f->type).base))
                CHECK_FAIL("%s.%s: type %s", o->name, f->name, f->type);
            if (schema_field_find(o, f->name) != f)
                CHECK_FAIL("%s.%s: two rows", o->name, f->name);
            if (!f->meaning || !f->meaning[0])
                CHECK_FAIL("%s.%s: no meaning", o->name, f->name);
        }
    }
}

static bool is_used(const char *name)
{
    for (const char *const *d = schema_documents; *d; d++)
        if (!strcmp(*d, name))
            return true;
    for (const struct schema_object *o = schema_objects; o->name; o++) {
        if (o->of && !strcmp(o->of, name))
            return true;
        for (const struct schema_field *f = o->fields; f->name; f++)
            if (!strcmp(schema_type_parse(f->type).base, name))
                return true;
    }
    return false;
}

TEST(every_object_is_part_of_a_document)
{
    for (const struct schema_object *o = schema_objects; o->name; o++)
        if (!is_used(o->name))
            CHECK_FAIL("%s is not used", o->name);
}

/* A report without ranks, with "@" in place of more members. */
#define REPORT(more)                                                           \
    "{\"schema\": 1, \"version\": \"0.2.0\","                                  \
    "\"verdict\": \"fits\", \"exit_status\": 0,"                               \
    "\"command_status\": 0, \"command\": [\"python\"],"                        \
    "\"gpu\": {\"name\": \"h\", \"device_name\": \"H\","                       \
    "\"memory_bytes\": 85017755648}, \"seconds\": 1.5, \"ranks\": [],"         \
    "\"failed_allocations\": 0, \"failed_processes\": [], \"notes\": [], \"guesses\": []" more "}"

/* What the check says of TEXT as the document NAME; "" where it is right. */
static const char *said(const char *name, const char *text)
{
    static struct err err;
    cJSON *json = cJSON_Parse(text);

    CHECK(json != NULL);
    err = (struct err){""};
    CHECK(!schema_check(name, json, &err) == !err.text[0]);
    cJSON_Delete(json);
    return err.text;
}

TEST(a_document_that_is_right_passes)
{
    CHECK_STR(said("report", REPORT("")), "");
    CHECK_STR(said("report", REPORT(", \"torch\": \"2.11.0\"")), "");
    CHECK_STR(said("peak", "{\"time_ns\": 0, \"step\": 0, \"phase\": \"x\"}"),
              "");
    CHECK_STR(said("card", "{\"name\": \"\", \"device_name\": \"\","
                           "\"memory_bytes\": 0}"),
              "");
}

TEST(a_member_without_a_row_is_an_error)
{
    CHECK_STR(said("report", REPORT(", \"launches\": 3")),
              "launches has no row in schema_table.c, object report");
    CHECK_STR(said("report",
                   REPORT(", \"guesses\": [{\"operator\": \"\", \"module\":"
                          "\"\", \"what\": \"\", \"times\": 1, \"elements\":"
                          "1, \"chosen\": 1, \"more\": 1}]")),
              "guesses[0].more has no row in schema_table.c, object guess");
}

TEST(a_member_that_is_missing_is_an_error)
{
    CHECK_STR(said("card", "{\"name\": \"\", \"memory_bytes\": 0}"),
              " lacks device_name");
    CHECK_STR(said("report", "[]"), " is not an object: report");
}

TEST(a_member_of_another_type_is_an_error)
{
    static const char *const bad[] = {
        "{\"time_ns\": -1, \"step\": 0, \"phase\": \"x\"}",
        "{\"time_ns\": 0.5, \"step\": 0, \"phase\": \"x\"}",
        "{\"time_ns\": \"0\", \"step\": 0, \"phase\": \"x\"}",
        "{\"time_ns\": null, \"step\": 0, \"phase\": \"x\"}",
        "{\"time_ns\": [], \"step\": 0, \"phase\": \"x\"}",
        "{\"time_ns\": 0, \"step\": 0, \"phase\": 3}",
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(said("peak", bad[i])[0]);
    CHECK_STR(said("report", REPORT(", \"notes\": \"none\"")),
              "notes is not a list of text");
    CHECK_STR(said("report", REPORT(", \"verdict\": \"maybe\"")),
              "verdict is not fits|grows|input|host-memory|oom|over-limit|failed|"
              "unknown|none");
    CHECK_STR(said("owner", "{\"name\": \"\", \"bytes\": 1, \"categories\":"
                            "{\"gradient\": true}}"),
              "categories.gradient is not uint");
}

TEST(null_is_only_where_the_row_says_so)
{
    CHECK_STR(said("report", REPORT(", \"torch\": null")), "torch is not text");
    CHECK(schema_type_parse("nullable uint").nullable);
    CHECK_STR(said("fit_batch",
                   "{\"schema\": 1, \"version\": \"0.2.0\","
                   "\"verdict\": \"oom\", \"exit_status\": 1,"
                   "\"command\": [], \"gpu\": {\"name\": \"\", \"device_name\":"
                   "\"\", \"memory_bytes\": 1}, \"largest_batch\": null,"
                   "\"best_batch\": null, \"smallest_too_large\": 1,"
                   "\"from\": 1, \"to\": 1,"
                   "\"multiple_of\": 1, \"uneven\": false, \"tries\": []}"),
              "");
}
