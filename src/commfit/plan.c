/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/plan.h"

/* Of doc/commfit.md's errors: sizes by doubling (spacing twice as wide costs
 * half a percent at one node and 3 at several), both placements come with
 * every run, a second run tells spikes from switches, node counts two apart by
 * a factor and more than two of them, since two nodes are a special case. */
static const char text[] =
    "# About ten minutes on the whole cluster. Set G to the GPUs of a node and\n"
    "# HOSTS to a host file; put each run's output into a file of its own, or\n"
    "# all into one, and give them all to commfit.\n"
    "G=8; HOSTS=hosts; BIN=nccl-tests/build\n"
    "\n"
    "# 1. One node: what the links inside give (1 minute).\n"
    "for c in all_reduce all_gather reduce_scatter alltoall; do\n"
    "    $BIN/${c}_perf -b 1K -e 4G -f 2 -g $G -n 20 -w 5\n"
    "done > one-node.log\n"
    "\n"
    "# 2. Several nodes, at 2, 4, 8, ... up to all of them: two nodes alone say\n"
    "#    little about more (NCCL treats them on their own), so run at least\n"
    "#    two larger counts (2 minutes each).\n"
    "for n in 2 4 8; do\n"
    "    for c in all_reduce all_gather reduce_scatter; do\n"
    "        mpirun --hostfile $HOSTS -np $((n * G)) --map-by ppr:$G:node \\\n"
    "            $BIN/${c}_perf -b 1K -e 4G -f 2 -g 1 -n 20 -w 5\n"
    "    done\n"
    "done > nodes.log\n"
    "\n"
    "# 3. One GPU a node, as data parallelism beside tensor parallelism sees it\n"
    "#    (1 minute).\n"
    "mpirun --hostfile $HOSTS -np 4 --map-by ppr:1:node \\\n"
    "    $BIN/all_reduce_perf -b 1K -e 4G -f 2 -g 1 -n 20 -w 5 > one-gpu.log\n"
    "\n"
    "# 4. Where stragglers matter: single iterations (nccl-tests 2.19 or later).\n"
    "mpirun --hostfile $HOSTS -np $((2 * G)) --map-by ppr:$G:node \\\n"
    "    $BIN/all_reduce_perf -b 1M -e 1G -f 4 -g 1 -n 100 -I 1 \\\n"
    "    -J iterations.json\n"
    "\n"
    "commfit one-node.log nodes.log one-gpu.log iterations.json \\\n"
    "    -o fits/mine.json --plot mine.svg\n";

void plan_print(FILE *out)
{
    fputs(text, out);
}
