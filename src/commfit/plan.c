/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/plan.h"

/* What doc/commfit.md's errors ask for: sizes by doubling (twice as far apart
 * costs half a percent on one node and three on several); every run has both
 * placements; two nodes are a special case, so more than two node counts. */
static const char text[] =
    "# About ten minutes on the whole cluster. Set G to the GPUs of a node,\n"
    "# HOSTS to a host file, BIN to where nccl-tests was built.\n"
    "G=8; HOSTS=hosts; BIN=nccl-tests/build\n"
    "\n"
    "# 1. One node: what the links inside give (about a minute).\n"
    "for c in all_reduce all_gather reduce_scatter alltoall; do\n"
    "    $BIN/${c}_perf -b 1K -e 4G -f 2 -g $G -n 20 -w 5\n"
    "done > one-node.log\n"
    "\n"
    "# 2. Several nodes, up to all of them. NCCL treats two nodes on their\n"
    "#    own: run at least two larger counts (about two minutes each).\n"
    "for n in 2 4 8; do\n"
    "    for c in all_reduce all_gather reduce_scatter; do\n"
    "        mpirun --hostfile $HOSTS -np $((n * G)) --map-by ppr:$G:node \\\n"
    "            $BIN/${c}_perf -b 1K -e 4G -f 2 -g 1 -n 20 -w 5\n"
    "    done\n"
    "done > nodes.log\n"
    "\n"
    "# 3. One GPU a node, as data parallelism beside tensor parallelism\n"
    "#    uses the network (about a minute).\n"
    "mpirun --hostfile $HOSTS -np 4 --map-by ppr:1:node \\\n"
    "    $BIN/all_reduce_perf -b 1K -e 4G -f 2 -g 1 -n 20 -w 5 > one-gpu.log\n"
    "\n"
    "# 4. Where stragglers matter: single iterations, with an nccl-tests\n"
    "#    that has -I and -J (2.19.6 does).\n"
    "mpirun --hostfile $HOSTS -np $((2 * G)) --map-by ppr:$G:node \\\n"
    "    $BIN/all_reduce_perf -b 1M -e 1G -f 4 -g 1 -n 100 -I 1 \\\n"
    "    -J iterations.json\n"
    "\n"
    "commfit one-node.log nodes.log one-gpu.log iterations.json \\\n"
    "    -o mine.json --plot mine.svg\n";

void plan_print(FILE *out)
{
    fputs(text, out);
}
