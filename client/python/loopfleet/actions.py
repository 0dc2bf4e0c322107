"""The named sets of actions."""

SIMPLE_ACTIONS = ("toggle_mode", "up", "down", "toggle_thread")
SPLIT_ACTIONS = (*SIMPLE_ACTIONS, "split")
# As documented by the LoopTool environment.
LOOPTOOL_ACTIONS = ("up", "down", "swap_up", "swap_down", *(f"split_{1 << k}" for k in range(1, 11)), "merge",
                    "unroll", "vectorize")
# As used to train LoopTune.
LOOPTUNE_ACTIONS = ("up", "down", "swap_up", "swap_down", "split_4", "split_8", "split_16")

ACTION_SPACES = {"simple": SIMPLE_ACTIONS, "split": SPLIT_ACTIONS, "looptool": LOOPTOOL_ACTIONS,
                 "looptune": LOOPTUNE_ACTIONS}
