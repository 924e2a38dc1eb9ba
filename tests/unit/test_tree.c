/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/tree.h"
#include "memsim/result/tree_node.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

#define MIB (UINT64_C(1) << 20)

/* Modules, parents first; every one's own part is one block. */
struct made {
    struct attribution a;
    struct attribution_module modules[64];
    struct attribution_block blocks[64];
};

static void add(struct made *m, const char *name, size_t parent,
                uint64_t self_mib, const char *operation)
{
    size_t at = m->a.module_count++;

    m->a.modules = m->modules;
    m->a.blocks = m->blocks;
    m->modules[at] = (struct attribution_module){
        .name = (char *)name,
        .parent = parent,
        .self_bytes = self_mib * MIB,
    };
    for (size_t i = at; i != SIZE_MAX; i = m->modules[i].parent)
        m->modules[i].bytes_at_peak += self_mib * MIB;
    m->a.at_peak.bytes[TRACE_CATEGORY_ACTIVATION] += self_mib * MIB;
    if (self_mib)
        m->blocks[m->a.block_count++] = (struct attribution_block){
            .bytes = self_mib * MIB,
            .allocated = true,
            .module = at,
            .category = TRACE_CATEGORY_ACTIVATION,
            .operation = (char *)operation,
        };
}

/* Not inline: GCC 12 takes what strstr finds for a place in TEXT itself. */
static __attribute__((noinline)) char *
written_as(struct made *m, const struct tree_style *style)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    tree_write(&m->a, style, out);
    fclose(out);
    return text;
}

static char *written(struct made *m, unsigned depth, unsigned top)
{
    return written_as(m, &(struct tree_style){.bold = "",
                                              .plain = "",
                                              .verbose = true,
                                              .depth = depth,
                                              .top = top});
}

static void has(const char *text, const char *wanted)
{
    if (!strstr(text, wanted))
        CHECK_FAIL("no \"%s\" in\n%s", wanted, text);
}

static void has_in_order(const char *text, const char *first,
                         const char *second)
{
    const char *at = strstr(text, first);

    if (!at || !strstr(at, second))
        CHECK_FAIL("no \"%s\" and then \"%s\" in\n%s", first, second, text);
}

static void lacks(const char *text, const char *unwanted)
{
    if (strstr(text, unwanted))
        CHECK_FAIL("\"%s\" in\n%s", unwanted, text);
}

TEST(wrappers_are_one_row)
{
    struct made m = {0};

    add(&m, "Peft", SIZE_MAX, 0, NULL);
    add(&m, "Peft.base", 0, 0, NULL);
    add(&m, "Peft.base.model", 1, 10, "aten::add");
    add(&m, "Peft.base.model.head", 2, 50, "aten::mm");
    add(&m, "Peft.base.model.body", 2, 40, "aten::mm");
    char *text = written(&m, 0, 0);
    has(text, "]  Peft.base.model\n");
    has(text, "]    head\n");
    has(text, "]    (own: add)\n");
    free(text);
}

TEST(what_a_wrapper_has_beside_its_part_is_told)
{
    struct made m = {0};

    add(&m, "A", SIZE_MAX, 1, "aten::add");
    add(&m, "A.b", 0, 600, "aten::mm");
    add(&m, "A.b.c", 1, 300, "aten::mm");
    add(&m, "A.b.d", 1, 300, "aten::mm");
    char *text = written(&m, 0, 0);
    has(text, "1.17 GiB 100.0%");
    has(text, "]  A.b\n");
    has(text, "(own: mm)");
    has(text, "1.00 MiB   0.1%  [................]    (own: other)");
    free(text);
}

TEST(equal_layers_are_one_row)
{
    static char names[12][16];
    struct made m = {0};

    add(&m, "Net", SIZE_MAX, 30, "aten::add");
    add(&m, "Net.layers", 0, 0, NULL);
    for (size_t i = 0; i < 12; i++) {
        snprintf(names[i], sizeof names[i], "Net.layers.%zu", i);
        add(&m, names[i], 1, i == 5 ? 100 : 10, "aten::mm");
    }
    char *text = written(&m, 0, 0);
    has(text, "]      0-4,6-11, each 10.00 MiB\n");
    has(text, "]      5\n");
    free(text);
}

