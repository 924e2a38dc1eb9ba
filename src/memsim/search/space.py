# SPDX-License-Identifier: Apache-2.0
"""The space of a search: names with values, and what has to hold between
them. A point is a dictionary, {name: value}."""
import re

from . import values as value_lists
from .expression import Expression, ExpressionError, identifier

POINTS_MAX = 200000
TABLES = {"names": "in the command, {NAME}",
          "environment": "an environment variable",
          "memsim": "an option of memsim run"}
OTHER = {"constants", "constraints", "dominates", "symmetric", "memory",
         "time", "objective", "limits"}
PLACE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
ALLOC_CONF = "alloc-conf"
ARGS = "args"


class Name:
    """Its VALUES are a list, or a Span: then .span has it, and the list is
    empty."""

    def __init__(self, name, kind, values):
        self.name, self.kind = name, kind
        self.span = values if isinstance(values, value_lists.Span) else None
        self.values = [] if self.span else values
        self.identifier = identifier(name)

    @property
    def is_ordered(self):
        return all(map(value_lists.is_number, self.values))

    @property
    def varies(self):
        return bool(self.span) or len(self.values) > 1


class Constraint:
    """An expression that has to be true, and where it stands."""

    def __init__(self, expression, place):
        self.expression, self.place = expression, place

    def holds(self, values, file):
        try:
            return bool(self.expression.value(values))
        except ExpressionError as error:
            shown = ", ".join(f"{k}={v}" for k, v in values.items()
                              if k in self.expression.names)
            file.fail(f"'{self.expression.text}' with {shown}: {error}",
                      "", "constraints", self.expression.text)


class Rule:
    """Points with `worse' are no better than those that have `better' in their
    place, and are else equal."""

    def __init__(self, worse, better, text):
        self.worse, self.better, self.text = worse, better, text


