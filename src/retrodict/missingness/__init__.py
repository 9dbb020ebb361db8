"""How events go missing, one file per mechanism."""

from retrodict.missingness.base import Context, Missingness
from retrodict.missingness.by_type import ByType

MECHANISMS: dict[str, type[Missingness]] = {m.kind: m for m in (ByType,)}

__all__ = ["MECHANISMS", "ByType", "Context", "Missingness"]