TEST(layers_of_about_one_size_say_so)
{
    struct made m = {0};

    add(&m, "Net", SIZE_MAX, 0, NULL);
    add(&m, "Net.layers", 0, 0, NULL);
    add(&m, "Net.layers.2", 1, 95, "aten::mm");
    add(&m, "Net.layers.10", 1, 100, "aten::mm");
    char *text = written(&m, 0, 0);
    has(text, "]  Net.layers.2,10, each ~97.50 MiB\n");
    free(text);
}

TEST(parts_of_folded_layers_are_summed)
{
    struct made m = {0};

    add(&m, "N", SIZE_MAX, 0, NULL);
    add(&m, "N.0", 0, 0, NULL);
    add(&m, "N.0.mlp", 1, 60, "aten::mm");
    add(&m, "N.0.attn", 1, 40, "aten::mm");
    add(&m, "N.1", 0, 0, NULL);
    add(&m, "N.1.mlp", 4, 60, "aten::mm");
    add(&m, "N.1.attn", 4, 40, "aten::mm");
    char *text = written(&m, 0, 0);
    has(text,
        "200.00 MiB 100.0%  [################]  N.0-1, each 100.00 MiB\n");
    has(text, "120.00 MiB  60.0%  [##########......]    mlp\n");
    has(text, " 80.00 MiB  40.0%  [######..........]    attn\n");
    free(text);
}

TEST(equal_parts_are_in_natural_order)
{
    struct made m = {0};

    add(&m, "N", SIZE_MAX, 1, "aten::add");
    add(&m, "N.p10", 0, 10, NULL);
    add(&m, "N.p9", 0, 10, NULL);
    char *text = written(&m, 0, 0);
    has_in_order(text, "]    p9\n", "]    p10\n");
    free(text);
}

TEST(memory_of_no_module_is_told_by_operator)
{
    struct made m = {0};

    add(&m, "N", SIZE_MAX, 5, "aten::add");
    m.blocks[m.a.block_count++] = (struct attribution_block){
        .bytes = 100 * MIB,
        .allocated = true,
        .module = SIZE_MAX,
        .category = TRACE_CATEGORY_TEMPORARY,
        .operation = (char *)"aten::_foreach_mul",
    };
    m.a.at_peak.bytes[TRACE_CATEGORY_TEMPORARY] += 100 * MIB;
    char *text = written(&m, 0, 0);
    has(text, "]  (no module)\n");
    has(text, "]    (_foreach_mul, temporary)\n");
    free(text);
}

TEST(the_rest_counts_parts)
{
    struct made m = {0};

    add(&m, "N", SIZE_MAX, 1, "aten::add");
    add(&m, "N.a", 0, 100, NULL);
    add(&m, "N.b", 0, 90, NULL);
    add(&m, "N.c", 0, 80, NULL);
    char *text = written(&m, 0, 1);
    has(text, "]    a\n");
    has(text, "]    (2 more)\n");
    lacks(text, "]    b\n");
    free(text);
}

TEST(the_short_form_has_categories_in_a_line_and_no_small_rows)
{
    struct made m = {0};

    add(&m, "N", SIZE_MAX, 0, NULL);
    add(&m, "N.a", 0, 600, "aten::mm");
    add(&m, "N.b", 0, 397, "aten::mm");
    add(&m, "N.c", 0, 3, "aten::mm");
    m.a.at_peak.bytes[TRACE_CATEGORY_ACTIVATION] -= 400 * MIB;
    m.a.at_peak.bytes[TRACE_CATEGORY_PARAMETER] += 400 * MIB;
    char *text = written_as(&m, &(struct tree_style){.bold = "", .plain = ""});
    has(text, "    activation 60.0%, parameter 40.0%\n");
    has(text, "]    b\n");
    lacks(text, "]    c\n");
    free(text);
    text = written(&m, 0, 0);
    has(text, "60.0%  [##########......]  activation\n");
    has(text, "]    c\n");
    free(text);
}
