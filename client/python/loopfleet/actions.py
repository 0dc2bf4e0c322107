"""The sets of actions that have names."""

SIMPLE_ACTIONS = ("toggle_mode", "up", "down", "toggle_thread")
SPLIT_ACTIONS = (*SIMPLE_ACTIONS, "split")
# What the LoopTool environment documents …
LOOPTOOL_ACTIONS = ("up", "down", "swap_up", "swap_down", *(f"split_{1 << k}" for k in range(1, 11)), "merge",
                    "unroll", "vectorize")
# … and what LoopTune was trained with in the end.
LOOPTUNE_ACTIONS = ("up", "down", "swap_up", "swap_down", "split_4", "split_8", "split_16")
