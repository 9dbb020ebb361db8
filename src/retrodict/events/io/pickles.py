"""Old pickles of event streams, read as data: nothing that a pickle names is imported, made or called.

A pickle is a program. Here the opcodes of plain data alone are carried out: numbers, text, bytes, lists, tuples,
dicts and the memo. A name in the file becomes a ``_Name``, which is two strings. Where the program would call one,
only what NumPy writes for arrays and numbers is understood, and that is done here by hand: the dtype's text, the
shape and the bytes are collected, checked against one another and turned into an array at the end. Any other name,
opcode, dtype or size is an error. Nothing in this package writes pickles.
"""

from __future__ import annotations

import io
import math
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from retrodict import _limits
from retrodict.errors import DataError, show
from retrodict.events.io.files import read_bytes
from retrodict.events.io.request import Request
from retrodict.events.stream_set import StreamSet

_BYTES_A_VALUE = 72  # a list in a list: 1 byte of a pickle, an object and a pointer in memory
_DTYPE = re.compile(r"[|<>=]?(b1|[iu][1248]|f[248]|[SU]\d{1,6})")
_PARTS = {
    (f"numpy.{core}.{module}", name): name
    for core in ("core", "_core")  # before and since NumPy 2
    for module, name in (("multiarray", "_reconstruct"), ("multiarray", "scalar"), ("numeric", "_frombuffer"))
} | {("numpy", "ndarray"): "ndarray", ("numpy", "dtype"): "dtype", ("_codecs", "encode"): "encode"}
_PARTS |= {(module, name): name for module in ("builtins", "__builtin__") for name in ("bytes", "set", "frozenset")}


class _Name(NamedTuple):
    """What a pickle calls a part of NumPy."""

    part: str


class _DType:
    """The text of a plain dtype; its state may change the byte order, and nothing else."""

    __slots__ = ("text",)

    def __init__(self, text: Any, *_flags: Any) -> None:
        text = text.decode("latin1") if isinstance(text, bytes) else text
        if not (isinstance(text, str) and _DTYPE.fullmatch(text)):
            raise _unusable(f"arrays of dtype {show(text)}")
        self.text = text

    def set_state(self, state: Any) -> None:
        order, rest = state[1], state[2:5]
        if order not in ("|", "<", ">", "=") or any(part is not None for part in rest):
            raise _unusable("arrays with fields")
        self.text = order + self.text.lstrip("|<>=")

    def array(self, data: Any, shape: Any, order: str = "C") -> Any:
        """The bytes as an array of a shape that fits them exactly."""
        if isinstance(data, str):  # the bytes of Python 2
            data = data.encode("latin1")
        dtype = np.dtype(self.text)
        whole = isinstance(shape, tuple) and len(shape) <= 2 and all(type(n) is int and n >= 0 for n in shape)
        if not (whole and isinstance(data, bytes | bytearray) and dtype.itemsize):
            raise _unusable("an array with a shape or contents that are not plain")
        if math.prod(shape) * dtype.itemsize != len(data):
            raise pickle.UnpicklingError("an array has more or fewer bytes than its shape says")
        if not data:
            return np.zeros(0, dtype)
        return np.frombuffer(bytes(data), dtype).reshape(shape, order="F" if order == "F" else "C")


class _Array:
    """A placeholder for an array, which ``set_state`` makes."""

    __slots__ = ("array",)

    def __init__(self) -> None:
        self.array: Any = None

    def set_state(self, state: Any) -> None:
        _version, shape, dtype, fortran, data = state
        if not isinstance(dtype, _DType):
            raise _unusable("an array without a plain dtype")
        self.array = dtype.array(data, shape, "F" if fortran is True or fortran == 1 else "C")


class _Memo(dict[int, Any]):
    """What a pickle may refer to again; an array is noted before it is made."""

    def __getitem__(self, number: int) -> Any:
        value = super().__getitem__(number)
        return value.array if isinstance(value, _Array) and value.array is not None else value


def _unusable(what: str) -> DataError:
    return DataError(
        f"the pickle holds {what}, which is not plain data; it was not loaded",
        remedy="convert the file to Parquet or JSON with the code that made it, if you trust it",
    )


def _call(name: Any, arguments: Any) -> Any:
    """What NumPy's parts would give, made by hand."""
    if not isinstance(name, _Name) or type(arguments) is not tuple:
        raise _unusable("a call of something that is not a name")
    if name.part == "encode" and len(arguments) == 2 and arguments[1] == "latin1" and type(arguments[0]) is str:
        return arguments[0].encode("latin1")
    if name.part == "bytes" and not arguments:
        return b""
    if name.part in ("set", "frozenset") and len(arguments) == 1 and type(arguments[0]) is list:
        return arguments[0]  # as the list it is made of: nothing in it is hashed
    if name.part == "dtype" and 1 <= len(arguments) <= 3:
        return _DType(*arguments)
    if name.part == "_reconstruct" and arguments[:1] == (_Name("ndarray"),):
        return _Array()
    if name.part == "scalar" and len(arguments) == 2 and isinstance(arguments[0], _DType):
        return arguments[0].array(arguments[1], (1,))[0].item()
    if name.part == "_frombuffer" and 3 <= len(arguments) <= 4 and isinstance(arguments[1], _DType):
        data, dtype, shape, order = (*arguments, "C")[:4]
        return dtype.array(data, shape, order)
    raise _unusable(f"a call of {name.part} that NumPy does not write")


