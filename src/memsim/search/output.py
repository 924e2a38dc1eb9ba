# SPDX-License-Identifier: Apache-2.0
"""The result of a search as text, JSON and CSV."""
import csv
import io
import json
import sys

from .front import pareto
from .measure import NO_VERDICT, OUTCOMES
from .objective import GOALS
from .store import write_whole
from .values import as_text

SHOWN = 10     # rows of a table
FAILURES = 5   # that are told with what the command printed
SEARCH_SCHEMA = 1
PRUNED = {"memory": "by memory", "rule": "by a rule", "symmetric": "symmetric",
          "time": "by their least time"}
GIB = 1 << 30


# --- words -------------------------------------------------------------------

def clean(text):
    """TEXT without what a terminal would obey."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def clean_lines(text):
    """The same, of text with several lines."""
    return "\n".join(map(clean, text.split("\n")))


def points_words(count):
    """COUNT None: a space with ranges without steps."""
    if count is None:
        return "points of a range"
    return "1 point" if count == 1 else f"{count} points"


def point_words(point, names=None):
    return clean(" ".join(f"{k}={as_text(v)}" for k, v in point.items()
                          if names is None or k in names))


def time_words(nanoseconds):
    if nanoseconds is None:
        return ""
    if nanoseconds < 1e6:
        return f"{nanoseconds / 1e3:.3g} us"
    return f"{nanoseconds / 1e6:.1f} ms" if nanoseconds < 1e10 \
        else f"{nanoseconds / 1e9:.1f} s"


def size_words(size):
    return "" if size is None else f"{size / GIB:.2f} GiB"


def headroom_words(trial):
    told = trial.told
    return f"{100 * told['headroom_bytes'] / told['capacity_bytes']:.0f}%" \
        if told.get("capacity_bytes") else ""


def number_words(value):
    return "" if value is None else f"{value:,.0f}" if value >= 1000 \
        else f"{value:.3g}"


def value_words(objective, trial):
    """What the objective is about, of TRIAL."""
    told = trial.told
    return {"time": lambda: "step " + time_words(told.get("step_ns")),
            "cost": lambda: f"{number_words(trial.cost)} for "
                            f"{objective.cost_of()}",
            "gpus": lambda: f"{told['gpus']} GPUs",
            "batch": lambda: f"batch {round_batch(trial.value)}",
            }.get(objective.goal, lambda: number_words(-trial.value) + " " +
                  objective.goal)()


def round_batch(value):
    """The batch that a value of the goal "batch" is of: see value()."""
    return int(-value // 1 + 1) if value % 1 else int(-value)


# --- columns -----------------------------------------------------------------

def columns(search):
    """[(heading, function of a trial)], those that some trial has."""
    objective = search.objective
    many = len({t.told.get("gpus") for t in search.trials}) > 1
    cost = f"cost of {objective.cost_of()}"
    all_of_them = [
        ("step", lambda t: time_words(t.told.get("step_ns"))),
        ("tokens/s", lambda t: number_words(t.told.get("tokens_per_second"))),
        ("MFU", lambda t: f"{100 * t.told['mfu']:.0f}%"
         if t.told.get("mfu") else ""),
        ("GPUs", lambda t: str(t.told.get("gpus") or "") if many else ""),
        (cost, lambda t: number_words(t.cost)),
        ("used", lambda t: size_words(t.told.get("peak_used_bytes"))),
        ("headroom", headroom_words),
    ]
    return [(title, cell) for title, cell in all_of_them
            if any(cell(t) for t in search.trials)]


def varied(search):
    return {n.name for n in search.objective.space.names if n.varies}


def table(search, trials):
    """Lines: TRIALS under their headings."""
    cells = columns(search)
    names = varied(search)
    rows = [[title for title, _ in cells] + ["point"]]
    rows += [[cell(t) for _, cell in cells] + [point_words(t.point, names)]
             for t in trials]
    widths = [max(len(row[i]) for row in rows) for i in range(len(cells))]
    return ["  " + "  ".join(cell.rjust(width)
                             for cell, width in zip(row, widths)) +
            "  " + row[-1] for row in rows]


# --- the text ----------------------------------------------------------------

def counts(search, total):
    """The points by what became of them, in one line."""
    tried = ", ".join(f"{n} {OUTCOMES.get(k, k)}"
                      for k, n in search.outcomes().most_common())
    told = f"{points_words(total)}: {len(search.trials)} tried"
    if tried:
        told += f" ({tried})"
    known = sum(t.known for t in search.trials)
    if known:
        told += f", {known} of them before"
    if search.pruned:
        kinds = {}
        for _, kind, _ in search.pruned:
            kinds[kind] = kinds.get(kind, 0) + 1
        told += f"; {len(search.pruned)} left out (" + ", ".join(
            f"{n} {PRUNED[k]}" for k, n in kinds.items()) + ")"
    return told


def failures(search):
    """Lines: what failed for other reasons than memory."""
    failed = [t for t in search.trials
              if t.told["outcome"] in NO_VERDICT]
    lines = []
    for trial in failed[:FAILURES]:
        printed = trial.printed.strip().splitlines()
        status = trial.told.get("exit_status")
        lines.append(f"  {point_words(trial.point)}: "
                     f"{OUTCOMES[trial.told['outcome']]}, status {status}" +
                     (f": {clean(printed[-1])[:200]}" if printed else ""))
    if len(failed) > FAILURES:
        lines.append(f"  ... {len(failed) - FAILURES} more")
    return ["not counted as out of memory:"] + lines if lines else []


def remarks(search, total):
    """Lines: what the user may not expect."""
    lines = [search.ended] if search.ended else []
    for name in search.ignored_names():
        lines.append(f"{name}: all results are equal; does the command use it?")
    if any(search.objective.shares_unsaid(t.told) for t in search.trials):
        lines.append("tokens/s is that of ranks which each have a batch of "
                     "their own; where some share one (tensor or pipeline "
                     "parallel), say step_tokens in [objective]")
    others = {t.told["memsim"] for t in search.trials
              if t.known and t.told.get("memsim")} - {search.runner.job.build}
    if others:
        lines.append("trials are of another build of memsim (" +
                     clean(", ".join(sorted(others))) +
                     "); another -o tries them again")
    if total == 1:
        lines.append("the space has one point: there was nothing to choose")
    if search.pruned:
        lines.append("the best point is that of all points, if the rules of "
                     "the space hold; the front is of those that were tried")
    return lines


def text(search, total):
    """The result, as lines."""
    answers = search.answers()
    lines = [counts(search, total)]
    if answers:
        best = answers[0]
        lines = [f"best: {point_words(best.point)}: "
                 f"{value_words(search.objective, best)}, "
                 f"{size_words(best.told.get('peak_used_bytes'))} used", *lines,
                 "", f"the best by {goal_words(search)}:",
                 *table(search, answers[:SHOWN])]
        front = pareto(search.trials)
        lines += ["", "no other is better in time"
                  f"{search.objective.time_of()}, cost and memory at once:",
                  *table(search, front[:SHOWN])]
        if len(front) > SHOWN:
            lines.append(f"  ... {len(front) - SHOWN} more (--json, --csv)")
    else:
        lines.insert(0, "no point is an answer" + why_none(search))
    if answers and search.trials and failures(search):
        lines.append("")
    lines += failures(search)
    told = remarks(search, total)
    return lines + ([""] if told else []) + [f"note: {line}" for line in told]


def goal_words(search):
    return GOALS[search.objective.goal]


def why_none(search):
    reasons = {}
    for trial in search.trials:
        reasons[trial.objection] = reasons.get(trial.objection, 0) + 1
    told = ", ".join(f"{k}: {n}" for k, n in reasons.items())
    return f" ({told})" if told else ""


# --- files -------------------------------------------------------------------

FIGURES = ("exit_status", "gpu", "gpus", "step_ns", "low_ns", "high_ns",
           "keeps_up_ns", "device_ns", "tokens_per_second",
           "samples_per_second", "mfu", "peak_allocated_bytes",
           "peak_reserved_bytes", "peak_used_bytes", "headroom_bytes",
           "capacity_bytes", "host_bytes")


def trial_row(trial, front):
    row = {"point": {k: as_text(v) for k, v in trial.point.items()},
           "verdict": trial.told["outcome"], "known_before": trial.known,
           "on_front": trial in front}
    if trial.objection:
        row["objection"] = trial.objection
    if trial.cost is not None:
        row["cost"] = trial.cost
    row.update({name: trial.told[name] for name in FIGURES
                if trial.told.get(name) is not None})
    return row


def document(search, total, version, strategy):
    """What --json writes, and the page shows."""
    front = pareto(search.trials)
    answers = search.answers()
    told = {"search_schema": SEARCH_SCHEMA, "version": version,
            "goal": search.objective.goal,
            "cost_of": search.objective.cost_of(), "strategy": strategy,
            "names": [n.name for n in search.objective.space.names]}
    if total is not None:
        told["points"] = total
    if search.ended:
        told["ended"] = search.ended
    if answers:
        told["best"] = trial_row(answers[0], front)
    told["trials"] = [trial_row(t, front) for t in answers + [
        t for t in search.trials if t.value is None]]
    told["left_out"] = [{"point": {k: as_text(v) for k, v in point.items()},
                         "kind": kind, "why": why}
                        for point, kind, why in search.pruned]
    told["ignored_names"] = search.ignored_names()
    return told


def csv_cell(value):
    """VALUE, which no spreadsheet takes for a formula."""
    if isinstance(value, str) and value[:1] and value[0] in "=+-@\t\r":
        try:
            float(value)
        except ValueError:
            return "'" + value
    return "" if value is None else value


def csv_text(told):
    """The trials of document() as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    figures = ("verdict", "objection", "on_front", "cost") + FIGURES
    writer.writerow([csv_cell(n) for n in told["names"]] + list(figures))
    for row in told["trials"]:
        writer.writerow([csv_cell(row["point"][n]) for n in told["names"]] +
                        [csv_cell(row.get(f)) for f in figures])
    return out.getvalue()


def write(path, words):
    """WORDS to the file PATH; - is standard output."""
    if path == "-":
        sys.stdout.write(words)
        sys.stdout.flush()
    else:
        write_whole(path, words)


def json_text(told):
    return json.dumps(told, indent=1, allow_nan=False) + "\n"
