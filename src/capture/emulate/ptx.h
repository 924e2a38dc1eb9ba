/* SPDX-License-Identifier: Apache-2.0
 * The kernel's code, which the driver compiles: PTX, for compute capability 7.0
 * and later. */
#ifndef MEMSIM_CAPTURE_EMULATE_PTX_H
#define MEMSIM_CAPTURE_EMULATE_PTX_H

/* template <T> __global__ void memsim_collective(
 *     const void *send, void *receive, size_t count, size_t shares,
 *     double factor, size_t ns, size_t nodes, double lag, size_t *last,
 *     const size_t *gate, size_t ticket)
 *
 *   begin = the time; the slowest rank comes (begin - *last) * lag later, and
 *     real ones when *gate is ticket
 *   each thread: loads an element, multiplies, stores it in every share
 *   one thread of each block: waits until begin + ns; *last = the time
 *
 * The name and the nodes tell profilers, and a simulated GPU, what it stands
 * for. */
#define EMULATED_NAME(type)                                                    \
    "_Z17memsim_collectiveI" type "EvPKvPvmmdmmdPmPKmm"

/* __global__ void memsim_delay(size_t ns, size_t parts, size_t *last)
 *
 *   waits for ns, and for so many millionths of the time since *last, if parts
 *   is not 0; *last = the time, if last is not NULL
 *
 * What follows on its stream comes later. */
#define EMULATED_DELAY "_Z12memsim_delaymmPm"

#define PTX_DELAY                                                              \
    ".visible .entry " EMULATED_DELAY "(\n"                                    \
    " .param .u64 p_ns, .param .u64 p_parts, .param .u64 p_last)\n"            \
    ".maxntid 1, 1, 1\n"                                                       \
    "{\n .reg .pred %p;\n .reg .b64 %begin, %now, %last, %ns, %n;\n"          \
    " mov.u64 %begin, %globaltimer;\n"                                         \
    " ld.param.u64 %ns, [p_ns];\n"                                             \
    " ld.param.u64 %n, [p_parts];\n"                                           \
    " ld.param.u64 %last, [p_last];\n"                                         \
    " setp.eq.u64 %p, %n, 0;\n @%p bra WAIT;\n"                               \
    " ld.volatile.global.u64 %now, [%last];\n"                                 \
    " setp.ge.u64 %p, %now, %begin;\n @%p bra WAIT;\n"                        \
    " sub.u64 %now, %begin, %now;\n mul.lo.u64 %now, %now, %n;\n"             \
    " div.u64 %now, %now, 1000000;\n add.u64 %ns, %ns, %now;\n"               \
    "WAIT:\n"                                                                  \
    " add.u64 %n, %begin, %ns;\n"                                              \
    "SPIN:\n"                                                                  \
    " mov.u64 %now, %globaltimer;\n"                                           \
    " setp.lt.u64 %p, %now, %n;\n @%p bra SPIN;\n"                            \
    " setp.eq.u64 %p, %last, 0;\n @%p bra END;\n"                             \
    " st.volatile.global.u64 [%last], %now;\n"                                 \
    "END:\n ret;\n}\n"

#define PTX_HEAD ".version 6.3\n.target sm_70\n.address_size 64\n"