class Space:
    """What a TomlFile says. OPTIONS: the names that [memsim] may have."""

    def __init__(self, file, options=None):
        self.file = file
        self.options = options
        self._check_tables()
        self.names = [name for kind in TABLES
                      for name in self._read_names(kind)]
        self.listed = [name for name in self.names if not name.span]
        self.spans = [name for name in self.names if name.span]
        self.constants = self._read_constants()
        self._check_twice()
        self.by_name = {name.name: name for name in self.names}
        self.constraints = self._read_constraints()
        self.rules = [self._read_rule(text)
                      for text in self._texts("dominates")]
        self.symmetric = self._read_symmetric()
        self.more, self.less, self.directions_given = self._read_directions()
        self.time_more = self._name_list("time", "more")

    # --- reading --------------------------------------------------------------

    def _check_tables(self):
        known = set(TABLES) | OTHER
        for key in self.file.data:
            if key not in known:
                self.file.fail(f"'{key}' is not known; there are " +
                               ", ".join(sorted(known)), "", key)
        for key in list(TABLES) + ["constants", "memory", "time", "objective",
                                   "limits"]:
            if not isinstance(self.file.data.get(key, {}), dict):
                self.file.fail(f"'{key}' is not a table; write [{key}] above "
                               "its lines", "", key)

    def _read_names(self, kind):
        for key, given in self.file.data.get(kind, {}).items():
            if not PLACE.fullmatch(key):
                self.file.fail(f"'{key}' is not a name: a letter, then "
                               "letters, digits, _ . and -", kind, key)
            if kind == "names" and key == ARGS:
                self.file.fail("{args} stands for all names; call this one "
                               "otherwise", kind, key)
            if kind == "memsim" and self.options is not None and \
                    key not in self.options:
                self.file.fail(f"'{key}' is no option that a search may set; "
                               "there are " + ", ".join(self.options), kind,
                               key)
            try:
                yield Name(key, kind, value_lists.read(given))
            except value_lists.ValuesError as error:
                self.file.fail(f"'{key}': {error}", kind, key)

    def _read_constants(self):
        constants = self.file.data.get("constants", {})
        for key, value in constants.items():
            if not PLACE.fullmatch(key):
                self.file.fail(f"'{key}' is not a name", "constants", key)
            try:
                value_lists.check_one(value)
            except value_lists.ValuesError as error:
                self.file.fail(f"'{key}': {error}", "constants", key)
        return constants

    def _check_twice(self):
        if not any(self.names):
            self.file.fail("no names; write [names], then for example "
                           "batch = [1, 2, 4]", "names")
        seen = {}
        for kind, key in [(n.kind, n.name) for n in self.names] + [
                ("constants", key) for key in self.constants]:
            if identifier(key) in seen:
                self.file.fail(f"'{key}' is in [{seen[identifier(key)]}] too",
                               kind, key)
            seen[identifier(key)] = kind

    def _texts(self, key):
        """A list of texts at the top of the file."""
        texts = self.file.data.get(key, [])
        if isinstance(texts, str):
            texts = [texts]
        if not isinstance(texts, list) or not all(isinstance(t, str)
                                                  for t in texts):
            self.file.fail(f"'{key}' is not a list of texts in quotes; it "
                           "stands above the first [table]", "", key)
        return texts

    def read_expression(self, text, table, key):
        """TEXT with names of this space."""
        try:
            expression = Expression(text)
        except ExpressionError as error:
            self.file.fail(f"'{text}': {error}", table, key, text)
        known = {n.identifier for n in self.names} | {
            identifier(key) for key in self.constants}
        for name in sorted(expression.names - known):
            self.file.fail(f"'{text}': no name '{name}'; there are " +
                           ", ".join(sorted(known)), table, key, text)
        return expression

    def _read_constraints(self):
        return [Constraint(self.read_expression(text, "", "constraints"),
                           self.file.place("", "constraints", text))
                for text in self._texts("constraints")]

    def _side(self, side, text):
        """{name: value} of one side of a rule: "a=1, b=2"."""
        found = {}
        for part in side.split(","):
            key, equals, wanted = (w.strip() for w in part.partition("="))
            name = self.by_name.get(key)
            if not equals or name is None:
                self.file.fail(f"'{text}': write it as 'recompute=1 < "
                               "recompute=0', with names of this file", "",
                               "dominates", text)
            for value in name.values:
                if value_lists.as_text(value) == wanted:
                    found[key] = value
            if key not in found:
                self.file.fail(f"'{text}': {key} is never {wanted}", "",
                               "dominates", text)
        return found

    def _read_rule(self, text):
        worse, less, better = text.partition("<")
        if not less:
            self.file.fail(f"'{text}': no '<'; the worse side comes first, as "
                           "in 'recompute=1 < recompute=0'", "", "dominates",
                           text)
        worse, better = self._side(worse, text), self._side(better, text)
        if set(worse) != set(better) or worse == better:
            self.file.fail(f"'{text}': both sides have the same names, with "
                           "another value", "", "dominates", text)
        return Rule(worse, better, text)

    def _known_name(self, key, table, entry):
        if key not in self.by_name:
            self.file.fail(f"'{key}' is not a name of this file; there are " +
                           ", ".join(self.by_name), table, entry)
        return key

    def _read_symmetric(self):
        groups = self.file.data.get("symmetric", [])
        if not isinstance(groups, list) or not all(
                isinstance(g, list) and len(g) > 1 for g in groups):
            self.file.fail("'symmetric' is not a list of lists of names, as "
                           '[["first", "second"]]', "", "symmetric")
        for group in groups:
            for key in group:
                self._known_name(key, "", "symmetric")
            if len({tuple(map(value_lists.as_text, self.by_name[key].values))
                    for key in group}) > 1 or any(
                        self.by_name[key].span for key in group):
                self.file.fail(f"{', '.join(group)}: symmetric names have the "
                               "same values, in a list", "", "symmetric")
        return groups

    def _name_list(self, table, key):
        names = self.file.data.get(table, {}).get(key, [])
        if not isinstance(names, list):
            self.file.fail(f"'{key}' is not a list of names", table, key)
        for each in names:
            name = self.by_name[self._known_name(each, table, key)]
            if not name.is_ordered and not all(
                    isinstance(v, bool) for v in name.values):
                self.file.fail(f"'{each}': its values are not numbers, and "
                               "have no order", table, key)
        return names

    def _read_directions(self):
        given = "memory" in self.file.data
        for key in self.file.data.get("memory", {}):
            if key not in ("more", "less"):
                self.file.fail(f"'{key}': [memory] has 'more' and 'less'",
                               "memory", key)
        for key in self.file.data.get("time", {}):
            if key != "more":
                self.file.fail(f"'{key}': [time] has 'more'", "time", key)
        more = self._name_list("memory", "more")
        less = self._name_list("memory", "less")
        both = sorted(set(more) & set(less))
        if both:
            self.file.fail(f"'{both[0]}' is in more and in less", "memory")
        return more, less, given

    # --- points ---------------------------------------------------------------

    def bindings(self, point):
        """POINT and the constants, for an expression."""
        found = {identifier(k): v for k, v in self.constants.items()}
        found.update({identifier(k): v for k, v in point.items()})
        return found

    def _spans_of(self, constraint):
        return any(name.span and name.identifier in constraint.expression.names
                   for name in self.names)

    def _checks_by_depth(self, constraints):
        """Those of CONSTRAINTS that can be checked once the listed names up to
        I are bound, for each I. Those of spans are keeps()'s."""
        checks = [[] for _ in range(max(1, len(self.listed)))]
        for constraint in constraints:
            used = [i for i, name in enumerate(self.listed)
                    if name.identifier in constraint.expression.names]
            if not self._spans_of(constraint):
                checks[max(used, default=0)].append(constraint)
        return checks

    def keeps(self, point):
        """Whether POINT, with values of all spans, keeps the constraints."""
        bound = self.bindings(point)
        return all(c.holds(bound, self.file) for c in self.constraints)

    def _combine(self, point, bound, checks):
        """Each point that begins as POINT does and passes CHECKS."""
        depth = len(point)
        if depth == len(self.listed):
            yield dict(point)
            return
        name = self.listed[depth]
        for value in name.values:
            point[name.name] = bound[name.identifier] = value
            if all(c.holds(bound, self.file) for c in checks[depth]):
                yield from self._combine(point, bound, checks)
        point.pop(name.name)
        bound.pop(name.identifier)

    def _points_of(self, constraints):
        return self._combine({}, self.bindings({}),
                             self._checks_by_depth(constraints))

    def points(self):
        """All points of the listed names that keep the constraints, the last
        name fastest. Where there are spans, a strategy adds values of these."""
        found = []
        for point in self._points_of(self.constraints):
            found.append(point)
            if len(found) > POINTS_MAX:
                self.file.fail(f"more than {POINTS_MAX} points; give fewer "
                               "values, or a constraint", "names")
        if not found:
            self._fail_empty()
        return found

    def _fail_empty(self):
        """Says which constraint excludes all points, if one alone does."""
        for constraint in self.constraints:
            if next(self._points_of([constraint]), None) is None:
                text = constraint.expression.text
                self.file.fail(f"'{text}' holds for no point; change it, or "
                               "the values", "", "constraints", text)
        self.file.fail("no point keeps all constraints together; drop one, or "
                       "give more values", "", "constraints")
