#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/lint-helpers: which functions it counts, and what it says of more than
are known."""
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
    def test_static_functions_of_one_word_are_counted(self):
        self.assertEqual([m[1] for m in tool.DEFINITION.finditer(SOURCE)],
                         ["take", "copy"])

    def test_more_than_known_are_named_with_their_places(self):
        lines = list(tool.compare({"take": ["a.c:1", "b.c:2"]}, {"take": 1}))
        self.assertEqual(len(lines), 1)
        self.assertIn("a.c:1 b.c:2: take()", lines[0])

    def test_a_new_name_is_reported(self):
        self.assertEqual(len(list(tool.compare({"put": ["a.c:1"]}, {}))), 1)

    def test_as_many_as_known_or_fewer_are_well(self):
        known = {"take": 1, "put": 2}
        self.assertEqual(list(tool.compare({"take": ["a.c:1"]}, known)), [])


if __name__ == "__main__":
    main()
