# SPDX-License-Identifier: Apache-2.0
"""The rank of training.sh that only sums: one job after another. Needs no PyTorch."""
import sys

import reckon

assert "torch" not in sys.modules
for plan in sys.argv[1:]:
    reckon.serve(plan)
