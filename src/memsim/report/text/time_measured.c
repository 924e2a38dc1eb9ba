/* SPDX-License-Identifier: Apache-2.0
 * The parts of an imported profile's step, beside those of its replay. */
#include "memsim/report/text/time_report.h"

struct parts {
    uint64_t compute_ns, comm_ns, overlapped_ns, other_ns;
};

static void write_part(const char *name, uint64_t measured, uint64_t replayed,
                       uint64_t whole, FILE *out)
{
    double off = (double)replayed - (double)measured;

    fprintf(out, "    %-22s %10.3f ms %5.1f%%  %10.3f ms  %+7.2f%%\n", name,
            (double)measured / 1e6, 100 * (double)measured / (double)whole,
            (double)replayed / 1e6, 100 * off / (double)whole);
}

static struct parts replayed_parts(const struct timing_step *s)
{
    return (struct parts){.compute_ns = s->compute_ns - s->overlapped_comm_ns,
                          .comm_ns = s->exposed_comm_ns + s->bubble_ns,
                          .overlapped_ns = s->overlapped_comm_ns,
                          .other_ns = s->exposed_copy_ns + s->host_bound_ns +
                                      s->other_ns};
}

static struct parts measured_parts(const struct span_parts *m)
{
    return (struct parts){.compute_ns = m->compute_ns - m->overlapped_comm_ns,
                          .comm_ns = m->exposed_comm_ns,
                          .overlapped_ns = m->overlapped_comm_ns,
                          .other_ns = m->exposed_copy_ns + m->idle_ns};
}

void time_measured_write(const struct timing *t, FILE *out)
{
    const struct timing_step *s = t->step_count ? &t->steps[t->typical] : NULL;

    if (!s || !s->measured_ns)
        return;
    struct parts m = measured_parts(&s->measured), r = replayed_parts(s);
    uint64_t whole = s->measured_ns;
    fprintf(out, "  %-24s %13s %6s  %13s  %8s\n", "parts of a step", "measured",
            "", "replayed", "error");
    write_part("exposed compute", m.compute_ns, r.compute_ns, whole, out);
    write_part("exposed communication", m.comm_ns, r.comm_ns, whole, out);
    write_part("overlapped", m.overlapped_ns, r.overlapped_ns, whole, out);
    write_part("other", m.other_ns, r.other_ns, whole, out);
    if (s->sm_utilization < 0 || s->measured_sm_utilization < 0)
        return;
    fprintf(out,
            "    %-22s %12.1f%%  %18.1f%%  windows of 1 ms: %.1f points\n",
            "SMs with work", 100 * s->measured_sm_utilization,
            100 * s->sm_utilization, 100 * s->sm_utilization_error);
}
