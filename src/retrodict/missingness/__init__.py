"""How events go missing, one file per mechanism."""

from retrodict.missingness.base import Context, Missingness
from retrodict.missingness.by_type import ByType

__all__ = ["ByType", "Context", "Missingness"]
