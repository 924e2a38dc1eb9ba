/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/time_gate.h"

#include <stdlib.h>

#include "common/base/json_text.h"
#include "common/base/status.h"
#include "memsim/report/json/result_read.h"
#include "memsim/report/text/time_diff.h"
#include "memsim/report/text/time_report.h"

/* The step time of --base, as a result to compare with. */
static int base_read(const char *path, struct result_file *base,
                     struct err *err)
{
    size_t length;
    char *text = json_text_read(path, &length, err);

    if (!text)
        return -1;
    int rc = result_read(text, length, path, base, err);
    free(text);
    if (rc)
        return -1;
    if (time_slowest(&base->result))
        return 0;
    result_file_fini(base);
    return err_set(err, "--base: %s has no step time", path);
}

int study_gate_check(const struct study_options *o, struct err *err)
{
    struct result_file base;
    double percent;

    if (!o->fail_slower != !o->base)
        return err_set(err, "--fail-slower and --base need each other");
    if (!o->base)
        return 0;
    if (time_limit_parse("fail-slower", o->fail_slower, &percent, err) ||
        base_read(o->base, &base, err))
        return -1;
    result_file_fini(&base);
    return 0;
}

int study_gate(const struct study_options *o, struct result *result,
               struct err *err)
{
    struct result_file base;
    struct time_diff diff;
    double limit;

    if (!o->base || result->verdict != VERDICT_FITS)
        return 0;
    if (time_limit_parse("fail-slower", o->fail_slower, &limit, err) ||
        base_read(o->base, &base, err))
        return -1;
    time_diff_make(&diff, &base.result, result);
    double slower = time_gate_percent(&diff);
    int rc = diff.known ? 0
                        : err_set(err, "--fail-slower: no training step was "
                                       "found whose time could be compared");
    if (!rc && slower > limit) {
        result->verdict = VERDICT_OVER_LIMIT;
        result->exit_status = CMD_RUN_OVER_LIMIT;
        result->slower_percent = slower;
        result_note(result,
                    "%s takes %.2f ms, %.1f%% longer than in %s (%.2f ms): "
                    "more than --fail-slower %g%%",
                    diff.gate, diff.gate_after_ns / 1e6, slower,
                    o->base, diff.gate_before_ns / 1e6, limit);
    }
    time_diff_fini(&diff);
    result_file_fini(&base);
    return rc;
}
