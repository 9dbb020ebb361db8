"""The paper's experiments (section 5, appendix G), outside of the package: ``python -m experiments --help``.

``sizes`` says how large everything is; ``plan`` lists the tasks, each of which leaves one JSON file; ``pool`` does
those whose file is absent; ``summary``, ``page`` and the figures show what they found.
"""
