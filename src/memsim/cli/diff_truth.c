/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/diff_truth.h"

#include "memsim/report/text/truth_text.h"
#include "memsim/study/truth_study.h"

int diff_truth(const char *estimate, const char *run, const char *save,
               const struct output_options *options, struct err *err)
{
    struct truth_study s;

    if (truth_study_open(&s, estimate, run, &options->study, err))
        return -1;
    if (!options->quiet)
        truth_text_write(&s.truth, output_summary_stream(options));
    int rc = save ? truth_study_learn(&s, save, err) : 0;
    truth_study_close(&s);
    return rc;
}
