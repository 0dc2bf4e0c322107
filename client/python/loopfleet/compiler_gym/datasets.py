"""CompilerGym's names: ``from loopfleet.compiler_gym.datasets import Benchmark``."""

from ..envs.datasets import Benchmark, Dataset, Datasets

__all__ = ["Benchmark", "Dataset", "Datasets"]