_PLAIN = """
    PROTO FRAME STOP MARK POP POP_MARK DUP NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT
    BINFLOAT STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES
    BINBYTES8 LIST EMPTY_LIST APPEND APPENDS TUPLE EMPTY_TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT GET BINGET LONG_BINGET
    PUT BINPUT LONG_BINPUT MEMOIZE
"""


class _PlainUnpickler(pickle._Unpickler):
    """Python's own reader of opcodes (the one in Python: that in C allocates what a file asks for), without the rest.

    Opcodes that are not in ``dispatch`` are errors. The text of Python 2 is read as latin1.
    """

    stack: list[Any]
    append: Callable[[Any], None]
    pop_mark: Callable[[], list[Any]]
    read: Callable[[int], bytes]
    readline: Callable[[], bytes]

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data), encoding="latin1")
        self.memo = _Memo()

    dispatch: ClassVar[dict[int, Any]] = {
        getattr(pickle, name)[0]: pickle._Unpickler.dispatch[getattr(pickle, name)[0]] for name in _PLAIN.split()
    }

    def _push_name(self, module: Any, name: Any) -> None:
        part = _PARTS.get((module, name)) if type(module) is str and type(name) is str else None
        if part is None:
            raise DataError(
                f"the pickle asks for {module}.{name}, which is not plain data; it was not loaded"[:300],
                remedy="convert the file to Parquet or JSON with the code that made it, if you trust it",
            )
        self.append(_Name(part))

    def _load_global(self) -> None:
        module = self.readline()[:-1].decode("utf-8")
        self._push_name(module, self.readline()[:-1].decode("utf-8"))

    def _load_stack_global(self) -> None:
        name = self.stack.pop()
        self._push_name(self.stack.pop(), name)

    def _load_reduce(self) -> None:
        arguments = self.stack.pop()
        self.stack[-1] = _call(self.stack[-1], arguments)

    def _load_build(self) -> None:
        state = self.stack.pop()
        if not isinstance(self.stack[-1], _DType | _Array) or type(state) is not tuple:
            raise _unusable("the state of something that is not an array")
        self.stack[-1].set_state(state)
        if isinstance(self.stack[-1], _Array):
            self.stack[-1] = self.stack[-1].array

    def _load_bytearray8(self) -> None:
        length = int.from_bytes(self.read(8), "little")
        data = self.read(min(length, 1 << 62))
        if len(data) < length:
            raise EOFError
        self.append(data)

    def _load_additems(self) -> None:
        items = self.pop_mark()
        if type(self.stack[-1]) is not list:
            raise _unusable("an item of something that is not a set")
        self.stack[-1].extend(items)

    def _load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        _fill(self.stack[-1], [key, value])

    def _load_setitems(self) -> None:
        items = self.pop_mark()
        _fill(self.stack[-1], items)

    def _load_dict(self) -> None:
        items = self.pop_mark()
        self.append(_fill({}, items))

    dispatch |= {
        pickle.GLOBAL[0]: _load_global,
        pickle.STACK_GLOBAL[0]: _load_stack_global,
        pickle.REDUCE[0]: _load_reduce,
        pickle.BUILD[0]: _load_build,
        pickle.BYTEARRAY8[0]: _load_bytearray8,
        pickle.EMPTY_SET[0]: dispatch[pickle.EMPTY_LIST[0]],
        pickle.FROZENSET[0]: dispatch[pickle.LIST[0]],
        pickle.ADDITEMS[0]: _load_additems,
        pickle.SETITEM[0]: _load_setitem,
        pickle.SETITEMS[0]: _load_setitems,
        pickle.DICT[0]: _load_dict,
    }


def _fill(target: Any, items: list[Any]) -> dict[Any, Any]:
    """Put keys and values into a dict; keys are text or numbers, which hash in no time."""
    if type(target) is not dict or len(items) % 2 or not all(type(key) in (str, int, float) for key in items[::2]):
        raise _unusable("a dict with keys that are not text or numbers")
    target.update(zip(items[::2], items[1::2], strict=True))
    return target


def load_plain(data: bytes, file: object | None = None) -> Any:
    """The plain data in a pickle; anything else is a DataError."""
    _limits.ask_memory(_BYTES_A_VALUE * len(data), "reading this pickle", "convert it to Parquet", file=file)
    try:
        return _PlainUnpickler(data).load()
    except DataError as error:
        raise DataError(error.problem, file=file, remedy=error.remedy) from None
    except Exception as error:  # damaged pickles raise nearly anything
        raise DataError(
            f"this is not a pickle, or it is cut off or damaged ({type(error).__name__}: {error})"[:300],
            file=file,
            remedy="copy or download the file again, or pass format= if it is something else",
        ) from error


def read_pickle(path: Path, request: Request) -> StreamSet:
    """A stream set from an old neural Hawkes or EasyTPP pickle."""
    from retrodict.events.io.easytpp import from_objects

    data = read_bytes(path)
    request.most_rows = len(data)
    return from_objects(load_plain(data, path), request)
