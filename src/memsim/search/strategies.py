# SPDX-License-Identifier: Apache-2.0
"""Which point is next: in order, at random, or by an optimizer of Optuna.

A strategy has ask(), which gives a point or None at the end, and tell(point,
value): value is what the objective makes small, None where the point is no
answer."""
import os
import random
import sys

from . import SearchError
from .values import as_text

SAMPLERS = {"tpe": "TPESampler", "cmaes": "CmaEsSampler", "gp": "GPSampler"}
NAMES = ("exhaustive", "random", *SAMPLERS)
EXHAUSTIVE_MAX = 256  # points that are all tried unless the user says otherwise
STORAGES = ("journal", "sqlite")
STUDY = "memsim"
DRAWS_MAX = 1000  # until a point keeps the constraints


def has_optuna():
    try:
        import optuna  # noqa: F401
    except ImportError:
        return False
    return True


def choose(name, space, points):
    """The strategy NAME, or the one that suits POINTS of SPACE."""
    if name == "exhaustive" and space.spans:
        raise SearchError(
            f"--strategy exhaustive: '{space.spans[0].name}' is a range "
            "without steps: give it a step or a count, or another strategy")
    if name:
        return name
    if len(points) <= EXHAUSTIVE_MAX and not space.spans:
        return "exhaustive"
    return "tpe" if has_optuna() else "random"


class InOrder:
    """POINTS as they come."""

    def __init__(self, points):
        self.left = iter(points)

    def ask(self):
        return next(self.left, None)

    def tell(self, point, value):
        pass


def shuffled(points, seed):
    points = list(points)
    random.Random(seed).shuffle(points)
    return points


class Drawn:
    """Random values of SPACE's spans, beside random ones of POINTS."""

    def __init__(self, space, points, seed):
        self.space, self.points = space, points
        self.random = random.Random(seed)

    def ask(self):
        for _ in range(DRAWS_MAX):
            point = dict(self.random.choice(self.points))
            for name in self.space.spans:
                span = name.span
                point[name.name] = span.value(span.at(self.random.random()))
            if self.space.keeps(point):
                return point
        return fail_draws(self.space)

    def tell(self, point, value):
        pass


def fail_draws(space):
    raise SearchError(f"{space.file.path}: of {DRAWS_MAX} points that were "
                      "drawn none keeps the constraints; give a smaller range "
                      "or a step")


class Optimizer:
    """An optimizer of Optuna, on the places of the values. A point that it
    asks for may break a constraint or be known: the nearest one that was not
    asked for is taken, and its value told in that point's name. Values of spans
    are its own."""

    def __init__(self, space, points, sampler, directory, storage, seed):
        self.optuna = import_optuna(sampler)
        self.space = space
        self.axes = [name for name in space.listed if name.varies]
        self.left = {self._places(point): point for point in points}
        self.asked, self.worst = {}, None
        self.study = self._open(sampler, directory, storage, seed)

    def _places(self, point):
        return tuple(axis.values.index(point[axis.name]) for axis in self.axes)

    def _open(self, sampler, directory, storage, seed):
        optuna = self.optuna
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        kind = getattr(optuna.samplers, SAMPLERS[sampler])
        study = optuna.create_study(
            study_name=f"{STUDY}-{sampler}", load_if_exists=True,
            sampler=kind(seed=seed),
            storage=open_storage(optuna, directory, storage))
        for trial in study.get_trials(states=[
                optuna.trial.TrialState.RUNNING]):
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        return study

    def _suggest(self, trial):
        """The places that the optimizer wants, of each axis."""
        wanted = []
        for axis in self.axes:
            last = len(axis.values) - 1
            if axis.is_ordered:
                wanted.append(trial.suggest_int(axis.name, 0, last))
            else:
                choices = [as_text(value) for value in axis.values]
                wanted.append(choices.index(trial.suggest_categorical(
                    axis.name, choices)))
        return wanted

    def _distance(self, places, wanted):
        total = 0.0
        for axis, a, b in zip(self.axes, places, wanted):
            total += abs(a - b) / (len(axis.values) - 1) if axis.is_ordered \
                else a != b
        return total

    def _suggest_spans(self, trial):
        """{name: value} that the optimizer wants of the spans."""
        return {name.name: name.span.value(trial.suggest_float(
            name.name, name.span.low, name.span.high, log=name.span.is_log))
            for name in self.space.spans}

    def _key(self, point):
        return tuple(as_text(point[name.name]) for name in self.space.names)

    def _next(self, trial):
        """The point that TRIAL is of."""
        wanted = self._suggest(trial)
        nearest = min(self.left, key=lambda p: self._distance(p, wanted))
        if self.space.spans:
            return {**self.left[nearest], **self._suggest_spans(trial)}
        return self.left.pop(nearest)

    def ask(self):
        for _ in range(DRAWS_MAX):
            if not self.left:
                return None
            trial = self.study.ask()
            point = self._next(trial)
            is_new = self._key(point) not in self.asked
            if is_new and (not self.space.spans or self.space.keeps(point)):
                self.asked[self._key(point)] = trial
                return point
            self._tell_worse(trial)
        return fail_draws(self.space)

    def _tell_worse(self, trial):
        """TRIAL's point is no answer: worse than all that are."""
        if self.worst is None:
            self.study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
        else:
            self.study.tell(trial, self.worst + abs(self.worst))

    def tell(self, point, value):
        trial = self.asked.pop(self._key(point))
        if value is not None:
            self.worst = value if self.worst is None else max(self.worst,
                                                              value)
            self.study.tell(trial, value)
        else:
            self._tell_worse(trial)


def open_storage(optuna, directory, storage):
    if storage == "sqlite":
        return f"sqlite:///{os.path.abspath(directory)}/optuna.sqlite"
    from optuna.storages.journal import JournalFileBackend
    return optuna.storages.JournalStorage(
        JournalFileBackend(os.path.join(directory, "optuna.journal")))


def import_optuna(sampler):
    """The package, with what SAMPLER needs besides."""
    try:
        import optuna
        if sampler == "cmaes":
            import cmaes  # noqa: F401
        if sampler == "gp":
            import scipy  # noqa: F401
            import torch  # noqa: F401
    except (ImportError, OSError) as error:
        extra = {"cmaes": " cmaes", "gp": " scipy torch"}.get(sampler, "")
        raise SearchError(
            f"--strategy {sampler}: {sys.executable} cannot import "
            f"{getattr(error, 'name', None) or error}; `pip install "
            f"optuna{extra}', or name a Python that has it (--python); "
            "exhaustive and random need no package") from None
    return optuna


def make(name, space, points, directory, storage, seed):
    """The strategy NAME over POINTS."""
    if name == "exhaustive":
        return InOrder(points)
    if name == "random" and space.spans:
        return Drawn(space, points, seed)
    if name == "random":
        return InOrder(shuffled(points, seed))
    return Optimizer(space, points, name, directory, storage, seed)
