"""Fill in the events missing from continuous-time event streams, with honest uncertainty."""

from retrodict._version import __version__
from retrodict.events.stream import EventStream
from retrodict.events.stream_set import StreamSet

__all__ = ["EventStream", "StreamSet", "__version__"]
