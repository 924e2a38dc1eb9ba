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
