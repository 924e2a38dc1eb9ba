# SPDX-License-Identifier: Apache-2.0
"""Expressions between names, as in "tp * pp * dp == world".

They are read as Python's syntax and evaluated here, node by node: nothing but
what the tables below name can be said in one."""
import ast
import math
import operator

LENGTH_MAX = 1000
POWER_MAX = 64  # of exponents: 2 ** 10 ** 10 would never end

BINARY = {ast.Add: operator.add, ast.Sub: operator.sub,
          ast.Mult: operator.mul, ast.Div: operator.truediv,
          ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod}
UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos,
         ast.Not: operator.not_}
COMPARE = {ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt,
           ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
           ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b}
CALLS = {"min": min, "max": max, "abs": abs, "log2": math.log2,
         "ceil": math.ceil, "floor": math.floor}


class ExpressionError(ValueError):
    """The message says what is wrong, without the expression."""


def power(base, exponent):
    if abs(exponent) > POWER_MAX:
        raise ExpressionError(f"an exponent above {POWER_MAX}")
    return base ** exponent


def number(value):
    if isinstance(value, (int, float)):
        return value
    raise ExpressionError(f"{value!r} is not a number")


def identifier(name):
    """NAME as an expression writes it: nproc_per_node."""
    return name.replace("-", "_").replace(".", "_")


class Expression:
    """TEXT, and the names in it."""

    def __init__(self, text):
        self.text = text
        if len(text) > LENGTH_MAX:
            raise ExpressionError(f"longer than {LENGTH_MAX} characters")
        try:
            self.tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            told = getattr(error, "msg", None) or str(error)
            raise ExpressionError(f"not an expression: {told}") from None
        self.names = set()
        self._check(self.tree)

    def _check(self, node):
        """Refuses what value() does not know, and collects the names."""
        if isinstance(node, ast.Call):
            if not (isinstance(node.func, ast.Name) and node.func.id in CALLS
                    and node.args and not node.keywords):
                raise ExpressionError(
                    "only these can be called: " + ", ".join(sorted(CALLS)))
            children = node.args
        elif isinstance(node, ast.Name):
            self.names.add(node.id)
            children = []
        else:
            children = list(self._parts(node))
        for child in children:
            self._check(child)

    @staticmethod
    def _parts(node):
        """The expressions that NODE is made of."""
        known = {ast.BinOp: lambda: {**BINARY, ast.Pow: power}[type(node.op)]
                 and [node.left, node.right],
                 ast.UnaryOp: lambda: UNARY[type(node.op)] and [node.operand],
                 ast.BoolOp: lambda: node.values,
                 ast.Compare: lambda: [COMPARE[type(op)] for op in node.ops]
                 and [node.left, *node.comparators],
                 ast.IfExp: lambda: [node.test, node.body, node.orelse],
                 ast.Tuple: lambda: node.elts, ast.List: lambda: node.elts,
                 ast.Constant: lambda: []}
        try:
            parts = known[type(node)]()
        except KeyError:
            raise ExpressionError(
                f"{ast.unparse(node)}: not known here; use numbers, texts, "
                "names, + - * / // % **, comparisons, and, or, not, in, "
                "if else") from None
        if isinstance(node, ast.Constant) and not isinstance(
                node.value, (int, float, str)):
            raise ExpressionError(f"{node.value!r} is no number and no text")
        return parts

    def value(self, values):
        """With VALUES, {identifier: value}. Raises ExpressionError."""
        try:
            return self._value(self.tree, values)
        except (ZeroDivisionError, OverflowError, TypeError,
                ValueError) as error:
            if isinstance(error, ExpressionError):
                raise
            raise ExpressionError(str(error)) from None
        except KeyError as error:
            raise ExpressionError(f"no name {error}") from None

    def _value(self, node, values):
        def of(child):
            return self._value(child, values)
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return values[node.id]
        if isinstance(node, ast.BinOp):
            action = BINARY.get(type(node.op), power)
            return action(number(of(node.left)), number(of(node.right)))
        if isinstance(node, ast.UnaryOp):
            return UNARY[type(node.op)](of(node.operand))
        if isinstance(node, ast.Compare):
            return self._compare(node, of)
        if isinstance(node, ast.BoolOp):
            stop = isinstance(node.op, ast.Or)
            for child in node.values:
                last = of(child)
                if bool(last) == stop:
                    break
            return last
        if isinstance(node, ast.IfExp):
            return of(node.body if of(node.test) else node.orelse)
        if isinstance(node, ast.Call):
            return CALLS[node.func.id](*[of(each) for each in node.args])
        return [of(each) for each in node.elts]

    @staticmethod
    def _compare(node, of):
        left = of(node.left)
        for op, comparator in zip(node.ops, node.comparators):
            right = of(comparator)
            if not COMPARE[type(op)](left, right):
                return False
            left = right
        return True
