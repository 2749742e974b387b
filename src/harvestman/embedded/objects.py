"""Objects in a directory."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path


class DirectoryObjects:
    """`ports.Objects` below one directory; names use '/'."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def put(self, name: str, body: bytes | bytearray) -> None:
        await asyncio.to_thread(self._put, name, body)

    def _put(self, name: str, body: bytes | bytearray) -> None:
        path = self._directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        with part.open("wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)

    async def get(self, name: str, start: int = 0, length: int | None = None) -> bytes | None:
        try:
            with (self._directory / name).open("rb") as file:
                file.seek(start)
                return file.read(-1 if length is None else length)
        except FileNotFoundError:
            return None

    async def list(self, prefix: str) -> list[str]:
        names = (path.relative_to(self._directory).as_posix() for path in self._directory.rglob("*") if path.is_file())
        return sorted(name for name in names if name.startswith(prefix) and not name.endswith(".part"))

    async def delete(self, name: str) -> None:
        (self._directory / name).unlink(missing_ok=True)
