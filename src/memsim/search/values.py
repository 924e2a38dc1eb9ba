# SPDX-License-Identifier: Apache-2.0
"""The values of a name: a list, or a range that is made into one."""
import math

COUNT_MAX = 10000


class ValuesError(ValueError):
    pass


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def as_text(value):
    """VALUE as a word of a command, and as it is shown."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def check_one(value):
    if not isinstance(value, (bool, int, float, str)):
        raise ValuesError(f"{value!r}: not a number, a text, true or false")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValuesError(f"{value}: not a finite number")
    if isinstance(value, str) and "\0" in value:
        raise ValuesError("a text with a zero byte")
    return value


def from_list(values):
    if not values:
        raise ValuesError("no value; give at least one")
    seen = {as_text(check_one(value)) for value in values}
    if len(seen) < len(values):
        raise ValuesError("a value is given twice")
    return list(values)


def bounds(table):
    for key in ("from", "to"):
        if not is_number(table.get(key)) or not math.isfinite(table[key]):
            raise ValuesError(f"'{key}' is not a finite number; a range is "
                              "{ from = 1, to = 8 }")
    if table["from"] > table["to"]:
        raise ValuesError(f"from {table['from']} is above to {table['to']}")
    return table["from"], table["to"]


class Span:
    """All numbers from LOW to HIGH; IS_LOG: each factor as often as another."""

    def __init__(self, low, high, is_log):
        self.low, self.high, self.is_log = float(low), float(high), is_log

    def at(self, part):
        """The number at PART, 0 to 1, of it."""
        if self.is_log:
            return self.low * (self.high / self.low) ** part
        return self.low + (self.high - self.low) * part

    def value(self, number):
        """NUMBER as a value: with six digits, and inside."""
        return min(max(float(f"{number:.6g}"), self.low), self.high)


def is_span(table):
    """A range between floats without steps has all numbers between them. 1 to
    1e9 is one of whole numbers."""
    ends = table["from"], table["to"]
    return ends[0] < ends[1] and not {"step", "count"} & set(table) and \
        (all(isinstance(end, float) for end in ends) or
         any(end != int(end) for end in ends))


def check_count(count):
    if count > COUNT_MAX:
        raise ValuesError(f"more than {COUNT_MAX} values; a larger step, or "
                          "a smaller range")


def linear(table):
    low, high = bounds(table)
    if is_span(table):
        return Span(low, high, False)
    step = table.get("step", 1)
    if not is_number(step) or not step > 0 or not math.isfinite(step):
        raise ValuesError("'step' is not a number above 0")
    count = math.floor((high - low) / step * (1 + 1e-12) + 1e-9) + 1
    check_count(count)
    return [low + i * step for i in range(count)]


def powers(table):
    low, high = bounds(table)
    if low <= 0 or int(low) != low or int(low) & (int(low) - 1):
        raise ValuesError(f"from {low} is not a power of two above 0")
    values = [int(low)]
    while values[-1] * 2 <= high:
        values.append(values[-1] * 2)
        check_count(len(values))
    return values


def logarithmic(table):
    low, high = bounds(table)
    count = table.get("count")
    if low <= 0:
        raise ValuesError("a logarithmic range begins above 0")
    if is_span(table):
        return Span(low, high, True)
    if not isinstance(count, int) or isinstance(count, bool) or count < 2:
        raise ValuesError("'count' is missing: how many values, 2 or more")
    check_count(count)
    whole = isinstance(low, int) and isinstance(high, int)
    values = [low * (high / low) ** (i / (count - 1)) for i in range(count)]
    values = [round(v) if whole else float(f"{v:.6g}") for v in values]
    return list(dict.fromkeys(values))


SCALES = {"linear": (linear, {"step"}), "pow2": (powers, set()),
          "log": (logarithmic, {"count"})}


def read(given):
    """The values that GIVEN, of the file, stands for: a list, or a Span. Raises
    ValuesError."""
    if isinstance(given, list):
        return from_list(given)
    if not isinstance(given, dict):
        return from_list([given])
    scale = given.get("scale", "linear")
    if scale not in SCALES:
        raise ValuesError(f"scale {scale!r}: one of " + ", ".join(SCALES))
    make, more = SCALES[scale]
    wrong = set(given) - {"from", "to", "scale"} - more
    if wrong:
        raise ValuesError(f"'{min(wrong)}' is not known in a {scale} range")
    return make(given)
