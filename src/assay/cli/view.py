"""`assay view`: the pages of the project, in a browser."""

from __future__ import annotations

import webbrowser
from contextlib import closing
from threading import Thread

import click

from assay.cli.report_output import store_option
from assay.comparison.outcomes import find_run
from assay.ports import Store
from assay.service.groups import find_group
from assay.service.project import project
from assay.service.store import open_store

#: Only this machine can reach it, so no token is needed.
HOST = "127.0.0.1"


@click.command("view")
@click.argument("run", required=False, metavar="[RUN|GROUP]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="The port; 0 takes a free one.",
)
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
@store_option
def command(run: str | None, port: int, no_browser: bool, store: str | None) -> None:
    """Look at runs in a browser, until Ctrl-C.

    RUN is an id, the start of one, the name of a baseline, or `latest`; GROUP is the id of the runs
    of several targets. Its page is opened; without it, the list of all runs is.

    \b
    Examples:
      assay view
      assay view latest
      assay view main --no-browser
    """
    # The server is heavy, and no other command but `serve` needs it.
    from assay.server.security import Access
    from assay.server.serving import serve

    settings = project()
    settings.prepend_to_sys_path()
    with closing(open_store(settings, store)) as opened:
        path = "/" if run is None else _page_of(run, opened)

        def show(url: str) -> None:
            click.echo(f"the pages are on {url}{path}\nCtrl-C ends them")
            if not no_browser:
                # Some browsers return only when they are closed. Without any, nothing happens.
                browser = Thread(target=webbrowser.open, args=[f"{url}{path}"], daemon=True)
                browser.start()

        serve(settings, opened, Access.of(HOST, ()), (HOST, port), settings.root, show)


def _page_of(name: str, store: Store) -> str:
    group = find_group(name, store)
    return f"/runs/{find_run(name, store).id}" if group is None else f"/groups/{group.id}"
