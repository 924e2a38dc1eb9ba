# SPDX-License-Identifier: Apache-2.0
"""What a search shows while it runs: on a terminal a table that is drawn again,
elsewhere a line for each trial."""
import shutil

from .measure import OUTCOMES
from .output import clean, counts, point_words, table, value_words

ROWS = 5


def trial_words(search, trial):
    """A trial in one line."""
    outcome = OUTCOMES.get(trial.told["outcome"], trial.told["outcome"])
    if trial.value is not None:
        outcome = "fits, " + value_words(search.objective, trial)
    elif trial.told["outcome"] == "fits":
        outcome = "fits, but " + (trial.objection or "")
    return f"{point_words(trial.point)}: {outcome}" + \
        (", before" if trial.known else "")


class Lines:
    """A line for each trial."""

    def __init__(self, out, total):
        self.out, self.total = out, total

    def trial(self, search, trial):
        done = len(search.trials) + len(search.pruned)
        of = "" if self.total is None else f"/{self.total}"
        self.out.write(f"  {done}{of}  "
                       f"{trial_words(search, trial)}\n")
        self.out.flush()

    def update(self, search):
        pass

    def end(self):
        pass


class Silent(Lines):
    def trial(self, search, trial):
        pass


class Table(Lines):
    """The best so far and what runs, in place of what was drawn before."""

    def __init__(self, out, total):
        super().__init__(out, total)
        self.drawn = 0

    def lines(self, search):
        told = [counts(search, self.total)]
        if search.answers():
            told += table(search, search.answers()[:ROWS])
        for trial, *_ in search.runner.running.values():
            told.append("  runs: " + point_words(trial.point))
        return told

    def update(self, search):
        width = shutil.get_terminal_size().columns
        self.erase()
        lines = [clean(line)[:max(1, width - 1)]
                 for line in self.lines(search)]
        self.out.write("".join(line + "\n" for line in lines))
        self.out.flush()
        self.drawn = len(lines)

    def trial(self, search, trial):
        self.update(search)

    def erase(self):
        if self.drawn:
            self.out.write(f"\x1b[{self.drawn}F\x1b[J")
        self.drawn = 0

    def end(self):
        self.erase()
        self.out.flush()


def make(out, total, quiet):
    if quiet:
        return Silent(out, total)
    return (Table if out.isatty() else Lines)(out, total)
