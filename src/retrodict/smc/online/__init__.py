"""Algorithm 1 on streams that are still going on: events are fed as they arrive, questions are answered at any time."""
