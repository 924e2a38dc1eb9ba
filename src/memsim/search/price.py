# SPDX-License-Identifier: Apache-2.0
"""Prices of GPUs and nodes, and what a job costs."""
import json
import math

from . import SearchError

HOUR_NS = 3600e9
KIND = "on-demand"
FORM = ("a price of an hour of one GPU (2.99), of a node (98.5/node), or a "
        "file")


def amount(value, place):
    """VALUE as a price. Raises SearchError, which begins with PLACE."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or \
            not math.isfinite(value) or value <= 0:
        raise SearchError(f"{place}: {value!r} is no price: a finite number "
                          "above 0")
    return float(value)


class Price:
    """Of an hour: of one GPU, or of a node."""

    def __init__(self, per_hour, of_node=False):
        self.per_hour, self.of_node = per_hour, of_node

    def cost(self, hours, gpus, nodes):
        return hours * self.per_hour * (nodes if self.of_node else gpus)


def read_entry(value, place, kind):
    """A price of a file: a number, {"node": X}, {"gpu": X}, or one of these
    for each kind, as {"on-demand": 2.99, "spot": 1.2}."""
    if not isinstance(value, dict):
        return Price(amount(value, place))
    for key in ("node", "gpu"):
        if set(value) == {key}:
            return Price(amount(value[key], f"{place}.{key}"), key == "node")
    if kind not in value:
        raise SearchError(f"{place}: no price '{kind}'; there are " +
                          (", ".join(value) or "none"))
    if isinstance(value[kind], dict) and not set(value[kind]) <= {"node",
                                                                  "gpu"}:
        raise SearchError(f"{place}.{kind}: not a number, {{\"gpu\": X}} or "
                          "{\"node\": X}")
    return read_entry(value[kind], f"{place}.{kind}", kind)


def refuse_constant(text):
    raise ValueError(f"{text} is no finite number")


class Prices:
    """By GPU. RESOLVE gives the catalogue's name of one."""

    def __init__(self, text, kind, resolve):
        self.all, self.by_gpu = None, {}
        number, slash, of = text.partition("/")
        try:
            value = float(number)
        except ValueError:
            self._read_file(text, kind or KIND, resolve)
            return
        gpus = int(of) if of.isdecimal() and len(of) < 7 else 0
        if slash and not gpus and of not in ("node", "gpu"):
            raise SearchError(f"--price: '{text}': {FORM}")
        if kind:
            raise SearchError(f"--price-kind: '{text}' is one price; kinds "
                              "are for a file of prices")
        self.all = Price(amount(value, "--price") / (gpus or 1), of == "node")

    def _read_file(self, path, kind, resolve):
        try:
            with open(path, encoding="utf-8") as file:
                table = json.load(file, parse_constant=refuse_constant)
        except OSError as error:
            raise SearchError(f"--price: {path}: {error.strerror}; give "
                              f"{FORM}") from None
        except ValueError as error:
            raise SearchError(f"{path}: not JSON: {error}") from None
        if not isinstance(table, dict) or not table:
            raise SearchError(f"{path}: no prices; it has to be like "
                              '{"h100-sxm-80gb": 2.99, "l4": 0.71}')
        for name, value in table.items():
            self.by_gpu[resolve(name)] = read_entry(value, f"{path}: {name}",
                                                    kind)

    def of(self, gpu):
        """The price for GPU, or None."""
        return self.all or self.by_gpu.get(gpu)
