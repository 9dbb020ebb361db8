"""The paper's experiments, and more, in small jobs that may be interrupted and shared out over processes.

    retrodict reproduce --all --quick

An experiment is one file with a function ``jobs(scale)``, listed in ``plan.EXPERIMENTS``; what its jobs found is put
into tables and figures by ``collect``.
"""
