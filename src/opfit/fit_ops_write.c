/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/xmalloc.h"
#include "opfit/fit_ops.h"
#include "runtime/cost/cost_features.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_MAX 1500 /* measured shapes that are kept */

/* TEXT as a JSON string; what JSON forbids becomes a blank. */
static void write_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else
            fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
    fputc('"', out);
}

static void write_sources(const struct fit_ops *fit, FILE *out)
{
    const char *separator = "";

    fputs(" \"sources\": [", out);
    for (size_t i = 0; i < fit->ops->source_count; i++) {
        const struct ops_source *s = &fit->ops->sources[i];

        if (!s->rows)
            continue;
        fprintf(out, "%s\n  {\"text\": ", separator);
        write_text(out, s->text);
        fprintf(out,
                ", \"gpu\": \"%s\", \"clock\": \"%s\", \"launch_us\": %g, "
                "\"rows\": %zu, \"dropped\": %zu}",
                s->gpu_name, ops_clock_name(s->clock), s->launch_ns / 1e3,
                s->rows, s->dropped);
        separator = ",";
    }
    fputs("],\n", out);
}

static void write_error(FILE *out, const char *name, double percent)
{
    if (percent >= 0)
        fprintf(out, ", \"%s\": %.2f", name, percent);
}

static void write_errors(const struct fit_errors *e, FILE *out)
{
    fprintf(out, "   \"errors\": {\"rows\": %zu, \"groups\": %zu", e->rows,
            e->groups);
    write_error(out, "limits_percent", e->plain);
    write_error(out, "roofline_percent", e->mape[COST_LINE]);
    write_error(out, "segments_percent", e->mape[COST_SEGMENTS]);
    write_error(out, "trees_percent", e->mape[COST_TREES]);
    write_error(out, "median_percent", e->median);
    write_error(out, "larger_percent", e->larger);
    write_error(out, "larger_roofline_percent", e->larger_line);
    fprintf(out, ", \"bias_percent\": %.2f}", e->bias);
}

static void write_line(const struct cost_roofline *line, FILE *out)
{
    fprintf(out,
            ",\n   \"roofline\": {\"floor_ns\": %.17g, \"compute\": "
            "%.17g, \"memory\": %.17g}",
            line->floor_ns, line->compute, line->memory);
}

static void write_segments(const struct cost_segments *s, FILE *out)
{
    fprintf(out,
            ",\n   \"segments\": {\"k1\": %.17g, \"k2\": %.17g, "
            "\"y1\": %.17g, \"y2\": %.17g, \"b1\": %.17g, \"least\": %.17g}",
            s->k1, s->k2, s->y1, s->y2, s->b1, s->least);
}

static void write_tree(const struct cost_node *nodes, uint32_t count, FILE *out)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct cost_node *n = &nodes[i];

        if (n->feature == COST_LEAF)
            fprintf(out, "%s-1,%d", i ? "," : "", (int16_t)n->child);
        else
            fprintf(out, "%s%u,%u,%u", i ? "," : "", n->feature, n->cut,
                    n->child);
    }
}

static void write_trees(const struct cost_trees *t, FILE *out)
{
    const uint32_t *counts = (const uint32_t *)(t + 1);
    const float *edges = (const float *)(counts + t->feature_count);
    const uint32_t *ends = (const uint32_t *)(edges + t->edge_count);
    const struct cost_node *nodes =
        (const struct cost_node *)(ends + t->tree_count);

    write_line(&t->line, out);
    fprintf(out,
            ",\n   \"trees\": {\"offset\": %.17g, \"scale\": %.17g,\n"
            "    \"edges\": [",
            t->offset, t->scale);
    for (uint32_t f = 0; f < t->feature_count; f++) {
        fputs(f ? ",\n     [" : "\n     [", out);
        for (uint32_t i = 0; i < counts[f]; i++)
            fprintf(out, "%s%.9g", i ? "," : "", (double)edges[i]);
        fputc(']', out);
        edges += counts[f];
    }
    fputs("],\n    \"trees\": [", out);
    for (uint32_t i = 0, first = 0; i < t->tree_count; first = ends[i++]) {
        fputs(i ? ",\n     [" : "\n     [", out);
        write_tree(nodes + first, ends[i] - first, out);
        fputc(']', out);
    }
    fputs("]}", out);
}

