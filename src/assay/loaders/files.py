"""Files that a case refers to: where they are looked for, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from assay.model.shape import problem
from assay.settings import Settings, shown


def finder(eval_file: Path, settings: Settings) -> Callable[[str], Path]:
    """A function from a written path to the file it means.

    Looked for in the eval file's directory, then in each parent up to the project root;
    a leading slash means the project root.
    """
    folder = eval_file.resolve().parent
    root = settings.root

    def places(value: str) -> Iterator[Path]:
        if value.startswith("/"):
            yield root / value.lstrip("/")
            return
        yield folder / value
        if folder.is_relative_to(root):
            for parent in folder.parents:
                if not parent.is_relative_to(root):
                    break
                yield parent / value

    def find(value: str) -> Path:
        tried: list[str] = []
        for place in places(value):
            try:
                target = place.resolve()
                if not settings.config.allow_outside_root and not target.is_relative_to(root):
                    if tried:  # only a parent's candidate leaves the root
                        continue
                    hint = "set allow_outside_root in assay.yaml to permit it"
                    raise problem("outside-root", f"{value!r} leaves the project root", hint)
                if target.exists():
                    return target
            except (OSError, ValueError, RuntimeError):  # too long, a loop of links, a NUL
                pass
            tried.append(shown(place))
        raise problem("file-not-found", f"no file {value!r}", "looked for " + ", ".join(tried[:4]))

    return find
