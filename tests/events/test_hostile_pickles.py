"""Pickles made to do harm: each ends in a clear error, in a process that neither crashes nor runs what is in it."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from retrodict.errors import DataError
from retrodict.events.io.pickles import load_plain


def short(text: str) -> bytes:
    """Text, as protocol 4 has it."""
    return b"\x8c" + bytes([len(text)]) + text.encode()


def name(module: str, attribute: str) -> bytes:
    return short(module) + short(attribute) + b"\x93"


CORE = "numpy._core.multiarray"
NDARRAY, DTYPE = name("numpy", "ndarray"), name("numpy", "dtype")
RECONSTRUCT, SCALAR = name(CORE, "_reconstruct"), name(CORE, "scalar")
FROMBUFFER = name("numpy._core.numeric", "_frombuffer")
ADDRESS = b"C\x08AAAAAAAA"  # eight bytes that would be taken for a pointer


def dtype(text: str, state: bytes = b"") -> bytes:
    return DTYPE + short(text) + b"\x89\x88\x87R" + state


def state(order: str = "|", rest: bytes = b"NNN", flags: int = 0) -> bytes:
    """What BUILD gives a dtype: (3, order, subarray, names, fields, itemsize, alignment, flags)."""
    return b"(K\x03" + short(order) + rest + b"J\xff\xff\xff\xffJ\xff\xff\xff\xff" + b"K" + bytes([flags]) + b"tb"


def array(kind: bytes, shape: bytes, data: bytes) -> bytes:
    """_reconstruct, then BUILD with (1, shape, dtype, False, data)."""
    return RECONSTRUCT + NDARRAY + b"K\x00\x85C\x01b\x87R(K\x01" + shape + kind + b"\x89" + data + b"tb"


def huge(op: bytes) -> bytes:
    return op + struct.pack("<Q", 2**62)


P = b"\x80\x04"
HIDDEN_OBJECT = b"N" + short("f") + b"\x85}" + short("f") + dtype("O") + b"K\x00\x86s"  # a field of objects
PROGRAMS = {
    "the published crash": b"\x80\x04cnumpy\nndarray\n((I1\ntcnumpy\ndtype\n(S'O'\ntRC\x08AAAAAAAAtR.",
    "an array of objects from bytes": P + array(dtype("O"), b"K\x01\x85", ADDRESS) + b".",
    "an object dtype whose flags are cleared": P + array(dtype("O", state(flags=0)), b"K\x01\x85", ADDRESS) + b".",
    "a scalar object": P + SCALAR + dtype("O") + ADDRESS + b"\x86R.",
    "a scalar object, flags cleared": P + SCALAR + dtype("O", state(flags=0)) + ADDRESS + b"\x86R.",
    "a buffer of objects": P + FROMBUFFER + b"(" + ADDRESS + dtype("O") + b"K\x01\x85" + short("C") + b"tR.",
    "a void dtype that hides an object": P
    + array(dtype("V8", state(rest=HIDDEN_OBJECT)), b"K\x01\x85", ADDRESS)
    + b".",
    "a field beyond the buffer": P
    + array(
        dtype("V8", state(rest=b"N" + short("f") + b"\x85}" + short("f") + dtype("i8") + b"J\xff\xff\xff\x7f\x86s")),
        b"K\x01\x85",
        ADDRESS,
    )
    + b".",
    "a call of ndarray": P + NDARRAY + b"K\x01\x85" + dtype("i8") + ADDRESS + b"\x87R.",
    "a shape larger than its bytes": P + array(dtype("i8"), b"J\xff\xff\xff\x7f\x85", ADDRESS) + b".",
    "a negative shape": P + array(dtype("i8"), b"J\xff\xff\xff\xff\x85", ADDRESS) + b".",
    "many dimensions": P + array(dtype("i8"), b"(" + b"K\x01" * 60 + b"t", ADDRESS) + b".",
    "a dtype of no bytes": P + array(dtype("S0"), b"J\xff\xff\xff\x7f\x85", b"C\x00") + b".",
    "a dtype of a gigabyte": P + array(dtype("U999999999"), b"K\x01\x85", ADDRESS) + b".",
    "a dtype as a list": P + DTYPE + b"](" + short("a") + short("O") + b"\x86e\x89\x88\x87R.",
    "a name as a function's state": P + NDARRAY + b"}" + short("shape") + b"K\x01sb.",
    "os.system": P + name("posix", "system") + short("touch MARKER") + b"\x85R.",
    "eval": P + name("builtins", "eval") + short("open('MARKER', 'w')") + b"\x85R.",
    "getattr": P + name("builtins", "getattr") + NDARRAY + short("tofile") + b"\x86R.",
    "an attribute of an attribute": P + short("numpy") + short("ndarray.tofile") + b"\x93.",
    "numpy.load of a pickle": P + name("numpy", "load") + short("MARKER") + b"\x85R.",
    "the oldest way": b"cposix\nsystem\n(S'touch MARKER'\ntR.",
    "INST": b"(S'touch MARKER'\niposix\nsystem\n.",
    "OBJ": b"(cposix\nsystem\nS'touch MARKER'\no.",
    "NEWOBJ": P + NDARRAY + b"K\x01\x85\x85\x81.",
    "NEWOBJ_EX": P + NDARRAY + b")}\x92.",
    "an extension": b"\x80\x02\x82\x01.",
    "a persistent id": b"PMARKER\n.",
    "another codec": b"\x80\x02c_codecs\nencode\n(X\x01\x00\x00\x00aX\x03\x00\x00\x00hextR.",
    "changing what is allowed": b"\x80\x02c_codecs\nencode\nN}X\x01\x00\x00\x00aK\x01s\x86b.",
    "a byte array of 4 exabytes": P + huge(b"\x96") + b".",
    "text of 4 exabytes": P + huge(b"\x8d") + b".",
    "bytes of 4 exabytes": P + huge(b"\x8e") + b".",
    "a frame of 4 exabytes": P + huge(b"\x95") + b".",
    "a number of two gigabytes": P + b"\x8b\xff\xff\xff\x7f\x01.",
    "a number of 5,000 digits": b"I" + b"9" * 5000 + b"\n.",
    "tuples too deep to be hashed": P + b"}" + b")" + b"\x85" * 200_000 + b"K\x01s.",
    "lists a hundred thousand deep": P + b"]" * 100_000 + b"a" * 99_999 + b".",
    "an out-of-band buffer": b"\x80\x05\x97.",
    "a stack that is empty": P + b"R.",
    "an array without its state": P + b"}" + short("seqs") + RECONSTRUCT + NDARRAY + b"K\x00\x85C\x01b\x87Rs.",
    "a list in a list, a million times over": P
    + b"}"
    + short("seqs")
    + b"]\x94(]\x94(}("
    + short("time_since_start")
    + b"K\x01"
    + short("type_event")
    + b"K\x00u"
    + b"2" * 30_000
    + b"e"
    + b"h\x01" * 30_000
    + b"es.",
}
CHILD = """
import pathlib, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
from retrodict.errors import DataError
from retrodict.events.io.read import read_events
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.pkl")):
    print("reading", path.name, flush=True)
    try:
        read_events(path)
        print("accepted", path.name)
    except DataError as error:
        assert "Remedy: " in str(error), error