#define PTX_ENTRY(type)                                                        \
    ".visible .entry " EMULATED_NAME(type) "(\n"                               \
    " .param .u64 p_send, .param .u64 p_receive, .param .u64 p_count,\n"       \
    " .param .u64 p_shares, .param .f64 p_factor, .param .u64 p_ns,\n"         \
    " .param .u64 p_nodes, .param .f64 p_lag, .param .u64 p_last,\n"           \
    " .param .u64 p_gate, .param .u64 p_ticket)\n"                             \
    ".maxntid 512, 1, 1\n"                                                     \
    "{\n .reg .pred %p, %q;\n .reg .b16 %h;\n"                                 \
    " .reg .b32 %r, %s, %t, %x, %y, %z, %w;\n"                                 \
    " .reg .b64 %begin, %now, %last, %ns, %i, %step, %count, %shares;\n"       \
    " .reg .b64 %from, %to, %stride, %n, %v;\n"                                \
    " .reg .f32 %f, %g;\n .reg .f64 %d, %e;\n"                                 \
    " mov.u64 %begin, %globaltimer;\n"                                         \
    " ld.param.u64 %ns, [p_ns];\n"                                             \
    " ld.param.u64 %count, [p_count];\n"                                       \
    " ld.param.u64 %shares, [p_shares];\n"                                     \
    " ld.param.u64 %last, [p_last];\n"                                         \
    " ld.param.f64 %e, [p_factor];\n"                                          \
    " setp.eq.u64 %p, %last, 0;\n @%p bra GATE;\n"                             \
    " ld.volatile.global.u64 %now, [%last];\n"                                 \
    " setp.eq.u64 %p, %now, 0;\n @%p bra GATE;\n"                              \
    " setp.ge.u64 %p, %now, %begin;\n @%p bra GATE;\n"                         \
    " sub.u64 %now, %begin, %now;\n cvt.rn.f64.u64 %d, %now;\n"                \
    " ld.param.f64 %e, [p_lag];\n mul.f64 %d, %d, %e;\n"                       \
    " ld.param.f64 %e, [p_factor];\n"                                          \
    " cvt.rzi.u64.f64 %now, %d;\n add.u64 %begin, %begin, %now;\n"             \
    "GATE:\n"                                                                  \
    " ld.param.u64 %n, [p_gate];\n"                                            \
    " setp.eq.u64 %p, %n, 0;\n @%p bra MOVE;\n"                                \
    " ld.param.u64 %v, [p_ticket];\n"                                          \
    " mov.u32 %t, %tid.x;\n setp.ne.u32 %p, %t, 0;\n @%p bra COME;\n"          \
    "LOOK:\n"                                                                  \
    " ld.volatile.global.u64 %now, [%n];\n"                                    \
    " setp.ge.u64 %p, %now, %v;\n @%p bra COME;\n"                             \
    " nanosleep.u32 200;\n bra LOOK;\n"                                        \
    "COME:\n bar.sync 0;\n"                                                    \
    " mov.u64 %now, %globaltimer;\n max.u64 %begin, %begin, %now;\n"           \
    "MOVE:\n"                                                                  \
    " setp.eq.u64 %p, %shares, 0;\n @%p bra WAIT;\n"                           \
    " mov.u32 %r, %ctaid.x;\n mov.u32 %s, %ntid.x;\n mov.u32 %t, %tid.x;\n"    \
    " mad.lo.u32 %r, %r, %s, %t;\n cvt.u64.u32 %i, %r;\n"                      \
    " mov.u32 %t, %nctaid.x;\n mul.wide.u32 %step, %s, %t;\n"

#define PTX_LOOP(bytes, load, make, store)                                     \
    " mul.lo.u64 %stride, %count, " #bytes ";\n"                               \
    "NEXT:\n"                                                                  \
    " setp.ge.u64 %p, %i, %count;\n @%p bra WAIT;\n"                           \
    " ld.param.u64 %from, [p_send];\n"                                         \
    " ld.param.u64 %to, [p_receive];\n"                                        \
    " mad.lo.u64 %from, %i, " #bytes ", %from;\n"                              \
    " mad.lo.u64 %to, %i, " #bytes ", %to;\n"                                  \
    " " load ", [%from];\n" make                                               \
    " mov.u64 %n, %shares;\n"                                                  \
    "SHARE:\n"                                                                 \
    " st.global." store ";\n add.u64 %to, %to, %stride;\n"                     \
    " sub.u64 %n, %n, 1;\n setp.ne.u64 %q, %n, 0;\n @%q bra SHARE;\n"          \
    " add.u64 %i, %i, %step;\n bra NEXT;\n"                                    \
    "WAIT:\n"                                                                  \
    " mov.u32 %t, %tid.x;\n setp.ne.u32 %p, %t, 0;\n @%p bra END;\n"           \
    " add.u64 %n, %begin, %ns;\n"                                              \
    "SPIN:\n"                                                                  \
    " mov.u64 %now, %globaltimer;\n"                                           \
    " setp.lt.u64 %p, %now, %n;\n @%p bra SPIN;\n"                             \
    " mov.u32 %r, %ctaid.x;\n setp.ne.u32 %p, %r, 0;\n @%p bra END;\n"         \
    " setp.eq.u64 %p, %last, 0;\n @%p bra END;\n"                              \
    " st.volatile.global.u64 [%last], %now;\n"                                 \
    "END:\n bar.sync 0;\n ret;\n}\n"

