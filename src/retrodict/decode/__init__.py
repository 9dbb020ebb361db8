"""From many weighted particles to one stream: optimal transport distance and consensus (section 4).

To understand the consensus read, in this order, ``sets`` (the whole), ``transport`` (the loss), ``ensemble`` (what is
decoded), ``local`` (the paper's search), ``bound`` (what proves a decode optimal) and ``exact`` (how to find the
optimum). ``program`` and ``flow`` solve the program inside ``exact``; ``kernels`` is what the compiled code shares.
``consensus`` is the same for one list of particles, ``flat`` holds ensembles and thins them, ``expected`` scores
decodes under other ensembles, and ``baselines`` are other decoders.
"""

from retrodict.decode.baselines import medoid, most_probable, thresholded
from retrodict.decode.consensus import Certificate, Consensus, certify, consensus, tradeoff
from retrodict.decode.expected import expected_distance_set
from retrodict.decode.flat import Charges, Ensembles, thin_set
from retrodict.decode.sets import Decodes, decode_set
from retrodict.decode.transport import Cost, Transport, distance_matrix, distances, transport

__all__ = [
    "Certificate",
    "Charges",
    "Consensus",
    "Cost",
    "Decodes",
    "Ensembles",
    "Transport",
    "certify",
    "consensus",
    "decode_set",
    "distance_matrix",
    "distances",
    "expected_distance_set",
    "medoid",
    "most_probable",
    "thin_set",
    "thresholded",
    "tradeoff",
    "transport",
]
