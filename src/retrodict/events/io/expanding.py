"""A gzip file as the file of its contents, decompressed as it is read, which a small bomb cannot make endless."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import BinaryIO

from retrodict import _limits
from retrodict.errors import DataError

_GZIP = 31  # zlib's word for a gzip header
PIECE = 1 << 20
ANYWAY = 32 << 20  # bytes that any file may expand to


class Expanding(io.RawIOBase):
    """The contents of a gzip file, of one or many parts, for reading from beginning to end."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self.file, self.path = file, path
        self.stream = zlib.decompressobj(_GZIP)
        self.waiting, self.read_bytes, self.expanded = b"", 0, 0

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        """Fill the buffer with what comes next; 0 at the end."""
        piece = self._next(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes; all that is left where it is negative."""
        found, wanted = [], size if size >= 0 else 1 << 62
        while wanted > 0 and (piece := self._next(min(wanted, PIECE))):
            found.append(piece)
            wanted -= len(piece)
        return b"".join(found)

    def close(self) -> None:
        """Close the file beneath, too."""
        self.file.close()
        super().close()

    def _next(self, most: int) -> bytes:
        try:
            while most > 0:
                if not self.waiting:
                    self.waiting = self.file.read(PIECE)
                    self.read_bytes += len(self.waiting)
                    if not self.waiting:
                        return self._end()
                if self.stream.eof:  # another part follows, or padding
                    self.waiting = self.waiting.lstrip(b"\0")
                    self.stream = zlib.decompressobj(_GZIP) if self.waiting else self.stream
                    continue
                piece = self.stream.decompress(self.waiting, most)
                self.waiting = self.stream.unused_data if self.stream.eof else self.stream.unconsumed_tail
                if piece:
                    self._count(len(piece))
                    return piece
        except zlib.error as error:
            raise DataError(
                "the name ends in .gz, but the contents are not (or are damaged) gzip",
                file=self.path,
                remedy="copy the file again, or remove .gz from its name if it is not compressed",
            ) from error
        return b""

    def _end(self) -> bytes:
        if not self.stream.eof:
            raise DataError("the gzip file is cut off", file=self.path, remedy="copy or download the file again")
        return b""

    def _count(self, more: int) -> None:
        self.expanded += more
        if self.expanded > ANYWAY:
            ratio = self.expanded // max(self.read_bytes - len(self.waiting), 1)
            _limits.check("ratio", ratio, f"the file expands to {ratio:,} times its size", file=self.path)
