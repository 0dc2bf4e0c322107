"""A network's layers as NumPy arrays, for processes that act and do not learn: they need no torch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def forward(layers: Sequence[np.ndarray], x: np.ndarray) -> np.ndarray:
    """``layers``: weight [outputs, inputs] and bias [outputs] of each layer in turn, ReLU between
    them. ``x`` float32[rows, inputs] gives float32[rows, outputs of the last]."""
    for place in range(0, len(layers), 2):
        x = x @ layers[place].T + layers[place + 1]
        if place + 2 < len(layers):
            x = np.maximum(x, 0)
    return x


def legal_best(values: np.ndarray, masks: np.ndarray) -> np.ndarray:
    """int64[rows]: the legal action with the highest value, for values and masks [rows, actions]."""
    return np.where(masks, values, -np.inf).argmax(-1)
