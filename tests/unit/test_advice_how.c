/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/advice_how.h"

#include "check.h"

TEST(a_framework_has_a_way_of_its_own)
{
    bool list = true;
    const struct change checkpoint = {.checkpoint = &list};
    const struct change int8 = {.state = {.int8 = true}};

    CHECK_STR(advice_way(&checkpoint, "transformers", NULL).how,
              "model.gradient_checkpointing_enable()");
    CHECK_STR(advice_way(&checkpoint, "transformers.Trainer", NULL).how,
              "TrainingArguments(gradient_checkpointing=True)");
    CHECK_STR(advice_way(&int8, "transformers.Trainer", NULL).how,
              "TrainingArguments(optim=\"adamw_bnb_8bit\")");
    CHECK_STR(advice_way(&int8, "lightning", NULL).how,
              "bitsandbytes.optim.AdamW8bit in place of AdamW");
    CHECK(!advice_way(&(struct change){.uncached_casts = true}, "", NULL).how);
}
