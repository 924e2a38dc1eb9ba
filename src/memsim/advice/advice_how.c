/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/advice_how.h"

#include <string.h>

enum kind {
    CHECKPOINT,
    OPTIMIZER_8BIT,
    OPTIMIZER_FUSED,
    OPTIMIZER_BF16,
    OPTIMIZER_SHARDED,
    LOSS_IN_PARTS,
    SET_TO_NONE,
    UNCACHED,
    NO_GRAD,
    KEPT_ON_CPU,
    SHARDED,
    KINDS
};

/* Of a change that is one alone. */
static enum kind kind_of(const struct change *c)
{
    const struct {
        bool is;
        enum kind kind;
    } kinds[] = {
        {c->checkpoint != NULL, CHECKPOINT},
        {c->loss_chunks > 1, LOSS_IN_PARTS},
        {c->state.shards > 1, OPTIMIZER_SHARDED},
        {c->fsdp > 1, SHARDED},
        {c->free_gradients, SET_TO_NONE},
        {c->uncached_casts, UNCACHED},
        {c->no_grad, NO_GRAD},
        {c->kept_on_cpu, KEPT_ON_CPU},
        {c->state.int8, OPTIMIZER_8BIT},
        {c->state.fused, OPTIMIZER_FUSED},
        {c->state.bf16, OPTIMIZER_BF16},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].is)
            return kinds[i].kind;
    return KINDS;
}

#define ARGUMENT(role, text) {{role, EDIT_ARGUMENT, text}}
#define TRAINING(text)       ARGUMENT("training_arguments", text)

#define CHECKPOINT_HOW                                                         \
    "torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False) in "     \
    "place of block(x)"
#define SWITCH_ON      "{model}.{switch}()"

/* The first row of a kind whose call is known is taken, else the last one for
 * the framework. One without a row of its own gets that of plain PyTorch. */
