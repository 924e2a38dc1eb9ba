# SPDX-License-Identifier: Apache-2.0
"""memsim search: the best configuration, by trials of `memsim run'."""


class SearchError(Exception):
    """What the user has to know; the message is complete."""