static void write_types(FILE *out, uint32_t types)
{
    const char *separator = "";

    fputs(", \"types\": [", out);
    for (int i = 0; i < WORK_TYPES; i++)
        if (types >> i & 1) {
            fprintf(out, "%s\"%s\"", separator, work_type_name(i));
            separator = ", ";
        }
    fputc(']', out);
}

/* The variants, of a family that has any. */
static void write_variants(FILE *out, const struct ops_model *m)
{
    const char *separator = "";

    if (!work_variant_name(m->family, 0) || m->variants == UINT32_MAX)
        return;
    fputs(", \"variants\": [", out);
    for (unsigned v = 0; v < WORK_VARIANTS; v++)
        if ((m->variants >> v & 1) && work_variant_name(m->family, v)) {
            fprintf(out, "%s\"%s\"", separator,
                    work_variant_name(m->family, v));
            separator = ", ";
        }
    fputc(']', out);
}

static void write_model(const struct ops_model *m, FILE *out)
{
    fprintf(out, "\n  {\"family\": \"%s\"", work_family_name(m->family));
    write_types(out, m->types);
    write_variants(out, m);
    if (m->basis != COST_FITTED)
        fprintf(out, ", \"basis\": \"%s\"", cost_basis_name(m->basis));
    fprintf(out, ",\n   \"model\": \"%s\", \"low\": %.4f, \"high\": %.4f,\n",
            cost_kind_ops(m->kind)->name, m->low, m->high);
    write_errors(&m->errors, out);
    if (m->kind == COST_TREES)
        write_trees(m->state, out);
    else if (m->kind == COST_SEGMENTS)
        write_segments(m->state, out);
    else
        write_line(m->state, out);
    fputc('}', out);
}

/* Whether row I is kept as measured: sustained, on this GPU, of a shape that
 * has a key. */
static bool is_kept(const struct fit_ops *fit, size_t i)
{
    const struct ops_sample *s = &fit->ops->samples[i];
    const struct ops_source *source = &fit->ops->sources[s->source];

    return source->clock == OPS_SUSTAINED &&
           !strcmp(source->gpu_name, fit->gpu) && cost_shape_key(&s->work) != 0;
}

static void write_table(const struct fit_ops *fit, FILE *out)
{
    size_t count = 0, kept = 0, at = 0;

    for (size_t i = 0; i < fit->ops->count; i++)
        count += is_kept(fit, i);
    fputs("],\n \"table\": [", out);
    for (size_t i = 0; i < fit->ops->count; i++) {
        const struct ops_sample *s = &fit->ops->samples[i];
        uint64_t words[COST_SHAPE_WORDS];

        if (!is_kept(fit, i) ||
            (count > TABLE_MAX && at++ * TABLE_MAX / count < kept))
            continue;
        unsigned n = cost_shape_words(&s->work, words);
        fprintf(out, "%s\n  [\"%s\",\"%s\",%.9g", kept++ ? "," : "",
                work_family_name(s->work.family), work_type_name(s->work.type),
                s->ns);
        for (unsigned k = 0; k < n; k++)
            fprintf(out, ",%llu", (unsigned long long)words[k]);
        fputc(']', out);
    }
}

void fit_ops_write(const struct fit_ops *fit, FILE *out)
{
    fprintf(out,
            "{\"schema\": 1, \"kind\": \"operators\", \"gpu\": \"%s\", "
            "\"seed\": %llu,\n",
            fit->gpu, (unsigned long long)fit->seed);
    write_sources(fit, out);
    fputs(" \"models\": [", out);
    for (size_t i = 0; i < fit->count; i++) {
        if (i)
            fputc(',', out);
        write_model(&fit->models[i], out);
    }
    write_table(fit, out);
    fputs("]}\n", out);
}
