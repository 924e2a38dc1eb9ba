# SPDX-License-Identifier: Apache-2.0
"""The loop of a search: ask for a point, leave it out or try it, tell."""
import bisect
from collections import Counter

from . import SearchError
from . import trials as runs
from .measure import TIMEOUT
from .store import is_cut
from .values import as_text

TOP = 5           # the best ones, which have to stay the same
FAILED_MAX = 10   # trials that all failed, before it is given up


class Search:
    """POINTS by STRATEGY, left out by PRUNER, run by RUNNER, kept in STORE.
    LIMIT: of trials. PATIENCE: trials without a change of the best ones after
    which it ends; 0: never."""

    def __init__(self, objective, strategy, pruner, runner, store, show,
                 limit=None, patience=0):
        self.objective, self.strategy = objective, strategy
        self.pruner, self.runner, self.store = pruner, runner, store
        self.show, self.limit, self.patience = show, limit, patience
        self.trials = []        # that ended
        self._ranked = []       # (value, number, trial), the best first
        self.pruned = []        # (point, kind, words)
        self.begun = 0
        self.top, self.unchanged = [], 0
        self.ended = None       # why, in words

    # --- one point ------------------------------------------------------------

    def _next(self):
        """The next trial that is to be run or is known, or None."""
        while True:
            if self.limit and self.begun >= self.limit:
                self.ended = f"{self.limit} trials were made (--trials)"
                return None
            point = self.strategy.ask()
            if point is None:
                return None
            why = self.pruner.reason(point)
            if not why:
                self.begun += 1
                return runs.Trial(point, self.runner.job.key(point))
            self.pruned.append((point, *why))
            self.strategy.tell(point, None)

    def _judge(self, trial):
        """Takes what TRIAL told."""
        objective = self.objective
        trial.told = told = objective.complete(trial.point, trial.told)
        trial.objection = objective.objection(told)
        trial.value = objective.value(trial.point, told)
        trial.cost = objective.cost(trial.point, told)
        trial.time = objective.time(told)
        trial.memory = told.get("peak_used_bytes")
        if trial.objection is None and trial.value is None:
            trial.objection = objective.lacking()
        self.pruner.learn(trial.point, told)
        self.strategy.tell(trial.point, trial.value)
        self.trials.append(trial)
        if trial.value is not None:
            bisect.insort(self._ranked, (trial.value, len(self.trials),
                                         trial))
        self._follow_top()
        self.show.trial(self, trial)

    def answers(self):
        """The trials that are answers, the best first."""
        return [trial for _, _, trial in self._ranked]

    def _follow_top(self):
        top = [trial.key for _, _, trial in self._ranked[:TOP]]
        self.unchanged = 0 if top != self.top else self.unchanged + 1
        self.top = top

    # --- the loop -------------------------------------------------------------

    def _is_settled(self):
        """The published rule: the best ones have not changed for long."""
        if self.patience and len(self.top) == TOP and \
                self.unchanged >= self.patience:
            self.ended = (f"the best {TOP} did not change for "
                          f"{self.patience} trials (--patience)")
            return True
        return False

    def _check_failed(self, trial, whole):
        if not whole and not any(t.told.get("gpu") for t in self.trials):
            runs.refuse_memsim(trial)
        if len(self.trials) == FAILED_MAX and \
                all(t.told["outcome"] in ("failed", "none", TIMEOUT)
                    for t in self.trials):
            self.ended = f"the first {FAILED_MAX} trials all failed"
            return True
        return False

    def _begin(self):
        """Begins, or takes from the store, one trial. Returns False at the
        end."""
        trial = self._next()
        if trial is None:
            return False
        record = self.store.load(trial.key)
        if record and not is_cut(record, self.runner.limit_s):
            trial.take(record)
            self._judge(trial)
        else:
            self.runner.start(trial)
            self.show.update(self)
        return True

    def _end_one(self):
        """Waits for a trial. Returns whether the search is to end."""
        trial, whole = self.runner.wait()
        if whole:
            self.store.save(trial.key, trial.record())
        self._judge(trial)
        return self._check_failed(trial, whole)

    def run(self):
        """Until no point is left, or it is enough."""
        more = True
        while more or self.runner.running:
            more = more and not self._is_settled()
            if more and self.runner.has_room():
                more = self._begin()
            elif self.runner.running:
                more = not self._end_one() and more

    # --- what is said of all ----------------------------------------------

    def outcomes(self):
        """{outcome: count} of the trials."""
        return Counter(t.told["outcome"] for t in self.trials)

    def ignored_names(self):
        """Names whose value never made a difference, in pairs of trials that
        differ in nothing else."""
        found = []
        for name in self.objective.space.names:
            pairs = self._pairs(name.name)
            if pairs and all(fingerprint(a) == fingerprint(b)
                             for a, b in pairs):
                found.append(name.name)
        return found

    def _pairs(self, name):
        groups = {}
        for trial in self.trials:
            rest = tuple((k, as_text(v)) for k, v in trial.point.items()
                         if k != name)
            groups.setdefault(rest, []).append(trial)
        return [(group[0], other) for group in groups.values()
                for other in group[1:] if fingerprint(group[0])]


def fingerprint(trial):
    """Figures of a trial that are the same in each run of it."""
    if "peak_used_bytes" not in trial.told:
        return None
    return tuple(trial.told.get(name) for name in (
        "outcome", "gpu", "peak_allocated_bytes", "peak_reserved_bytes",
        "peak_used_bytes", "device_ns"))


def check_lacking(search):
    """An objective that no trial has a figure for."""
    fits = [t for t in search.trials if t.told["outcome"] == "fits"]
    if fits and not search.answers() and all(
            t.objection == search.objective.lacking() for t in fits):
        raise SearchError(search.objective.lacking_words())
