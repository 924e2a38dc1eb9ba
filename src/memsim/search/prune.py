# SPDX-License-Identifier: Apache-2.0
"""Which points need no trial, because others decide on them.

The answer stays that of all points as long as what the space declares is so:
memory grows with the names of [memory] more and falls with those of less, the
worse side of a rule is no better, symmetric names may be exchanged, and a step
has no less to compute with a larger value of a name of [time] more."""
from .values import as_text

# Where the space has no [memory].
KNOWN_MORE = {"batch", "batch_size", "micro_batch", "micro_batch_size", "mbs",
              "microbatch", "length", "seq_len", "seq_length",
              "sequence_length", "context_length"}
KNOWN_LESS = {"recompute", "checkpointing", "activation_checkpointing",
              "gradient_checkpointing", "zero_stage"}


def directions(space):
    """({name: 1 where memory grows with it, -1 where it falls}, whether they
    were taken from the names alone)."""
    found = {name: 1 for name in space.more}
    found.update({name: -1 for name in space.less})
    if space.directions_given:
        return found, False
    for name in space.names:
        is_bool = all(isinstance(v, bool) for v in name.values)
        if not name.varies or not (name.is_ordered or is_bool):
            continue
        if name.name in KNOWN_MORE:
            found[name.name] = 1
        elif name.name in KNOWN_LESS:
            found[name.name] = -1
    return found, True


class Chains:
    """Points in groups that differ only in NAMES, {name: 1 or -1}: which ones
    come after one that was added."""

    def __init__(self, space, names):
        self.names = names
        self.rest = [n.name for n in space.names if n.name not in names]
        self.groups = {}

    def _split(self, point):
        group = tuple(as_text(point[name]) for name in self.rest)
        return group, [sign * point[name] for name, sign in self.names.items()]

    def add(self, point, what=None):
        group, place = self._split(point)
        self.groups.setdefault(group, []).append((place, what, point))

    def before(self, point):
        """(what was added with it, the point) for each that is nowhere after
        POINT."""
        group, place = self._split(point)
        for other, what, added in self.groups.get(group, []):
            if all(a <= b for a, b in zip(other, place)):
                yield what, added


class Pruner:
    """Learns from trials. IS_ON False: no point is left out."""

    def __init__(self, space, objective, is_on=True):
        self.space, self.objective, self.is_on = space, objective, is_on
        self.directions, self.assumed = directions(space)
        self.memory = Chains(space, self.directions)
        self.times = Chains(space, {name: 1 for name in space.time_more})
        self.good = set()  # keys of points that are, or have, an answer
        self.best = None
        self.valid = None

    def key(self, point):
        return tuple(as_text(point[name.name]) for name in self.space.names)

    def order(self, points):
        """POINTS, with those that a rule calls worse behind the others, and of
        the rest those that need less memory first: one that does not fit then
        decides on more."""
        if not self.space.spans:
            self.valid = {self.key(point) for point in points}
        if not self.is_on:
            return points
        ranks = {name: sorted(self.space.by_name[name].values).index
                 for name in self.directions
                 if not self.space.by_name[name].span}

        def place(point):
            worse = sum(all(point[k] == v for k, v in rule.worse.items())
                        for rule in self.space.rules)
            return worse, sum(self.directions[name] * rank(point[name])
                              for name, rank in ranks.items())
        return sorted(points, key=place)

    def learn(self, point, told):
        """What the trial of POINT TOLD."""
        if self.directions and self.objective.lacks_memory(told):
            self.memory.add(point)
        value = self.objective.value(point, told)
        if value is None:
            return
        self.good.add(self.key(point))
        if self.best is None or value < self.best:
            self.best = value
        if self.space.time_more and told.get("compute_ns"):
            self.times.add(point, told["compute_ns"])

    def reason(self, point):
        """Why POINT needs no trial: (kind, words); None: it needs one."""
        if not self.is_on:
            return None
        return self._memory(point) or self._symmetric(point) or \
            self._rule(point) or self._time(point)

    def _words(self, point):
        return " ".join(f"{name}={as_text(value)}"
                        for name, value in point.items())

    def _memory(self, point):
        for _, other in self.memory.before(point):
            return "memory", "needs no less than " + self._words(other)
        return None

    def _symmetric(self, point):
        for group in self.space.symmetric:
            places = [self.space.by_name[n].values.index(point[n])
                      for n in group]
            if places == sorted(places):
                continue
            same = dict(point)
            for name, place in zip(group, sorted(places)):
                same[name] = self.space.by_name[name].values[place]
            if self.space.keeps(same) if self.valid is None else \
                    self.key(same) in self.valid:
                return "symmetric", "is " + self._words(same)
        return None

    def _rule(self, point):
        for rule in self.space.rules:
            if all(point[k] == v for k, v in rule.worse.items()):
                better = {**point, **rule.better}
                if self.key(better) in self.good:
                    self.good.add(self.key(point))
                    return "rule", rule.text
        return None

    def _time(self, point):
        """Its step is longer than the best one, if it computes no less than
        one that was tried."""
        if self.objective.goal != "time" or self.best is None:
            return None
        for compute_ns, other in self.times.before(point):
            if compute_ns > self.best:
                return "time", (f"computes for {compute_ns / 1e6:.1f} ms at "
                                "least, as " + self._words(other))
        return None
