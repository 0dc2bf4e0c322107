"""Files of models that are not as they were saved."""

import json

import numpy as np


def read_parts(path):
    """(facts, arrays)"""
    with np.load(path) as file:
        arrays = dict(file)
    return json.loads(arrays.pop("facts").tobytes()), arrays


def write_parts(path, facts, arrays):
    np.savez(path, facts=np.frombuffer(json.dumps(facts).encode(), np.uint8), **arrays)
