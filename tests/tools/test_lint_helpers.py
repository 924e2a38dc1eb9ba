#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/lint-helpers: which functions it reports."""
import unittest

from suite import main, program

tool = program("tools/lint-helpers")

SOURCE = """
static int take(int a)
{
    return a;
}

static const char *
copy(const char *text,
     int size)
{
    return text;
}

static int record_take(int a)
{
    return a;
}

static int declared(int a);
int shown(int a)
{
    return a;
}
static const struct row rows[] = {{f(1)}};
"""


class Helpers(unittest.TestCase):
    def test_static_functions_of_one_word_are_reported_with_their_lines(self):
        lines = list(tool.find_helpers("a.c", SOURCE))
        self.assertEqual(len(lines), 2)
        self.assertTrue(lines[0].startswith("a.c:2: take()"))
        self.assertTrue(lines[1].startswith("a.c:8: copy()"))


if __name__ == "__main__":
    main()
