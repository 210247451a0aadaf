# SPDX-License-Identifier: GPL-3.0-or-later
"""What the rows of the benchmark are compared with: a file for each family of rows, and `common` for what they share."""