#define PTX_COPY(type, bytes, load, store)                                     \
    PTX_ENTRY(type) PTX_LOOP(bytes, load, "", store)

/* Of a float in %f, times the factor. */
#define PTX_TIMES_F32 " cvt.rn.f32.f64 %g, %e;\n mul.f32 %f, %f, %g;\n"
#define PTX_TIMES_F16                                                          \
    " cvt.f32.f16 %f, %h;\n" PTX_TIMES_F32 " cvt.rn.f16.f32 %h, %f;\n"
/* A bfloat16 is the upper half of a float: rounded to even, NaN kept. */
#define PTX_TIMES_BF16                                                         \
    " cvt.u32.u16 %x, %h;\n shl.b32 %x, %x, 16;\n mov.b32 %f, %x;\n"           \
    PTX_TIMES_F32                                                              \
    " mov.b32 %x, %f;\n shr.u32 %y, %x, 16;\n and.b32 %z, %y, 1;\n"            \
    " add.u32 %z, %z, 32767;\n add.u32 %x, %x, %z;\n shr.u32 %x, %x, 16;\n"    \
    " or.b32 %y, %y, 64;\n testp.notanumber.f32 %q, %f;\n"                     \
    " selp.b32 %x, %y, %x, %q;\n cvt.u16.u32 %h, %x;\n"
#define PTX_TIMES_INTEGER " cvt.rzi.s64.f64 %v, %e;\n"

static const char emulated_code[] = PTX_HEAD PTX_DELAY
    PTX_COPY("c", 1, "ld.global.u8 %r", "u8 [%to], %r")
    PTX_COPY("5uint4", 16, "ld.global.v4.u32 {%x, %y, %z, %w}",
         "v4.u32 [%to], {%x, %y, %z, %w}")
    PTX_ENTRY("f") PTX_LOOP(4, "ld.global.f32 %f", PTX_TIMES_F32,
                            "f32 [%to], %f")
    PTX_ENTRY("d") PTX_LOOP(8, "ld.global.f64 %d", " mul.f64 %d, %d, %e;\n",
                    "f64 [%to], %d")
    PTX_ENTRY("6__half") PTX_LOOP(2, "ld.global.b16 %h", PTX_TIMES_F16,
                                  "b16 [%to], %h")
    PTX_ENTRY("13__nv_bfloat16")
        PTX_LOOP(2, "ld.global.b16 %h", PTX_TIMES_BF16, "b16 [%to], %h")
    PTX_ENTRY("a") PTX_LOOP(1, "ld.global.u8 %r",
                    PTX_TIMES_INTEGER " cvt.u32.u64 %s, %v;\n"
                                  " mul.lo.u32 %r, %r, %s;\n",
                    "u8 [%to], %r")
    PTX_ENTRY("i") PTX_LOOP(4, "ld.global.u32 %x",
                    PTX_TIMES_INTEGER " cvt.u32.u64 %y, %v;\n"
                                  " mul.lo.u32 %x, %x, %y;\n",
                    "u32 [%to], %x")
    PTX_ENTRY("l") PTX_LOOP(8, "ld.global.u64 %from",
                    PTX_TIMES_INTEGER " mul.lo.u64 %from, %from, %v;\n",
                    "u64 [%to], %from");

#endif
