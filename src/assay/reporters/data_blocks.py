"""Data in an HTML file: gzip in base64, in elements that browsers neither run nor show.

Base64 has no character that ends an element, so no text of a model can leave its block. What is
written is spooled to temporary files first, so that little memory is needed.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from contextlib import ExitStack
from tempfile import SpooledTemporaryFile
from typing import IO, Any, TextIO

import msgspec

#: As much of a spool stays in memory.
_IN_MEMORY = 256 * 1024
#: Bytes that are encoded at once; a multiple of 3, so that no padding is needed in between.
_PIECE = 3 * 64 * 1024
#: How many values of a column are encoded at once.
_VALUES = 1024
#: Makes gzip of the compressed data, without the time of day.
_GZIP = 31
_encode = msgspec.json.Encoder().encode


def gzipped(data: bytes) -> bytes:
    """The data as gzip."""
    packer = zlib.compressobj(wbits=_GZIP)
    return packer.compress(data) + packer.flush()


def encoded_size(size: int) -> int:
    """The characters that this many bytes have in base64."""
    return (size + 2) // 3 * 4


def block(name: str, data: bytes) -> str:
    """An element with the data, which are gzip already."""
    return f"{_start(name)}{b64encode(data).decode()}</script>\n"


def _start(name: str) -> str:
    # Not a type of script, so no browser runs it.
    return f'<script type="application/gzip" id="{name}">'


def _spool(stack: ExitStack) -> IO[bytes]:
    """A temporary file, which is deleted with the stack."""
    return stack.enter_context(SpooledTemporaryFile(_IN_MEMORY))


class Column:
    """A JSON array that is compressed as it grows."""

    def __init__(self, name: str, stack: ExitStack) -> None:
        self._name = name
        self._values: list[Any] = []
        self._is_empty = True
        self._packer = zlib.compressobj(wbits=_GZIP)
        self._spool = _spool(stack)

    def add(self, value: Any) -> None:
        self._values.append(value)
        if len(self._values) >= _VALUES:
            self._flush()

    def close(self) -> int:
        """End the array; returns the size of the block. Nothing can be added any more."""
        self._flush()
        self._spool.write(self._packer.compress(b"[]" if self._is_empty else b"]"))
        self._spool.write(self._packer.flush())
        return encoded_size(self._spool.tell()) + len(_start(self._name)) + len("</script>\n")

    def write(self, out: TextIO) -> None:
        """Write the block."""
        out.write(_start(self._name))
        self._spool.seek(0)
        while piece := self._spool.read(_PIECE):
            out.write(b64encode(piece).decode())
        out.write("</script>\n")

    def _flush(self) -> None:
        if self._values:
            encoded = _encode(self._values)[1:-1]
            self._spool.write(self._packer.compress((b"[" if self._is_empty else b",") + encoded))
            self._is_empty = False
            self._values.clear()


class ChunkSpool:
    """Records in chunks of `CHUNK`, each compressed alone, so that one can be read by itself.

    It is full once it has more than `limit` characters.
    """

    #: Larger chunks are a little smaller in all, but take longer to open.
    CHUNK = 64

    def __init__(self, name: str, limit: int, stack: ExitStack) -> None:
        self._name, self._limit = name, limit
        self._packer = zlib.compressobj(wbits=_GZIP)
        self._spool = _spool(stack)
        self._sizes: list[int] = []
        self._written = 0
        self._start = self._added = 0

    def __len__(self) -> int:
        return self._added

    @property
    def is_full(self) -> bool:
        return self._written > self._limit

    def add(self, record: bytes) -> int:
        """Add the JSON of a record; returns its number."""
        before = b"," if self._added % self.CHUNK else b"["
        self._spool.write(self._packer.compress(before + record))
        self._added += 1
        if self._added % self.CHUNK == 0:
            self._end_chunk()
        return self._added - 1

    def close(self) -> None:
        """End the last chunk, which may have fewer records."""
        if self._added % self.CHUNK:
            self._end_chunk()

    def _end_chunk(self) -> None:
        self._spool.write(self._packer.compress(b"]") + self._packer.flush())
        self._packer = zlib.compressobj(wbits=_GZIP)
        end = self._spool.tell()
        self._sizes.append(end - self._start)
        self._start = end
        self._written += self._size(len(self._sizes) - 1)

    def fitting(self, room: int) -> tuple[int, int]:
        """How many chunks fit into this many characters, and how many they take."""
        taken = 0
        for index in range(len(self._sizes)):
            if taken + (size := self._size(index)) > room:
                return index, taken
            taken += size
        return len(self._sizes), taken

    def records_in(self, chunks: int) -> int:
        """How many records the first chunks have."""
        return min(chunks * self.CHUNK, self._added)

    def write(self, out: TextIO, chunks: int) -> None:
        """Write the blocks of the first chunks."""
        self._spool.seek(0)
        for index, size in enumerate(self._sizes[:chunks]):
            out.write(block(f"{self._name}-{index}", self._spool.read(size)))

    def _size(self, index: int) -> int:
        return encoded_size(self._sizes[index]) + len(block(f"{self._name}-{index}", b""))
