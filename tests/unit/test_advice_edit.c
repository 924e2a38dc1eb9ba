/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/advice_edit.h"

#include "check.h"

/* A script of two lines, as places.py tells it. */
static const char places_text[] =
    "[{\"roles\":[\"optimizer\"],\"file\":\"/t/a.py\",\"class\":\"AdamW\","
    "\"at\":[7,6,7,39],\"text\":\"AdamW(net.parameters(), fused=False)\","
    "\"function\":{\"text\":\"AdamW\",\"at\":[7,6,7,11],\"name\":\"\"},"
    "\"arguments\":[{\"text\":\"net.parameters()\",\"at\":[7,12,7,28],"
    "\"name\":\"\"},{\"text\":\"fused=False\",\"at\":[7,30,7,41],"
    "\"name\":\"fused\"}],\"top\":3,\"statement\":[7,2],\"model\":\"net\"},"
    "{\"roles\":[\"block\"],\"file\":\"/t/a.py\",\"list\":\"blocks\","
    "\"at\":[5,4,5,15],\"text\":\"block(x, m)\","
    "\"function\":{\"text\":\"block\",\"at\":[5,4,5,9],\"name\":\"\"},"
    "\"arguments\":[{\"text\":\"x\",\"at\":[5,10,5,11],\"name\":\"\"},"
    "{\"text\":\"m\",\"at\":[5,13,5,14],\"name\":\"\"}],\"top\":3}]";

static struct module_list row = {.name = "blocks", .members = 2};
static const struct changeable script = {.lists = {.rows = &row, .count = 1}};

/* The edits of CHANGE as JSON; "null". */
static const char *edits(const struct change *change, const char *places)
{
    static char text[2048];
    cJSON *known = cJSON_Parse(places);
    cJSON *made = advice_edits(change, &script, "", known);
    char *printed = made ? cJSON_PrintUnformatted(made) : NULL;

    snprintf(text, sizeof text, "%s", printed ? printed : "null");
    cJSON_free(printed);
    cJSON_Delete(made);
    cJSON_Delete(known);
    return text;
}

TEST(a_call_is_wrapped_and_what_it_names_imported)
{
    bool list = true;
    const struct change change = {.checkpoint = &list};

    CHECK_STR(edits(&change, places_text),
              "[{\"kind\":\"call\",\"file\":\"/t/a.py\",\"line\":5,"
              "\"column\":4,\"end_line\":5,\"end_column\":15,"
              "\"old\":\"block(x, m)\",\"new\":"
              "\"torch.utils.checkpoint.checkpoint(block, x, m, "
              "use_reentrant=False)\"},"
              "{\"kind\":\"statement\",\"file\":\"/t/a.py\",\"line\":3,"
              "\"column\":0,\"end_line\":3,\"end_column\":0,\"old\":\"\","
              "\"new\":\"import torch.utils.checkpoint\\n\"}]");
}

TEST(an_argument_takes_the_place_of_the_one_of_its_name)
{
    const struct change change = {.state = {.fused = true}};

    CHECK_STR(edits(&change, places_text),
              "[{\"kind\":\"argument\",\"file\":\"/t/a.py\",\"line\":7,"
              "\"column\":30,\"end_line\":7,\"end_column\":41,"
              "\"old\":\"fused=False\",\"new\":\"fused=True\"}]");
}

TEST(what_is_not_known_is_not_guessed)
{
    bool list = true;
    const struct change checkpoint = {.checkpoint = &list};
    const struct change int8 = {.state = {.int8 = true}};
    const struct change both = {.checkpoint = &list, .loss_chunks = 8};

    CHECK_STR(edits(&checkpoint, "[]"), "null");
    CHECK_STR(edits(&checkpoint, "[{\"roles"), "null");
    /* bitsandbytes' optimizers have no argument "fused" */
    CHECK_STR(edits(&int8, places_text), "null");
    /* of two changes one takes more than edits */
    CHECK_STR(edits(&both, places_text), "null");
}

TEST(variables_and_options_are_edits)
{
    cJSON *made = cJSON_CreateArray();

    advice_edit_environment(made, "A", "b:c");
    advice_edit_option(made, "--batch", "4");
    char *text = cJSON_PrintUnformatted(made);
    CHECK_STR(text,
              "[{\"kind\":\"environment\",\"name\":\"A\",\"value\":\"b:c\"},"
              "{\"kind\":\"option\",\"name\":\"--batch\",\"value\":\"4\"}]");
    cJSON_free(text);
    cJSON_Delete(made);
}
