# SPDX-License-Identifier: Apache-2.0
"""The reports: (kind, address, what was reported) by name. They are read from the
sources, because PyTorch, which these import, may be missing here."""
import ast
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
KINDS = "grows", "evaluation", "length", "script"


def _reports(path):
    for node in ast.parse(path.read_text()).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for call in node.decorator_list:
            if isinstance(call, ast.Call) and call.func.id in KINDS:
                address, said = (ast.literal_eval(a) for a in call.args[:2])
                options = {k.arg: ast.literal_eval(k.value)
                           for k in call.keywords}
                yield node.name, call.func.id, address, said, options


REPORTS, OPTIONS = {}, {}
for _file in "report_programs.py", "report_scripts.py":
    for _name, _kind, _address, _said, _options in _reports(HERE / _file):
        REPORTS[_name] = _kind, f"https://github.com/{_address}", _said
        OPTIONS[_name] = _options
