"""ScoreNetwork: a small network (torch) with one number for each schedule, as CostModel and
ComparisonModel use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .errors import need

_WIDTHS = (128, 64)
_BATCH = 128


class ScoreNetwork:
    """Layers of 128 and 64 with ReLU, over features that are centred and scaled by what it was
    fitted to."""

    def __init__(self, mean: np.ndarray, scale: np.ndarray, seed: int = 0):
        self._torch = torch = need("torch", "models,torch")
        self.mean, self.scale = mean.astype(np.float32), scale.astype(np.float32)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            widths = (len(mean), *_WIDTHS)
            layers: list[Any] = []
            for inputs, outputs in zip(widths, widths[1:]):
                layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
            self.layers = torch.nn.Sequential(*layers, torch.nn.Linear(widths[-1], 1))

    @classmethod
    def for_features(cls, x: np.ndarray, seed: int) -> ScoreNetwork:
        return cls(x.mean(0), np.maximum(x.std(0), 1e-3), seed)

    def scaled(self, x: np.ndarray) -> Any:
        """A tensor that call() takes."""
        return self._torch.from_numpy(np.clip((x - self.mean) / self.scale, -5, 5).astype(np.float32))

    def call(self, scaled: Any) -> Any:
        return self.layers(scaled)[:, 0]

    def predict(self, x: np.ndarray) -> np.ndarray:
        """float32[rows]"""
        with self._torch.no_grad():
            return self.call(self.scaled(x)).numpy()

    def fit(self, rows: int, loss_of: Callable[[Any], Any], epochs: int, seed: int,
            error: Callable[[], float]) -> None:
        """Adam on ``loss_of(places of a batch)``; keeps the epoch with the least ``error()``."""
        torch = self._torch
        optimizer = torch.optim.AdamW(self.layers.parameters(), lr=1e-3, weight_decay=1e-3)
        shuffle = torch.Generator().manual_seed(seed)
        best, kept = float("inf"), None
        for _ in range(epochs):
            for part in torch.randperm(rows, generator=shuffle).split(_BATCH):
                loss = loss_of(part)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            if (now := error()) < best:
                best, kept = now, {name: value.clone() for name, value in self.layers.state_dict().items()}
        if kept is not None:
            self.layers.load_state_dict(kept)

    def to_arrays(self) -> dict[str, np.ndarray]:
        weights = {f"layers.{name}": value.numpy() for name, value in self.layers.state_dict().items()}
        return {"mean": self.mean, "scale": self.scale, **weights}

    @classmethod
    def of_arrays(cls, arrays: dict[str, np.ndarray]) -> ScoreNetwork:
        """KeyError, RuntimeError or ValueError: the arrays are no such network's."""
        network = cls(arrays["mean"], arrays["scale"])
        weights = {name.removeprefix("layers."): network._torch.from_numpy(value)
                   for name, value in arrays.items() if name.startswith("layers.")}
        network.layers.load_state_dict(weights)
        return network
