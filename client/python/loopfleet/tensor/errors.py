"""What can be wrong with a use of tensors. Messages name the symbols, sizes and tensors concerned; with
LOOPFLEET_TRACE=1 also the line that made each tensor."""

from .. import _core
from ..errors import LoopfleetError, ScheduleError

__all__ = ["TensorError", "SizeUnknown", "SizeConflict", "ShapeError", "ViewError", "DTypeError", "ScheduleError",
           "KernelError", "GradientError"]


class TensorError(LoopfleetError, ValueError, RuntimeError):  # loop_tool's errors are RuntimeErrors
    """What was asked does not go with this tensor: only a leaf can be set. Base of the errors below."""


class SizeUnknown(TensorError):
    """A size is needed that nothing tells. The message names the tensors whose ``set`` would."""


class SizeConflict(TensorError):
    """Two sources give one size differently."""


class ShapeError(TensorError):
    """Dims do not fit: a wrong count, or a symbol that the tensor lacks."""


class ViewError(TensorError):
    """An equation or an index that is no affine view."""


class DTypeError(TensorError, TypeError):
    """Elements that cannot become float32, or memory that cannot be shared."""


class KernelError(TensorError):
    """A kernel cannot be compiled, gives wrong results, or failed. The message begins with the failure's code."""


class GradientError(TensorError):
    """A gradient that there is none of: the loss has dims, or does not depend on the tensor, or a product divides by 0."""


_core.set_tensor_errors({kind.__name__: kind for kind in
                         (TensorError, SizeUnknown, SizeConflict, ShapeError, ViewError, DTypeError, ScheduleError,
                          KernelError, GradientError)})
