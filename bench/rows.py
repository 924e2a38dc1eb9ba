# SPDX-License-Identifier: Apache-2.0
"""Results as CSV, which a runner continues where it was ended."""
import csv


def append(path, fields, rows):
    """Adds ROWS to the file at PATH, which has a column for each of FIELDS."""
    new = not path.exists()
    with open(path, "a", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, fields, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)


def read(path):
    """The rows of the file at PATH, without its comments."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(x for x in file if x[:1] != "#"))


def merge(path, fields, rows, key, comment):
    """Puts ROWS into the file at PATH, each in the place of the row whose
    fields KEY are the same; COMMENT stands before them. Returns all rows."""
    old = read(path) if path.exists() else []
    of = {tuple(row[k] for k in key): row for row in [*old, *rows]}
    with open(path, "w", newline="", encoding="utf-8") as file:
        file.write(comment)
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(of[each] for each in sorted(of))
    return list(of.values())
