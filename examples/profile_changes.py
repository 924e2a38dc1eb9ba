#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what changes of a profiled job would do to its step:

    memsim import rank0.json.gz -o profile
    examples/profile_changes.py profile -o step.svg \\
        --row "flash attention twice as fast: --change time:flash=0.5" \\
        --row "12 layers: --change layers=12" --row "on a B200: --gpu b200"

The first bar is the profile, the second its replay with the measured durations;
then each row is `memsim replay` with its options. Needs Python alone."""
import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from html import escape

PARTS = [("compute_ns", "compute", "#4c78a8"),
         ("exposed_comm_ns", "communication, exposed", "#f58518"),
         ("exposed_copy_ns", "copies, exposed", "#72b7b2"),
         ("host_bound_ns", "waits for the host", "#bab0ac"),
         ("other_ns", "gaps", "#e8e4e1")]
LABEL, BAR, HEIGHT, PITCH = 260, 560, 22, 34


def replay(memsim, recording, options):
    """The replayed step of `memsim replay`: the one that its summary shows."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/replay.json"
        done = subprocess.run([memsim, "replay", recording, "-q", "--json", path,
                               *options], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr.strip())
        with open(path) as file:
            result = json.load(file)
    rank = next(r for r in result["ranks"]
                if r["rank"] == result["time"]["slowest_rank"])
    return rank["steps"][result["time"]["step_index"]]


def measured(step):
    """The same step as the profile has it; None: it was not measured."""
    if "measured_ns" not in step:
        return None
    return {**step["measured"], "duration_ns": step["measured_ns"]}


def bar(y, label, step, longest):
    x, parts = LABEL, []
    for key, name, color in PARTS:
        width = BAR * step.get(key, 0) / longest
        parts.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" '
                     f'height="{HEIGHT}" fill="{color}"><title>{name}: '
                     f'{step.get(key, 0) / 1e6:.3f} ms</title></rect>')
        x += width
    text = f'{step["duration_ns"] / 1e6:.2f} ms'
    return (f'<text x="{LABEL - 8}" y="{y + 16}" text-anchor="end">'
            f'{escape(label)}</text>' + "".join(parts) +
            f'<text x="{x + 6:.1f}" y="{y + 16}">{text}</text>')


def draw(rows):
    longest = max(step["duration_ns"] for _label, step in rows)
    height = PITCH * (len(rows) + 1) + 16
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LABEL + BAR + 110}"'
             f' height="{height}" font-family="sans-serif" font-size="13">',
             '<rect width="100%" height="100%" fill="white"/>']
    for i, (label, step) in enumerate(rows):
        lines.append(bar(8 + PITCH * i, label, step, longest))
    for i, (_key, name, color) in enumerate(PARTS):
        x, y = 12 + 184 * i, height - 24
        lines.append(f'<rect x="{x}" y="{y}" width="12" height="12" '
                     f'fill="{color}"/><text x="{x + 18}" y="{y + 11}">{name}</text>')
    return "\n".join([*lines, "</svg>\n"])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("recording")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--memsim", default="memsim")
    parser.add_argument("--row", action="append", default=[],
                        metavar="LABEL: OPTIONS")
    args = parser.parse_args()
    plain = replay(args.memsim, args.recording, [])
    rows = [("replayed", plain)]
    if measured(plain):
        rows.insert(0, ("the profile", measured(plain)))
    for label, _colon, options in (row.partition(":") for row in args.row):
        rows.append((label, replay(args.memsim, args.recording,
                                   shlex.split(options))))
    with open(args.output, "w") as file:
        file.write(draw(rows))
    for label, step in rows:
        print(f'{step["duration_ns"] / 1e6:10.3f} ms  {label}')


if __name__ == "__main__":
    main()
