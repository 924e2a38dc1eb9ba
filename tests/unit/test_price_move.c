/* SPDX-License-Identifier: Apache-2.0 */
#include "playback/price_move.h"

#include "check.h"

/* A product, 100 us on one GPU, that THERE_NS of its model's say on
 * another: what it takes there, in us. */
static double moved(const char *from, const char *to, double there)
{
    struct gpu own, other;
    struct err err = {""};
    struct price_move m = {.own = NULL};
    struct trace_names names = {{0}};
    uint64_t fields[TRACE_FIELDS_MAX] = {0};
    struct trace_gemm *gemm = (struct trace_gemm *)fields;
    struct price own_price, price;

    gemm->m = gemm->n = gemm->k = 4096;
    const struct op op = op_of_record(TRACE_GEMM, fields);

    if (gpu_load(from, &own, &err) || gpu_load(to, &other, &err))
        return -1;
    price_move_init(&m, &(struct price_options){.gpu = &own},
                    &(struct price_options){.gpu = &other});
    pricer_price(m.own, &op, &names, NULL, &own_price);
    price = own_price;
    price.answer.ns = (uint64_t)((double)own_price.answer.ns * there);
    struct cost_answer answer = price_move(&m, &op, &names, &price, 100000);
    price_move_fini(&m);
    return (double)answer.ns / 1000;
}

/* H200 and H100 differ by their memory alone: 4.8 and 3.35 TB/s. */
TEST(a_kernel_changes_by_no_more_than_what_bounds_it)
{
    CHECK_NEAR(moved("h200", "h100-sxm-80gb", 1.2), 120, 0.01);
    CHECK_NEAR(moved("h200", "h100-sxm-80gb", 3), 143.3, 0.01);
    CHECK_NEAR(moved("h200", "h100-sxm-80gb", 0.5), 100, 0.01);
    CHECK_NEAR(moved("h100-sxm-80gb", "h200", 0.2), 69.8, 0.01);
}

/* Another generation has other kernels. */
TEST(generations_are_further_apart_than_their_peaks)
{
    CHECK_NEAR(moved("h200", "a100-sxm-80gb", 3), 300, 0.01);
    CHECK(moved("h200", "a100-sxm-80gb", 9) < 600);
}
