# SPDX-License-Identifier: Apache-2.0
"""Every row of every table, again (sweep.csv): which rows there are, which the
last sweep has already, and which differ from those on record."""
import re

import environments
from environments import HERE, TOP, read

DATA = TOP / "data/benchmarks/truth"
# Tables that another command makes.
ELSEWHERE = {"megatron_ci"}  # bench/truth/megatron


def key(row):
    """What identifies a result: the version of torch without its CUDA."""
    return row["torch"].split("+")[0], row["id"], row["metric"]


def parts():
    """(table, environment, published rows) of each line of sweep.csv."""
    for line in read(HERE / "sweep.csv"):
        rows = read(DATA / f"{line['table']}.csv")
        yield line["table"], line["environment"], [
            row for row in rows if re.fullmatch(line["match"], row["id"])]


def missing(rows, environment, done):
    """Those of ROWS that DONE, results of this sweep, does not have."""
    version = environments.listed()[environment]["torch"]
    have = {key(row) for row in done}
    return [row for row in rows
            if (version, row["id"], row["metric"]) not in have]


def differences(table, done):
    """A line for each result on record that DONE lacks or that is another,
    and for each of DONE that is not on record."""
    record = {key(row): row["ours_bytes"]
              for row in read(DATA / "results" / f"{table}.csv")}
    now = {key(row): row["ours_bytes"] for row in done}
    for name in sorted(record.keys() | now.keys()):
        if name not in now:
            yield "not run", table, *name, record[name], ""
        elif record.get(name) != now[name]:
            yield "differs", table, *name, record.get(name, ""), now[name]


def tables():
    found = {path.stem for path in (DATA / "results").glob("*.csv")}
    return sorted(found - ELSEWHERE)
