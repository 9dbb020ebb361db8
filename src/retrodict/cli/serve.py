"""``retrodict serve``: imputation over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from retrodict.cli import common
from retrodict.errors import ModelError
from retrodict.events.lock import lock_folder


def _limit(name: str, text: str, kind: type = int) -> tuple[Any, None]:
    option = typer.Option(f"--{name}", help=text, min=1 if kind is int else 0.001, rich_help_panel="Limits")
    return Annotated[kind | None, option], None


class Limits(common.Options):
    """Limits of the server by the names that its settings have; None leaves the default."""

    OPTIONS: ClassVar[Mapping[str, tuple[Any, Any]]] = {
        "bytes": _limit("max-bytes", "Bytes of a request (4 MiB)."),
        "streams": _limit("max-streams", "Streams in a request (1,000)."),
        "events": _limit("max-events", "Observed events in a request (20,000)."),
        "particles": _limit("max-particles", "Particles a stream (10,000)."),
        "work": _limit("max-work", "Streams x events of the longest x particles, in a request (5,000,000)."),
        "steps": _limit("max-steps", "Events of a stream at a time where the torch engine runs it (2,000)."),
        "missing": _limit("max-missing", "Missing events in one guess of a stream (2,000)."),
        "seconds": _limit("seconds", "Seconds for an answer (30).", float),
        "patience": _limit("patience", "Seconds for a client to send a request or to take an answer (10).", float),
        "queue": _limit("queue", "Requests that may wait (256)."),
        "workers": _limit("workers", "Requests, or batches of them, that run at once (one a core)."),
        "batch_wait": _limit("batch-wait", "Seconds to wait for requests to share a run with (0.002).", float),
        "online_streams": _limit("max-online", "Online streams that are open at once (1,000)."),
        "online_memory": _limit("max-online-memory", "Bytes of the particles of all online streams (2 GiB)."),
        "grace": _limit("grace", "Seconds for what runs when the server is told to stop (30).", float),
    }


def serve(
    models: Annotated[list[Path], typer.Argument(help="Folders that 'retrodict fit' wrote; the first is the default.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any that is free.", min=0, max=65535)] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the token that requests must carry; by default that in RETRODICT_TOKEN, if set."),
    ] = None,
    online: Annotated[
        Path | None, typer.Option(help="Folder where online runs are kept; without it they end with the server.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto (where it runs fastest), cpu or cuda.")] = "auto",
    access_log: Annotated[bool, typer.Option("--access-log", help="Print a line for each request.")] = False,
    *,
    limits: Limits,
) -> None:
    """Serve imputation over HTTP: impute, ask, and follow streams online.

    Models are read from the folders named here and from nowhere else. GET /openapi.json says what can be asked,
    /health/ready whether to ask, and /metrics how it goes. SIGTERM or Ctrl-C lets what runs end, and stops.

    It needs the extra: pip install 'retrodict\\[serve]'.

    [bold]Examples[/]

      retrodict serve model/

      RETRODICT_TOKEN=$(cat token) retrodict serve doors/ taxis/ --host 0.0.0.0 --port 8080 --seconds 10
    """
    try:
        from retrodict.serve.app import create_app
        from retrodict.serve.run import open_socket, run
    except ImportError as error:
        if (error.name or "").startswith("retrodict"):
            raise
        raise ModelError(f"{error.name} is not installed: pip install 'retrodict[serve]'.") from None
    import torch

    from retrodict.models.device import find_device
    from retrodict.serve.auth import VARIABLE, find_token
    from retrodict.serve.limits import ServeLimits
    from retrodict.serve.models import Models

    given = {name: value for name, value in limits.items() if value is not None}
    token = find_token(token_file)
    torch.set_num_threads(1)
    find_device(device)
    with nullcontext() if online is None else lock_folder(online), closing(open_socket(host, port)) as listening:
        served = Models(models, device)
        if any(each.device != "cpu" for each in served):
            given.setdefault("workers", 1)  # which share the GPU with nobody
        settings = ServeLimits(**given)
        where = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
        names = ", ".join(f"{each.name} ({each.model.kind}, {len(each.types)} types)" for each in served)
        app = create_app(served, settings, token, online)
        common.err.print(f"serving {names} on {where}", soft_wrap=True, highlight=False, markup=False)
        if token is None and host not in ("127.0.0.1", "localhost", "::1"):
            common.note(f"anybody who can reach {host} may ask: set {VARIABLE} or give --token-file")
        run(app, listening, settings, access_log)
    common.err.print("stopped", highlight=False)
