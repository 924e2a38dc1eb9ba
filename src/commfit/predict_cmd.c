/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/predict_cmd.h"
#include "commfit/fit_write.h"
#include "commfit/plot.h"
#include "commfit/predict.h"
#include "fits/cluster.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(struct predict_settings, member)

static const struct option_row rows[] = {
    {"nodes", 'n', OPTION_STRING, "N|LIST", AT(nodes),
     .help = "nodes: 64, 1,2,8 or 1..64, which doubles (default: 1)"},
    {"gpus-per-node", 'g', OPTION_STRING, "G|LIST", AT(gpus),
     .help = "GPUs of each node that take part (default: those\n"
             "measured)"},
    {"size", 's', OPTION_STRING, "S|LIST", AT(size),
     .help = "bytes as nccl-tests counts: 1G, 1M,64M or 1K..16G\n"
             "(default: 1M..1G)"},
    {"model", 0, OPTION_STRING, "MODEL", AT(model),
     .help = "curves, formula, published or regression (default: what\n"
             "the fit found best)"},
    {"algo", 0, OPTION_STRING, "ALGO", AT(algo),
     .help = "ring, tree, nvls, nvls-tree or pat (default: as NCCL\n"
             "chooses)"},
    {"users", 0, OPTION_NUMBER, "N", AT(users),
     .help = "collectives that share each node's network, this one\n"
             "included (default: 1)"},
    {"quantile", 0, OPTION_FRACTION, "Q", AT(quantile),
     .help = "of the ranks' times, 0.5 to 0.99, if the fit has them\n"
             "(default: the mean)"},
    {"in-place", 0, OPTION_FLAG, NULL, AT(in_place),
     .help = "send and receive buffer are one"},
    {"json", 0, OPTION_STRING, "FILE", AT(json),
     .help = "write the predictions as JSON; - is stdout"},
    {"plot", 0, OPTION_STRING, "FILE.svg|FILE.png", AT(plot),
     .help = "plot the predictions"},
    {0},
};

const struct options predict_options = {
    .command = "commfit predict",
    .operands = "FIT.json|CLUSTER COLLECTIVE",
    .summary =
        "Predicts how long a collective takes. COLLECTIVE is all_reduce, "
        "all_gather,\nreduce_scatter, broadcast, reduce, alltoall, "
        "sendrecv, gather or scatter.\n`memsim clusters' lists the "
        "clusters.",
    .examples = "  commfit predict dgx-h100 all_reduce --nodes 64 --size 1G\n"
                "  commfit predict mine.json all_gather --nodes 1..64 --size "
                "256M\n",
    .rows = rows,
    .wanted = "a fit or a cluster, and a collective",
    .operands_min = 2,
    .operands_max = 2,
};

static int read_model(const char *text, enum fit_model *model, struct err *err)
{
    if (!text)
        return 0;
    for (int i = FIT_MODEL_CURVES; i < FIT_MODEL_COUNT; i++)
        if (!strcmp(text, fit_model_name((enum fit_model)i))) {
            *model = (enum fit_model)i;
            return 0;
        }
    return err_set(err,
                   "--model %s: give curves, formula, published or regression",
                   text);
}

static int read_algo(const char *text, enum cost_algo *algo, struct err *err)
{
    if (!text)
        return 0;
    *algo = cost_algo_find(text);
    return *algo < COST_ALGO_COUNT
               ? 0
               : err_set(err,
                         "--algo %s: give auto, ring, tree, nvls, nvls-tree or "
                         "pat",
                         text);
}

/* The width that the collective was measured with, the widest; else the
 * machine's. */
static uint32_t default_gpus(const struct cluster *c, enum fit_coll coll)
{
    uint32_t widest = 0, own = 0;

    for (uint32_t i = 0; i < c->fit.family_count; i++) {
        const struct fit_family *f = &c->fit.families[i];

        if (f->gpus_per_node > widest)
            widest = f->gpus_per_node;
        if (f->coll == coll && f->gpus_per_node > own)
            own = f->gpus_per_node;
    }
    uint32_t usual = c->gpus_per_node ? c->gpus_per_node : 8;

    return own ? own : widest ? widest : usual;
}

static int read_request(const struct predict_settings *s, const char *coll,
                        struct predict_request *r, struct err *err)
{
    *r = (struct predict_request){.quantile = s->quantile,
                                  .users = s->users,
                                  .in_place = s->in_place};
    if (fit_coll_find(coll, &r->coll))
        return err_set(err, "%s: no collective of that name; see --help", coll);
    if (s->quantile > 0 && !(s->quantile >= 0.5 && s->quantile <= 0.99))
        return err_set(err, "--quantile: not from 0.5 to 0.99");
    if (predict_list_read("nodes", s->nodes ? s->nodes : "1", false, &r->nodes,
                          err) ||
        predict_list_read("size", s->size ? s->size : "1M..1G", true, &r->bytes,
                          err) ||
        (s->gpus &&
         predict_list_read("gpus-per-node", s->gpus, false, &r->gpus, err)) ||
        read_model(s->model, &r->model, err) ||
        read_algo(s->algo, &r->algo, err))
        return -1;
    return s->plot ? plot_check(s->plot, err) : 0;
}

static int write_json(const struct predictions *p, const char *cluster,
                      const char *path, struct err *err)
{
    cJSON *root = predict_to_json(p, cluster);
    int rc = json_write(root, path, err);

    cJSON_Delete(root);
    return rc;
}

static bool any_answer(const struct predictions *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->items[i].answered)
            return true;
    return false;
}

static bool is_stdout(const char *path)
{
    return path && !strcmp(path, "-");
}

static int predict_write(const struct predict_settings *s,
                         const struct predictions *p, const char *cluster,
                         FILE *out, struct err *err)
{
    if (!is_stdout(s->json) && !is_stdout(s->plot))
        predict_print(p, cluster, out);
    if (s->json && write_json(p, cluster, s->json, err))
        return -1;
    if (s->plot && predict_plot(p, cluster, s->plot, err))
        return -1;
    if (any_answer(p))
        return 0;
    return err_set(err,
                   "%s: nothing in the fit says what %s takes there; measure "
                   "it (commfit --bench), or ask for what `commfit report' "
                   "lists",
                   cluster, fit_coll_name(p->items[0].coll));
}

int predict_run(const struct predict_settings *settings,
                const struct operands *operands, FILE *out, struct err *err)
{
    struct predict_request request;
    struct predictions predictions;
    struct cluster cluster;

    if (read_request(settings, operands->values[1], &request, err))
        return -2;
    if (cluster_load(operands->values[0], &cluster, err))
        return -1;
    if (!request.gpus.count) {
        request.gpus.count = 1;
        request.gpus.values[0] = default_gpus(&cluster, request.coll);
    }
    predict_all(&cluster.fit, &request, &predictions);
    int rc = predict_write(settings, &predictions, cluster.name, out, err);
    free(predictions.items);
    cluster_fini(&cluster);
    return rc;
}
