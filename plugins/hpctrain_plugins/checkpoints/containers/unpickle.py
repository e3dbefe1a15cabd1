"""Reads a pickle as data: names on a short list become harmless values, any other is refused.

Nothing of the file is ever imported or called. A checkpoint with an unknown name is refused as a
whole, wherever in it the name stands, because a file that carries code is not a checkpoint.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from io import BytesIO
from typing import Any

import attrs

from hpctrain.plugin import HpctrainError, IntegrityError

STORAGES = {
    "DoubleStorage": "F64",
    "FloatStorage": "F32",
    "HalfStorage": "F16",
    "BFloat16Storage": "BF16",
    "LongStorage": "I64",
    "IntStorage": "I32",
    "ShortStorage": "I16",
    "CharStorage": "I8",
    "ByteStorage": "U8",
    "UntypedStorage": "U8",
    "BoolStorage": "BOOL",
    "Float8_e4m3fnStorage": "F8_E4M3",
    "Float8_e5m2Storage": "F8_E5M2",
}

DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}


@attrs.frozen
class Marker:
    """A type that the pickle names and that only its readers understand."""

    name: str

    def __setstate__(self, state: Any) -> None:
        """All files share it, so none may make it mean another type."""
        raise pickle.UnpicklingError(f"the type {self.name} is given a state")


@attrs.frozen
class StorageRef:
    """A block of numbers in another entry of the archive."""

    dtype: str
    key: str
    numel: int


@attrs.frozen
class TensorRef:
    """A tensor as a pickle describes it: a view of a storage."""

    storage: StorageRef
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


class Size(tuple[int, ...]):
    """A shape that is kept as one, with the methods of torch's own."""


class Inert:
    """Stands for an object whose class is not ours to make; keeps what it was made from."""

    origin: tuple[str, str] = ("", "")
    """The module and the name of the class."""
    args: tuple[Any, ...]
    state: Any
    is_whole: bool
    """Whether nothing that was put into it was dropped."""

    def __new__(cls, *args: Any) -> Inert:
        instance = super().__new__(cls)
        instance.args, instance.state, instance.is_whole = args, None, True
        return instance

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __setitem__(self, key: Any, value: Any) -> None:
        """Take items as a mapping would, and drop them."""
        self.is_whole = False

    def append(self, item: Any) -> None:
        """Take an item as a list would, and drop it."""
        self.is_whole = False

    def extend(self, items: Any) -> None:
        """Take items as a list would, and drop them."""
        self.is_whole = False


def _tensor(storage: Any, offset: int, shape: Any, stride: Any, *_: Any) -> TensorRef:
    if not isinstance(storage, StorageRef):
        raise pickle.UnpicklingError("a tensor without a storage")
    return TensorRef(storage, offset, tuple(shape), tuple(stride))


def _first(value: Any, *_: Any) -> Any:
    return value


def _call_tensor(function: Any, _type: Any, args: Any, _state: Any = None) -> Any:
    if function is not _tensor:
        raise pickle.UnpicklingError("a tensor made by an unknown function")
    return _tensor(*args)


def _member(kind: Any, name: Any) -> Inert:
    """A member of an enumeration, which Python 3.11.0 to 3.11.3 write as `getattr(CLASS, NAME)`."""
    if not (isinstance(kind, type) and issubclass(kind, Inert) and isinstance(name, str)):
        raise pickle.UnpicklingError("an attribute of what is no enumeration")
    return kind(name)


def _size(value: Any = ()) -> Size:
    return Size(value)


def _inert(module: str, name: str) -> type[Inert]:
    return type(name, (Inert,), {"origin": (module, name)})


def object_like(origin: tuple[str, str], state: Any, *args: Any) -> Inert:
    """An object of a class that files of one format have, to be written as one of theirs."""
    instance = _ALLOWED[origin](*args)
    instance.state = state
    assert isinstance(instance, Inert)
    return instance


_INERT = (
    ("deepspeed.runtime.fp16.loss_scaler", "LossScaler"),
    ("deepspeed.runtime.fp16.loss_scaler", "DynamicLossScaler"),
    ("deepspeed.runtime.zero.config", "ZeroStageEnum"),
    ("deepspeed.utils.tensor_fragment", "fragment_address"),
    ("deepspeed.runtime.zero.utils", "ZeRORuntimeException"),
    ("argparse", "Namespace"),
    ("_io", "BytesIO"),
    ("_codecs", "encode"),
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
)

_ALLOWED: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "defaultdict"): _inert("collections", "defaultdict"),
    ("__builtin__", "set"): set,  # protocols 0 to 2 write the module's name of Python 2
    ("__builtin__", "getattr"): _member,
    ("builtins", "set"): set,
    ("builtins", "getattr"): _member,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): _first,
    ("torch._tensor", "_rebuild_from_type_v2"): _call_tensor,
    ("torch", "Size"): _size,
    ("torch", "device"): _inert("torch", "device"),
    ("torch", "Tensor"): Marker("Tensor"),
    ("torch.nn.parameter", "Parameter"): Marker("Parameter"),
    ("torch.serialization", "_get_layout"): _inert("torch.serialization", "_get_layout"),
    ("torch._utils", "_get_layout"): _inert("torch._utils", "_get_layout"),
    **{("torch", name): Marker(name) for name in (*STORAGES, *DTYPES)},
    ("torch.storage", "UntypedStorage"): Marker("UntypedStorage"),
    **{pair: _inert(*pair) for pair in _INERT},
}


class _Unpickler(pickle.Unpickler):
    def __init__(
        self, data: bytes, where: str, extra_names: dict[tuple[str, str], Any], inert: tuple[str, ...]
    ) -> None:
        super().__init__(BytesIO(data))
        self._where = where
        self._allowed = {**_ALLOWED, **extra_names}
        self._inert = inert

    def find_class(self, module: str, name: str) -> Any:
        replacement = self._allowed.get((module, name))
        if replacement is None and module.startswith(self._inert):
            replacement = self._allowed[module, name] = _inert(module, name)
        if replacement is None:
            raise IntegrityError.of(
                "checkpoint-unsafe",
                f"{self._where} names {module}.{name}, which no checkpoint needs; nothing was run",
                where=self._where,
                hint="delete the file, or save its weights again as safetensors",
            )
        return replacement

    def persistent_load(self, pid: Any) -> StorageRef:
        kind, storage, key, _location, numel = pid
        if kind != "storage" or not isinstance(storage, Marker) or storage.name not in STORAGES:
            raise pickle.UnpicklingError(f"an unknown reference {kind!r}")
        return StorageRef(STORAGES[storage.name], str(key), int(numel))


def load(
    data: bytes,
    where: str,
    extra_names: dict[tuple[str, str], Callable[..., Any]] | None = None,
    inert: tuple[str, ...] = (),
) -> Any:
    """The values of a pickle; `extra_names` allows further names for one format.

    Of modules whose names begin as one of `inert` any name is taken, and stands for an object of no use.
    """
    try:
        return _Unpickler(data, where, extra_names or {}, inert).load()
    except HpctrainError:
        raise
    except Exception as error:
        message = f"{where} holds a pickle that cannot be read ({error})"
        raise IntegrityError.of("checkpoint-damaged", message, where=where) from error
