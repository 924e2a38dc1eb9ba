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


def has_optuna():
    try:
        import optuna  # noqa: F401
    except ImportError:
        return False
    return True


def choose(name, points):
    """The strategy NAME, or the one that suits POINTS."""
    if name:
        return name
    if len(points) <= EXHAUSTIVE_MAX:
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


class Optimizer:
    """An optimizer of Optuna, on the places of the values. A point that it
    asks for may break a constraint or be known: the nearest one that was not
    asked for is taken, and its value told in that point's name."""

    def __init__(self, space, points, sampler, directory, storage, seed):
        self.optuna = import_optuna(sampler)
        self.space = space
        self.axes = [name for name in space.names if len(name.values) > 1]
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

    def ask(self):
        if not self.left:
            return None
        trial = self.study.ask()
        wanted = self._suggest(trial)
        nearest = min(self.left, key=lambda p: self._distance(p, wanted))
        self.asked[nearest] = trial
        return self.left.pop(nearest)

    def tell(self, point, value):
        """A point that is no answer counts as worse than all that are."""
        trial = self.asked.pop(self._places(point))
        if value is not None:
            self.worst = value if self.worst is None else max(self.worst,
                                                              value)
            self.study.tell(trial, value)
        elif self.worst is None:
            self.study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
        else:
            self.study.tell(trial, self.worst + abs(self.worst))


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
    if name == "random":
        return InOrder(shuffled(points, seed))
    return Optimizer(space, points, name, directory, storage, seed)
