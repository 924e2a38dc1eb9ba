# SPDX-License-Identifier: Apache-2.0
"""The program commfit, which memsim starts for fits of tables."""
