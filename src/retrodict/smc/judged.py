"""How many streams choose between the two ways of decoding all of them (``smc/decision.py``)."""

JUDGED = 1000  # in the order of numbers that follow from their ids
