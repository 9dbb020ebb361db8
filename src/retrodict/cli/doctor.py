"""``retrodict doctor``: what this installation can use, and what would make it faster."""

from __future__ import annotations

import platform

from rich.table import Table

from retrodict._version import __version__
from retrodict.cli import common


def doctor() -> None:
    """Show versions, processors and which engines can run here.

    [bold]Example[/]

      retrodict doctor
    """
    import torch

    from retrodict.smc.engines import ENGINES
    from retrodict.smc.engines.native import native_module

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row("retrodict", __version__)
    table.add_row("Python", platform.python_version())
    table.add_row("torch", f"{torch.__version__}, {torch.get_num_threads()} threads")
    cuda = torch.cuda.get_device_name() if torch.cuda.is_available() else "none that torch can use"
    table.add_row("GPU", cuda)
    for name, engine in ENGINES.items():
        why = engine.unavailable()
        module = native_module() if name == "native" else None
        ready = "ready" if module is None else f"ready, compiled for {module.__name__.rsplit('_', 1)[-1]}"
        table.add_row(f"engine {name}", f"[yellow]not here:[/] {why}" if why else ready)
    common.out.print(table, highlight=False)
