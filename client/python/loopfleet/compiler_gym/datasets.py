"""CompilerGym's names: ``from loopfleet.compiler_gym.datasets import Benchmark``."""

from ..envs.datasets import Benchmark, Dataset, Datasets
from ..errors import BenchmarkInitError

__all__ = ["Benchmark", "BenchmarkInitError", "Dataset", "Datasets"]