from tests.fuzz import peak_memory
print("done", peak_memory())
"""


def test_no_hostile_pickle_crashes_or_runs(tmp_path):
    for number, program in enumerate(PROGRAMS.values()):
        (tmp_path / f"{number:03}.pkl").write_bytes(program.replace(b"MARKER", b"marker"))
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    last = [line for line in child.stdout.splitlines() if line.startswith("reading")][-1]
    assert child.returncode == 0, (list(PROGRAMS)[int(last.split()[1][:3])], child.stderr[-500:])
    assert "accepted" not in child.stdout
    assert int(child.stdout.split()[-1]) < 1024
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".pkl"] * len(PROGRAMS)


@pytest.mark.parametrize("case", PROGRAMS)
def test_hand_made_pickles(case):
    if case != "a list in a list, a million times over":  # its streams are refused, not the pickle
        program = PROGRAMS[case]
        try:
            value = load_plain(program, "a.pkl")
        except DataError as error:
            assert "a.pkl" in str(error)  # noqa: PT017
        else:  # inert data, which no reader of streams takes
            assert case in ("lists a hundred thousand deep", "an array without its state"), value
            while isinstance(value, list) and value:  # taken apart here, or the interpreter would do so recursively
                value = value[0]


def test_the_programs_are_what_they_say():
    """Those that are well-formed pickles are so to the end: it is not their form that is refused."""
    broken = ("exabytes", "gigabytes", "digits", "empty", "OBJ", "out-of-band")
    for case, program in PROGRAMS.items():
        if not any(word in case for word in broken):
            assert list(pickletools.genops(io.BytesIO(program)))[-1][0].name == "STOP", case


def test_mutated_pickles_are_data_or_errors():
    generator = np.random.default_rng(0)
    values = [{"seqs": [[{"time_since_start": np.float64(1.5), "type_event": np.int64(0)}]]}, np.arange(5.0), [1, "a"]]
    good = [pickle.dumps(value, protocol) for value in values for protocol in range(6)]
    for number in range(3000):
        data = bytearray(good[number % len(good)])
        for _ in range(1 + number % 3):
            data[generator.integers(len(data))] = generator.integers(256)
        try:
            load_plain(bytes(data))
        except DataError:
            continue
    assert zlib.crc32(good[0])  # the corpus itself is untouched