static const struct row {
    enum kind kind;
    const char *framework;
    struct advice_way way;
} rows[] = {
    {CHECKPOINT, "",
     {CHECKPOINT_HOW,
      {{"block", EDIT_CALL,
        "torch.utils.checkpoint.checkpoint({function}, {arguments}, "
        "use_reentrant=False)"}},
      "torch.utils.checkpoint", NULL}},
    {CHECKPOINT, "",
     {CHECKPOINT_HOW,
      {{"sequence", EDIT_CALL,
        "torch.utils.checkpoint.checkpoint_sequential({function}, "
        "len({function}), {arguments}, use_reentrant=False)"}},
      "torch.utils.checkpoint", NULL}},
    {CHECKPOINT, "",
     {"model.gradient_checkpointing_enable(), or what the model has for it",
      {{"wrapped of what checkpoints itself", EDIT_STATEMENT, SWITCH_ON}},
      NULL, NULL}},
    {CHECKPOINT, "",
     {"model.gradient_checkpointing_enable(), or what the model has for it",
      {{"optimizer of what checkpoints itself", EDIT_STATEMENT, SWITCH_ON}},
      NULL, NULL}},
    {CHECKPOINT, "", {.how = CHECKPOINT_HOW}},
    {CHECKPOINT, "transformers",
     {.how = "model.gradient_checkpointing_enable()"}},
    {CHECKPOINT, "transformers.Trainer",
     {"TrainingArguments(gradient_checkpointing=True)",
      TRAINING("gradient_checkpointing=True"), NULL, NULL}},
    {OPTIMIZER_8BIT, "",
     {"bitsandbytes.optim.AdamW8bit in place of AdamW",
      {{"optimizer", EDIT_FUNCTION, "bitsandbytes.optim.{class}8bit"}},
      "bitsandbytes", " foreach fused capturable differentiable maximize "}},
    {OPTIMIZER_8BIT, "transformers.Trainer",
     {"TrainingArguments(optim=\"adamw_bnb_8bit\")",
      TRAINING("optim=\"adamw_bnb_8bit\""), NULL, NULL}},
    {OPTIMIZER_FUSED, "",
     {"torch.optim.AdamW(..., fused=True)",
      ARGUMENT("optimizer", "fused=True"), NULL, NULL}},
    {OPTIMIZER_FUSED, "transformers.Trainer",
     {"TrainingArguments(optim=\"adamw_torch_fused\")",
      TRAINING("optim=\"adamw_torch_fused\""), NULL, NULL}},
    {OPTIMIZER_BF16, "",
     {.how = "an optimizer that keeps its state in bf16, or a model in bf16"}},
    {OPTIMIZER_BF16, "transformers.Trainer",
     {.how = "the model in bf16: from_pretrained(..., dtype=torch.bfloat16)"}},
    {OPTIMIZER_SHARDED, "",
     {"torch.distributed.optim.ZeroRedundancyOptimizer around the optimizer",
      {{"sharable", EDIT_FUNCTION,
        "torch.distributed.optim.ZeroRedundancyOptimizer"},
       {"sharable", EDIT_ARGUMENT, "optimizer_class={function}"}},
      "torch.distributed.optim", NULL}},
    {OPTIMIZER_SHARDED, "transformers.Trainer",
     {.how = "TrainingArguments(deepspeed=...) with ZeRO stage 1"}},
    {OPTIMIZER_SHARDED, "lightning",
     {"Trainer(strategy=\"deepspeed_stage_1\")",
      ARGUMENT("trainer", "strategy=\"deepspeed_stage_1\""), NULL, NULL}},
    {OPTIMIZER_SHARDED, "accelerate",
     {.how = "accelerate launch --use_deepspeed --zero_stage 1"}},
    {LOSS_IN_PARTS, "",
     {.how = "the last layer and the loss over parts of the rows, one after "
             "the other"}},
    {LOSS_IN_PARTS, "transformers.Trainer",
     {"TrainingArguments(use_liger_kernel=True)",
      TRAINING("use_liger_kernel=True"), NULL, NULL}},
    {SET_TO_NONE, "",
     {"optimizer.zero_grad(), whose default that is",
      {{"zero_grad", EDIT_CALL, "{function}()"}}, NULL, NULL}},
    {UNCACHED, "",
     {NULL, ARGUMENT("autocast", "cache_enabled=False"), NULL, NULL}},
    {NO_GRAD, "",
     {"torch.no_grad() around the evaluation",
      {{"evaluation", EDIT_FUNCTION, "torch.no_grad()({function})"}},
      "torch", NULL}},
    {KEPT_ON_CPU, "",
     {"list.append(x.detach().cpu()) in place of list.append(x)",
      {{"kept", EDIT_CALL, "{operand}.detach().cpu()"}}, NULL, NULL}},
    {SHARDED, "",
     {"torch.distributed.fsdp.fully_shard(block) of each block, then of the "
      "model",
      {{"wrapped", EDIT_STATEMENT,
        "for part in {model}.get_submodule(\"{list}\"): "
        "torch.distributed.fsdp.fully_shard(part)"},
       {"wrapped", EDIT_CALL, "torch.distributed.fsdp.fully_shard({model})"}},
      "torch.distributed.fsdp", NULL}},
    {SHARDED, "transformers.Trainer",
     {"TrainingArguments(fsdp=\"full_shard\")",
      TRAINING("fsdp=\"full_shard\""), NULL, NULL}},
    {SHARDED, "lightning",
     {"Trainer(strategy=\"fsdp\")", ARGUMENT("trainer", "strategy=\"fsdp\""),
      NULL, NULL}},
    {SHARDED, "accelerate", {.how = "accelerate launch --use_fsdp"}},
};

static bool is_text(const cJSON *value, const char *text)
{
    return cJSON_IsString(value) && !strcmp(value->valuestring, text);
}

static bool has_role(const cJSON *place, const char *role)
{
    const cJSON *found;

    cJSON_ArrayForEach(found, cJSON_GetObjectItem(place, "roles"))
        if (is_text(found, role))
            return true;
    return false;
}

const cJSON *advice_place(const cJSON *places, const char *role,
                          const char *list)
{
    const cJSON *place;

    cJSON_ArrayForEach(place, places)
        if (has_role(place, role) &&
            (!list || is_text(cJSON_GetObjectItem(place, "list"), list)))
            return place;
    return NULL;
}

struct advice_way advice_way(const struct change *change, const char *framework,
                             const cJSON *places)
{
    enum kind kind = kind_of(change);
    struct advice_way way = {NULL};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        const char *role = row->way.rules[0].role;

        if (row->kind != kind ||
            (row->framework[0] && strcmp(row->framework, framework)))
            continue;
        if (role && advice_place(places, role, NULL))
            return row->way;
        way = row->way;
    }
    return way;
}
