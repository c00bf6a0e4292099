"""The web server of the page (needs nicegui)."""

from __future__ import annotations

import errno
import logging
import socket
import warnings

from nicegui import app, ui
from starlette.requests import Request

from nsfrc.errors import NsfrcError
from nsfrc.hosts import is_loopback
from nsfrc.page.begin import Start
from nsfrc.page.desk import warm_up
from nsfrc.page.guard import Guard
from nsfrc.page.seen import Eyes
from nsfrc.page.view import PageView, in_background, stop_all

ICON = ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><circle cx="10" cy="21" r="7" fill="#2a4bd7"/>'
        '<path d="M21 5l8 14H13z" fill="#ad2323"/></svg>')


def free_port(host: str, port: int) -> int:
    """The port, or a free one for 0. Raises NsfrcError where it is taken or the address is not this machine's."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind((host, port))
            return int(tried.getsockname()[1])
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise NsfrcError(f"port {port} is taken, perhaps by another nsfrc play: --port 0 takes a free one") \
                from None
        raise NsfrcError(f"cannot listen on {host} port {port}: {error.strerror or error}") from None


def serve(begin: Start, eyes: Eyes, host: str, port: int, show: bool) -> None:
    """Serve the page until Ctrl-C."""

    def page(request: Request) -> None:
        PageView(begin, eyes, request.query_params.get("s"))

    def warm() -> None:
        """Load perception and kernels while the browser loads the page."""
        in_background(lambda: warm_up(begin, eyes))

    warnings.filterwarnings("ignore", module=r"PIL\.")  # for the whole process, as threads read pictures
    logging.getLogger("nicegui").setLevel(logging.ERROR)  # it warns of marks that came too late for the text
    ui.page("/", title="nsfrc play", favicon=ICON, dark=None)(page)
    app.add_middleware(Guard, local=is_loopback(host))
    app.on_startup(warm)
    app.on_shutdown(stop_all)
    ui.run(host=host, port=port, show=show, reload=False, title="nsfrc play", favicon=ICON, dark=None,
           show_welcome_message=False, reconnect_timeout=30)
