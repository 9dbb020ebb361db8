"""Fitting models (and proposals) by gradient ascent, on PyTorch Lightning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from retrodict.train.fit import fit
else:

    def fit(*args: Any, **kwargs: Any) -> Any:
        """See ``retrodict.train.fit.fit``: Lightning is imported only when something is fitted."""
        from retrodict.train.fit import fit as run

        return run(*args, **kwargs)


__all__ = ["fit"]
