/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/thing_text.h"

#include <stdlib.h>

#include "check.h"

static const char *told(const char *label, const char *where, size_t width)
{
    static char out[THING_TEXT_BYTES];
    struct peak_thing t = {0};

    snprintf(t.label, sizeof t.label, "%s", label);
    snprintf(t.where, sizeof t.where, "%s", where);
    return thing_text(&t, width, out);
}

TEST(a_long_name_is_shortened_at_dots)
{
    const char *label = "exp_avg of model.layers.*.mlp.down_proj.weight";

    CHECK_STR(told(label, "", 60), label);
    CHECK_STR(told(label, "", 35), "exp_avg of ...mlp.down_proj.weight");
    CHECK_STR(told(label, "", 30), "exp_avg of ...down_proj.weight");
}

TEST(a_long_operator_loses_its_first_words)
{
    const char *label =
        "_scaled_dot_product_flash_attention_backward of model.layers.*.attn";

    CHECK_STR(told(label, "", 40),
              "...flash_attention_backward of ...attn");
    CHECK_STR(told(label, "", 24), "...backward of ...attn");
}

TEST(a_category_goes_first)
{
    CHECK_STR(told("add of blocks.* (activation)", "", 28),
              "add of blocks.* (activation)");
    CHECK_STR(told("add of blocks.* (activation)", "", 20), "add of blocks.*");
    CHECK_STR(told("add of blocks.*", "train.py:12", 40),
              "add of blocks.*, train.py:12");
}
