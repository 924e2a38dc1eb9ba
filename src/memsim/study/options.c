/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/options.h"

#include <stdlib.h>

#include "fits/machine.h"
#include "memsim/study/delay_options.h"
#include "memsim/study/time_gate.h"
#include "memsim/time/job_change.h"
#include "playback/delay.h"
#include "playback/stragglers.h"

#define HOST_SPEED_MAX 1e6

int study_host_factor(const struct study_options *options, double *factor,
                      struct err *err)
{
    const char *text = options->host_speed;
    char *end;

    *factor = 1;
    if (!text)
        return 0;
    double speed = strtod(text, &end);
    if (end == text || *end || !(speed >= 0) || speed > HOST_SPEED_MAX)
        return err_set(err, "--host-speed: '%s' is no number from 0 to %g",
                       text, HOST_SPEED_MAX);
    *factor = speed > 0 ? 1 / speed : 0;
    return 0;
}

int study_quantile(const struct study_options *options, double *quantile,
                   struct err *err)
{
    const char *text = options->quantile;
    char *end;

    *quantile = 0;
    if (!text)
        return 0;
    *quantile = strtod(text, &end);
    if (end == text || *end || !(*quantile >= 0.5) || *quantile > 0.99)
        return err_set(err, "--quantile: '%s' is no number from 0.5 to 0.99",
                       text);
    return 0;
}

/* Are --change, --stragglers and --delay as they should be? */
static int check_job(const struct study_options *o, struct err *err)
{
    struct job_changes changes;
    struct stragglers stragglers;
    struct simulation_delays opened;
    struct delays delays;

    if (study_delay_read(o, &delays, err) ||
        study_delay_open(&delays, &opened, err))
        return -1;
    if (o->stragglers && stragglers_parse(o->stragglers, &stragglers, err))
        return -1;
    return o->change ? job_changes_parse(o->change, &changes, err) : 0;
}

int study_options_check(const struct study_options *options, struct err *err)
{
    double scale[WORK_FAMILIES] = {0}, link[SIM_LINKS] = {0}, factor;

    if (options->scale && price_scale_parse(options->scale, scale, err))
        return -1;
    if (check_job(options, err) || study_gate_check(options, err) ||
        (options->link && price_link_parse(options->link, link, err)) ||
        study_quantile(options, &factor, err))
        return -1;
    if (options->whole_job && options->steps)
        return err_set(err, "--steps N says that the job goes on after what "
                            "was run, --whole-job that it does not");
    if ((options->link || options->quantile || options->placement ||
         options->beside) &&
        !options->cluster)
        return err_set(err, "--link, --quantile, --placement and --beside need "
                            "--cluster: the data sheet of a GPU has no "
                            "network");
    return study_host_factor(options, &factor, err);
}
