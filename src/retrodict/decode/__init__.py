"""From many weighted particles to one stream: optimal transport distance and consensus (section 4)."""

from retrodict.decode.baselines import medoid, most_probable, thresholded
from retrodict.decode.certify import Certificate, certify
from retrodict.decode.consensus import Consensus, consensus, tradeoff
from retrodict.decode.cost import Cost
from retrodict.decode.transport import Transport, distance_matrix, distances, transport

__all__ = [
    "Certificate",
    "Consensus",
    "Cost",
    "Transport",
    "certify",
    "consensus",
    "distance_matrix",
    "distances",
    "medoid",
    "most_probable",
    "thresholded",
    "tradeoff",
    "transport",
]
