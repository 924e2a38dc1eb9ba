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
    SHARDED,
    KINDS
};

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
        {c->state.int8, OPTIMIZER_8BIT},
        {c->state.fused, OPTIMIZER_FUSED},
        {c->state.bf16, OPTIMIZER_BF16},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].is)
            return kinds[i].kind;
    return KINDS;
}

/* A framework without a row for a kind gets the row of plain PyTorch. */
static const struct row {
    enum kind kind;
    const char *framework, *how;
} rows[] = {
    {CHECKPOINT, "",
     "torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False) in "
     "place of block(x)"},
    {CHECKPOINT, "transformers", "model.gradient_checkpointing_enable()"},
    {CHECKPOINT, "transformers.Trainer",
     "TrainingArguments(gradient_checkpointing=True)"},
    {OPTIMIZER_8BIT, "", "bitsandbytes.optim.AdamW8bit in place of AdamW"},
    {OPTIMIZER_8BIT, "transformers.Trainer",
     "TrainingArguments(optim=\"adamw_bnb_8bit\")"},
    {OPTIMIZER_FUSED, "", "torch.optim.AdamW(..., fused=True)"},
    {OPTIMIZER_FUSED, "transformers.Trainer",
     "TrainingArguments(optim=\"adamw_torch_fused\")"},
    {OPTIMIZER_BF16, "",
     "an optimizer that keeps its state in bf16, or a model in bf16"},
    {OPTIMIZER_BF16, "transformers.Trainer",
     "the model in bf16: from_pretrained(..., dtype=torch.bfloat16)"},
    {OPTIMIZER_SHARDED, "",
     "torch.distributed.optim.ZeroRedundancyOptimizer around the optimizer"},
    {OPTIMIZER_SHARDED, "transformers.Trainer",
     "TrainingArguments(deepspeed=...) with ZeRO stage 1"},
    {OPTIMIZER_SHARDED, "lightning",
     "Trainer(strategy=\"deepspeed_stage_1\")"},
    {OPTIMIZER_SHARDED, "accelerate",
     "accelerate launch --use_deepspeed --zero_stage 1"},
    {LOSS_IN_PARTS, "",
     "the last layer and the loss over parts of the rows, one after the other"},
    {LOSS_IN_PARTS, "transformers.Trainer",
     "TrainingArguments(use_liger_kernel=True)"},
    {SET_TO_NONE, "", "optimizer.zero_grad(), whose default that is"},
    {SHARDED, "",
     "torch.distributed.fsdp.fully_shard(block) of each block, then of the "
     "model"},
    {SHARDED, "transformers.Trainer", "TrainingArguments(fsdp=\"full_shard\")"},
    {SHARDED, "lightning", "Trainer(strategy=\"fsdp\")"},
    {SHARDED, "accelerate", "accelerate launch --use_fsdp"},
};

const char *advice_how(const struct change *change, const char *framework)
{
    enum kind kind = kind_of(change);
    const char *how = NULL;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].kind == kind &&
            (!rows[i].framework[0] || !strcmp(rows[i].framework, framework)))
            how = rows[i].how;
    return how;
}
