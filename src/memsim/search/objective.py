# SPDX-License-Identifier: Apache-2.0
"""What a trial is worth, and the limits that it has to keep."""
import math
import re

from . import measure as measures
from . import values as value_lists
from .expression import ExpressionError, number
from .price import HOUR_NS

TOKENS = 1e6  # what the cost is of, where the file does not say
GOALS = {"time": "step time", "tokens/s": "tokens per second",
         "samples/s": "samples per second", "cost": "cost",
         "gpus": "fewest GPUs", "batch": "largest batch"}
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def percent(text):
    found = re.fullmatch(r"\s*([0-9.]+)\s*%?\s*", str(text))
    value = float(found[1]) if found and found[1].count(".") < 2 and \
        found[1] != "." else -1
    return value / 100 if 0 <= value < 100 else None


def duration_ns(text):
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(ns|us|ms|s)\s*", str(text))
    return float(found[1]) * UNITS[found[2]] if found and float(found[1]) \
        else None


def squash(nanoseconds):
    """Grows with its argument, and is below 1: breaks a tie of whole
    numbers."""
    seconds = (nanoseconds or 0) / 1e9
    return seconds / (1 + seconds)


class Objective:
    """[objective] and [limits] of a space; --goal may name another GOAL.
    NODES: how many a job has, of its options. LASTS: a run says whether memory
    that grows lasts (--steps)."""

    def __init__(self, space, goal=None, prices=None, nodes=1, lasts=False):
        self.space, self.prices, self.nodes = space, prices, nodes
        self.lasts = lasts
        table = space.file.data.get("objective", {})
        self._known("objective", table, {"goal", "batch", "tokens", "steps",
                                          "step_tokens"})
        self.goal = goal or table.get("goal", "time")
        if self.goal not in GOALS:
            space.file.fail(f"goal {self.goal!r}: one of " + ", ".join(GOALS),
                            "objective", "goal")
        self.tokens = self._positive(table, "tokens")
        self.steps = self._positive(table, "steps")
        if self.tokens and self.steps:
            space.file.fail("'tokens' and 'steps': the cost is of one of them",
                            "objective", "steps")
        if not self.tokens and not self.steps:
            self.tokens = TOKENS
        self._read_batch(table)
        self._read_limits(space.file.data.get("limits", {}))
        if self.goal == "cost" and prices is None:
            space.file.fail("the goal is the cost: give --price 2.99 (an hour "
                            "of one GPU), 98.5/node, or a file of prices",
                            "objective", "goal")

    def _known(self, name, table, known):
        for key in table:
            if key not in known:
                self.space.file.fail(f"'{key}': [{name}] has " +
                                     ", ".join(sorted(known)), name, key)

    def _positive(self, table, key):
        value = table.get(key)
        if value is not None and not (value_lists.is_number(value) and
                                      math.isfinite(value) and value > 0):
            self.space.file.fail(f"'{key}' is not a finite number above 0",
                                 "objective", key)
        return value

    def _read_batch(self, table):
        text = table.get("batch")
        if self.goal == "batch" and not isinstance(text, str):
            self.space.file.fail(
                "the goal is the largest batch: say what it is, as in "
                'batch = "micro_batch * dp"', "objective", "batch")
        self.batch = self._expression(table, "batch")
        self.step_tokens = self._expression(table, "step_tokens")

    def _expression(self, table, key):
        given = table.get(key)
        if given is None:
            return None
        if not isinstance(given, (int, str)) or isinstance(given, bool):
            self.space.file.fail(f"'{key}' is an expression in quotes, as "
                                 '"batch * length"', "objective", key)
        return self.space.read_expression(str(given), "objective", key)

    def _read_limits(self, table):
        fail = self.space.file.fail
        self._known("limits", table, {"headroom", "host-memory", "step"})
        self.headroom = percent(table["headroom"]) if "headroom" in table \
            else 0.0
        if self.headroom is None:
            fail(f"{table['headroom']!r} is no percentage below 100, as "
                 '"5%"', "limits", "headroom")
        self.step_ns = duration_ns(table["step"]) if "step" in table \
            else math.inf
        if self.step_ns is None:
            fail(f"{table['step']!r} is no time, as \"300 ms\" or \"1.5 s\"",
                 "limits", "step")
        self.host_memory = table.get("host-memory")
        if self.host_memory is not None and not isinstance(self.host_memory,
                                                           str):
            fail("'host-memory' is a size in quotes, as \"64GiB\", or "
                 '"cgroup"', "limits", "host-memory")

    # --- figures --------------------------------------------------------------

    def nodes_of(self, point):
        return int(point.get("nnodes", self.nodes))

    def hours(self, told):
        """Of the tokens, or steps, that the cost is of."""
        if self.steps:
            step = told.get("step_ns")
            return step * self.steps / HOUR_NS if step else None
        speed = told.get("tokens_per_second")
        return self.tokens / speed / 3600 if speed else None

    def time(self, told):
        """Of a token, or where these are not known of a step."""
        speed = told.get("tokens_per_second")
        return 1e9 / speed if speed and not self.steps else told.get("step_ns")

    def time_of(self):
        """In words, what time() is of."""
        return " of a step" if self.steps else " (of a token, if known)"

    def cost(self, point, told):
        """What the tokens, or steps, cost; None: not known."""
        price = self.prices and self.prices.of(told.get("gpu"))
        hours = self.hours(told)
        if not price or hours is None:
            return None
        return price.cost(hours, told["gpus"], self.nodes_of(point))

    def cost_of(self):
        """In words, what cost() is of."""
        return f"{self.steps:g} steps" if self.steps else \
            f"{self.tokens:g} tokens"

    # --- judgement ------------------------------------------------------------

    def lacks_memory(self, told):
        """Whether a trial that needs more memory is no answer either."""
        if told["outcome"] in measures.OUT_OF_MEMORY:
            return True
        return told["outcome"] == measures.FITS and self._low(told)

    def _low(self, told):
        left = told.get("headroom_bytes")
        return bool(self.headroom) and left is not None and \
            left < self.headroom * told["capacity_bytes"]

    def objection(self, told):
        """Why a trial is no answer; None: it may be one."""
        lasts = self.lasts and told["outcome"] == "grows" and \
            told.get("exit_status") == 0
        if told["outcome"] != measures.FITS and not lasts:
            return measures.OUTCOMES.get(told["outcome"], told["outcome"])
        if self._low(told):
            return f"headroom below {100 * self.headroom:g}%"
        if self.step_ns < math.inf and not told.get("step_ns"):
            return "no step was found"
        if told.get("step_ns", 0) > self.step_ns:
            return f"step above {self.step_ns / 1e6:g} ms"
        return None

    def value(self, point, told):
        """What is made small; None: not known, or no answer."""
        if self.objection(told):
            return None
        step = told.get("step_ns")
        if self.goal == "time":
            return step
        if self.goal in ("tokens/s", "samples/s"):
            speed = told.get(self.goal.replace("/s", "_per_second"))
            return -speed if speed else None
        if self.goal == "cost":
            return self.cost(point, told)
        if self.goal == "gpus":
            return told["gpus"] + squash(step)
        return squash(step) - self._number("batch", point)

    def _number(self, key, point):
        """The expression KEY of this objective, at POINT."""
        expression = getattr(self, key)
        try:
            return number(expression.value(self.space.bindings(point)))
        except ExpressionError as error:
            return self.space.file.fail(f"'{expression.text}': {error}",
                                        "objective", key)

    def complete(self, point, told):
        """TOLD with the tokens that the space says a step has. Without them
        each rank counts as one with a batch of its own."""
        if not self.step_tokens or not told.get("step_ns"):
            return told
        tokens = self._number("step_tokens", point)
        return {**told, "tokens_per_second": tokens * 1e9 / told["step_ns"]}

    def shares_unsaid(self, told):
        """Whether tokens matter, and ranks may share a batch."""
        by_tokens = self.goal == "tokens/s" or (
            self.prices is not None and not self.steps)
        return by_tokens and not self.step_tokens and \
            told.get("gpus", 0) > 1 and \
            told.get("tokens_per_second") is not None

    def lacking(self):
        """Why a trial that fits has no value."""
        return {"time": "no step was found",
                "cost": "no cost is known"}.get(self.goal,
                                                f"no {self.goal} is known")

    def lacking_words(self):
        """The same of all trials, with what to do."""
        told = (f"{self.space.file.path}: {self.lacking()} for any trial that "
                "fits")
        if self.goal == "time":
            return told + "; have the command run two training steps or more"
        if self.goal == "cost" and self.prices and not self.prices.all:
            return told + "; is the GPU in the file of prices?"
        if self.steps is None and self.goal == "cost":
            return told + ("; where no tokens are found, give steps = N in "
                           "[objective]")
        return told + "; goal = \"time\" needs none"
