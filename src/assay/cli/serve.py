"""`assay serve`: test cases and runs over REST."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import click

from assay.cli.completion import files
from assay.cli.report_output import store_option
from assay.errors import UsageError
from assay.service.project import project, working_directory
from assay.service.store import open_store
from assay.settings import environment, shown_path

PORT = 8321


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to serve on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="The port; 0 takes a free one.",
)
@click.option(
    "--root", metavar="DIR", shell_complete=files, help="The folder whose eval files can be run."
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="Another name that clients use for this machine.",
)
@click.option(
    "--public-url",
    metavar="URL",
    help="The address in browsers, if that is another one: that of a proxy.",
)
@store_option
def command(
    host: str,
    port: int,
    root: str | None,
    allow_host: tuple[str, ...],
    public_url: str | None,
    store: str | None,
) -> None:
    """Serve test cases, runs, comparisons and trends over REST.

    On loopback no token is needed. Any other address refuses to start without
    ASSAY_API_TOKENS: tokens separated by commas, where read:TOKEN can only read. Ctrl-C lets
    requests and trials under way finish; runs go on when the server is started again.
    docs/server.md has the routes.

    \b
    Examples:
      assay serve
      assay serve --port 8000 --root evals/
      ASSAY_API_TOKENS=... assay serve --host 0.0.0.0 --allow-host evals.example
      ASSAY_API_TOKENS=... assay serve --public-url https://evals.example
    """
    # The server is heavy, and no other command needs it.
    from assay.server.security import Access
    from assay.server.serving import serve
    from assay.server.tokens import TOKENS_VARIABLE, tokens_of

    if root is not None:
        _change_to(Path(root))
    tokens = tokens_of(environment([TOKENS_VARIABLE]).get(TOKENS_VARIABLE, ""))
    access = Access.of(host, tokens, allow_host, public_url)
    settings = project()
    settings.prepend_to_sys_path()
    served = working_directory() if root is not None else settings.root
    with closing(open_store(settings, store)) as opened:
        serve(settings, opened, access, (host, port), served, lambda url: _announce(url, served))


def _change_to(folder: Path) -> None:
    """Change to the folder: paths in requests and messages are relative to it."""
    try:
        os.chdir(folder)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"{shown_path(folder)} cannot be served: {reason}") from None


def _announce(url: str, root: Path) -> None:
    click.echo(f"serving {root} on {url}")
