# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes every file of golden/ anew. Each oracle checks itself against a second, independent form first and stops at a disagreement."""
import classical
import linear_attention
import state_space
from harness import GOLDEN

GOLDEN.mkdir(exist_ok=True)
for family in (classical, state_space, linear_attention):
    family.main()
print(f"{sum(path.stat().st_size for path in GOLDEN.glob('*.npz')) / 1024:.0f} KiB in all")
