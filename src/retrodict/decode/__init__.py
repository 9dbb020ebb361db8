"""From many weighted particles to one stream: optimal transport distance and consensus (section 4).

To understand the consensus read, in this order, ``consensus`` (the whole), ``transport`` (the loss), ``ensemble``
(what is decoded), ``local`` (the paper's search), ``bound`` (what proves a decode optimal) and ``exact`` (how to find
the optimum). ``program`` and ``flow`` solve the program inside ``exact``; ``kernels`` is what the compiled code
shares, and ``baselines`` are other decoders.
"""

from retrodict.decode.baselines import medoid, most_probable, thresholded
from retrodict.decode.consensus import Certificate, Consensus, certify, consensus, tradeoff
from retrodict.decode.transport import Cost, Transport, distance_matrix, distances, transport

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
