"""Old pickles of event streams, read without running anything that is in them.

A pickle is a program. Only what plain data needs is allowed here: Python's own containers and numbers, and
NumPy's arrays, dtypes and scalars. Any other name in the file is an error that says which, and nothing of
it is imported. Nothing in this package writes pickles.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from retrodict.errors import DataError
from retrodict.events.io.files import read_bytes
from retrodict.events.io.request import Request
from retrodict.events.stream_set import StreamSet


class _Latin1:
    """Stands in for ``_codecs.encode``, with which protocols 0 to 2 write bytes."""

    __slots__ = ()  # and so no pickle can change it

    def __call__(self, text: str, encoding: str = "latin1") -> bytes:
        if encoding != "latin1":
            raise pickle.UnpicklingError(f"unexpected encoding {encoding!r}")
        return text.encode("latin1")


class _FromBuffer:
    """Stands in for NumPy's ``_frombuffer``, with which protocol 5 writes arrays."""

    __slots__ = ()

    def __call__(self, data: Any, dtype: Any, shape: Any, order: Any, axis_order: Any = None) -> Any:
        array = np.frombuffer(data, dtype=dtype).reshape(shape, order="F" if order == "F" else "C")
        return array if axis_order is None else array.transpose(np.argsort(axis_order))


def _allowed() -> dict[tuple[str, str], Any]:
    builtin = {
        "list": list, "dict": dict, "tuple": tuple, "set": set, "frozenset": frozenset, "int": int,
        "float": float, "bool": bool, "str": str, "bytes": bytes, "complex": complex,
    }  # fmt: skip
    names: dict[tuple[str, str], Any] = {("builtins", name): value for name, value in builtin.items()}
    names |= {("__builtin__", name): value for name, value in builtin.items()}
    names |= {("__builtin__", "unicode"): str, ("__builtin__", "long"): int}
    names[("_codecs", "encode")] = _Latin1()
    names |= {("numpy", "ndarray"): np.ndarray, ("numpy", "dtype"): np.dtype}
    # NumPy's own builders, from where its pickles get them: their module has moved over the years.
    parts = {"_reconstruct": np.zeros(0).__reduce__()[0], "scalar": np.float64(0).__reduce__()[0]}
    for package in ("numpy.core", "numpy._core"):  # before and since NumPy 2
        names |= {(f"{package}.multiarray", name): value for name, value in parts.items()}
        names[(f"{package}.numeric", "_frombuffer")] = _FromBuffer()
    return names


_ALLOWED = _allowed()


class _PlainUnpickler(pickle._Unpickler):
    """An unpickler that knows plain data and nothing else.

    It is Python's own, not its copy in C: there a file of ten bytes can ask for all of the memory. It reads
    the 5000 streams of the paper's taxi data in under a second.
    """

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise DataError(
                f"the pickle asks for {module}.{name}, which is not plain data; it was not loaded",
                remedy="convert the file to Parquet or JSON with the code that made it, if you trust it",
            ) from None


def load_plain(data: bytes, file: object | None = None) -> Any:
    """The plain data in a pickle; anything else is a DataError."""
    try:
        # latin1: what Python 2 called str, and the bytes inside its NumPy arrays.
        return _PlainUnpickler(io.BytesIO(data), encoding="latin1").load()
    except DataError as error:
        raise DataError(error.problem, file=file, remedy=error.remedy) from None
    except Exception as error:  # damaged pickles raise nearly anything
        raise DataError(
            f"this is not a pickle, or it is cut off or damaged ({type(error).__name__}: {error})",
            file=file,
            remedy="copy or download the file again, or pass format= if it is something else",
        ) from error


def read_pickle(path: Path, request: Request) -> StreamSet:
    """A stream set from an old neural Hawkes or EasyTPP pickle."""
    from retrodict.events.io.easytpp import from_objects

    return from_objects(load_plain(read_bytes(path), path), request)
