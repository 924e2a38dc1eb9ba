# SPDX-License-Identifier: Apache-2.0
"""memsim admit, and memsim outcomes."""


class AdmitError(Exception):
    """What went wrong, for the user."""
