/* SPDX-License-Identifier: Apache-2.0 */
#include "fitting/fit_trace.h"

#include <stdlib.h>

#include "check.h"
#include "common/base/err.h"
#include "common/catalogue/gpu.h"
#include "fits/cost_fit.h"

/* --- fits ----------------------------------------------------------------- */

static char path[64];

/* Launches of one kernel and a product of two kernels, REPEAT times, US long. */
static void write_trace(double us, unsigned repeat)
{
    strcpy(path, "/tmp/test_trace_ops.XXXXXX");
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");

    fputs("{\"deviceProperties\":[{\"name\":\"NVIDIA H100 80GB HBM3\"}],"
          "\"traceEvents\":[",
          file);
    for (unsigned i = 0; i < repeat; i++)
        fprintf(file,
                "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\","
                "\"pid\":1,\"tid\":1,\"ts\":%u,\"dur\":1,\"args\":{\"External "
                "id\":%u,\"Input Dims\":[[256,128],[128,64]],\"Input type\":"
                "[\"c10::Half\",\"c10::Half\"]}},"
                "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm_nn_kernel\","
                "\"pid\":0,\"tid\":7,\"ts\":%u,\"dur\":%g,\"args\":{\"External "
                "id\":%u,\"device\":0,\"stream\":7,\"grid\":[4,1,1],\"block\":"
                "[128,1,1]}},"
                "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"splitKreduce\","
                "\"pid\":0,\"tid\":7,\"ts\":%u,\"dur\":2,\"args\":{\"External "
                "id\":%u,\"device\":0,\"stream\":7,\"grid\":[9,1,1],\"block\":"
                "[128,1,1]}},"
                "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"my_kernel\","
                "\"pid\":0,\"tid\":7,\"ts\":%u,\"dur\":%g,\"args\":{"
                "\"device\":0,\"stream\":7,\"grid\":[16,1,1],\"block\":"
                "[128,1,1]}}%s",
                i * 100, i + 1, i * 100 + 10, us, i + 1, i * 100 + 40, i + 1,
                i * 100 + 60, 3 * us, i + 1 < repeat ? "," : "]}");
    fclose(file);
}

static void read_trace(struct trace_ops *ops)
{
    struct err err = {""};

    *ops = (struct trace_ops){.count = 0};
    CHECK(!trace_ops_read(ops, path, &err));
    CHECK_STR(err.text, "");
    unlink(path);
}

TEST(what_recurs_is_priced_as_it_was_measured)
{
    char text[20000] = "", said[4000] = "";
    struct cost_gpu limits;
    struct trace_ops ops;
    struct fit_trace fit;
    struct err err = {""};
    struct gpu gpu;

    write_trace(10, 5);
    read_trace(&ops);
    CHECK_UINT(ops.count, 15);
    CHECK_STR(ops.gpu, "NVIDIA H100 80GB HBM3");
    CHECK(!gpu_load("h100-sxm-80gb", &gpu, &err));
    cost_gpu_set(&gpu, &limits);
    struct cost_image *own = cost_fit_load(&gpu, NULL, &err);
    fit_trace_run(&fit, &ops, gpu.name, &limits, own);
    CHECK_UINT(fit.product_count, 1);
    CHECK(fit.products[0].ns == 12000); /* with its split's sum */
    FILE *out = fmemopen(text, sizeof text, "w");
    fit_trace_write(&fit, out);
    fclose(out);
    struct cost_image *image =
        cost_fit_load_text(text, strlen(text), "fit", &err);
    CHECK_STR(err.text, "");
    CHECK(image != NULL);
    out = fmemopen(said, sizeof said, "w");
    fit_trace_eval(&ops, &limits, image, out);
    fclose(out);
    CHECK(strstr(said, "all                            10      0.210   100.0%"
                       "     0.0%    +0.0%") != NULL);
    free(image);
    free(own);
    fit_trace_fini(&fit);
    trace_ops_fini(&ops);
}

/* A convolution in two groups, whose kernels run side by side on two streams
 * and overlap by 6 us, and one that comes behind them. */
static void write_groups(void)
{
    static const unsigned at[] = {10, 14, 30}, streams[] = {7, 20, 7};

    strcpy(path, "/tmp/test_trace_ops.XXXXXX");
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");

    fputs("{\"deviceProperties\":[{\"name\":\"NVIDIA H200\"}],"
          "\"traceEvents\":["
          "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":"
          "\"aten::cudnn_convolution\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1,"
          "\"args\":{\"External id\":5,\"Input Dims\":"
          "[[8,64,32,32],[64,32,3,3],[],[],[],[],[],[],[]],"
          "\"Input type\":[\"c10::Half\",\"c10::Half\",\"ScalarList\","
          "\"ScalarList\",\"ScalarList\",\"Scalar\",\"Scalar\",\"Scalar\","
          "\"Scalar\"],\"Concrete Inputs\":[\"\",\"\",\"[1, 1]\",\"[1, 1]\","
          "\"[1, 1]\",\"2\",\"False\",\"False\",\"True\"]}}",
          file);
    for (unsigned i = 0; i < 3; i++)
        fprintf(file,
                ",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"xmma_fprop\","
                "\"pid\":0,\"tid\":%u,\"ts\":%u,\"dur\":10,\"args\":{"
                "\"External id\":5,\"device\":0,\"stream\":%u,\"grid\":"
                "[4,1,1],\"block\":[128,1,1]}}",
                streams[i], at[i], streams[i]);
    fputs("]}", file);
    fclose(file);
}

TEST(what_runs_side_by_side_counts_once)
{
    struct trace_ops ops;

    write_groups();
    read_trace(&ops);
    CHECK_UINT(ops.count, 3);
    CHECK_UINT(ops.kernels[0].work.family, WORK_CONVOLUTION_FORWARD);
    CHECK(ops.kernels[0].op_ns == 24000); /* 10 to 24 us, 30 to 40 us */
    CHECK(ops.kernels[0].ns == 10000);
    CHECK_UINT(ops.kernels[1].work.family, WORK_NOTHING);
    trace_ops_fini(&ops);
}

TEST(a_wrong_fit_is_refused)
{
    static const char *const rows[] = {
        "\"kernels\":[[\"k\",1,1,1,1,1,1]]",
        "\"kernels\":[[\"k\",1,1,1,1,1,1,0]]",
        "\"kernels\":[[\"k\",1,1,1,1,1,1,5,6]]",
        "\"kernels\":[[1,1,1,1,1,1,1,5]]",
        "\"kernels\":[[\"k\",-1,1,1,1,1,1,5]]",
        "\"names\":[[\"k\",0]]",
        "\"names\":[\"k\"]",
        "\"scales\":[{\"family\":\"none\",\"factor\":1,\"low\":1,\"high\":1}]",
        "\"scales\":[{\"family\":\"gemm\",\"factor\":0,\"low\":1,\"high\":1}]",
        "\"scales\":[{\"family\":\"gemm\",\"factor\":1,\"low\":2,\"high\":1}]",
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[400];
        struct err err = {""};
        snprintf(text, sizeof text,
                 "{\"schema\":1,\"kind\":\"operators\",\"gpu\":\"l4\","
                 "\"models\":[],\"table\":[],%s}",
                 rows[i]);
        CHECK(!cost_fit_load_text(text, strlen(text), "fit.json", &err));
        CHECK(!strncmp(err.text, "fit.json: ", 10));
    }
}
