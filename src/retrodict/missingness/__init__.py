"""How events go missing, one file per mechanism."""

from retrodict.missingness.after import After
from retrodict.missingness.anything import Anything
from retrodict.missingness.base import Context, Either, Missingness
from retrodict.missingness.by_type import ByType
from retrodict.missingness.contextual import Contextual
from retrodict.missingness.custom import Custom
from retrodict.missingness.reporting_delay import ReportingDelay
from retrodict.missingness.time_varying import TimeVarying
from retrodict.missingness.windows import Windows

MECHANISMS: dict[str, type[Missingness]] = {
    m.kind: m for m in (ByType, Windows, TimeVarying, ReportingDelay, After, Contextual, Either, Custom, Anything)
}
Either.kinds = MECHANISMS

__all__ = [
    "MECHANISMS",
    "After",
    "Anything",
    "ByType",
    "Context",
    "Contextual",
    "Custom",
    "Either",
    "Missingness",
    "ReportingDelay",
    "TimeVarying",
    "Windows",
]
