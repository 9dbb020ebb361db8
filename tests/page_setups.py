"""What pages talk about but do not make: streams, models and files, as Python to run before a page's blocks."""

from __future__ import annotations

_IMPORTS = "import retrodict as rd\nimport torch\n"

_TRIPS = """
import numpy as np, retrodict as rd
from retrodict.events.time_axis import TimeAxis
fifth = TimeAxis("hour", origin=int(np.datetime64("2013-01-05", "ns").astype(np.int64)))
drawn = rd.simulate(rd.Poisson([0.7, 1.5, 0.3]), 24, end=10.0, seed=0)
trips = rd.StreamSet(list(drawn), types=["pick-up", "drop-off", "break"], axis=fifth)
"""

_CSV = (
    _TRIPS
    + """
for name in ("trips.csv", "incomplete.csv"):
    columns = {"stream": "driver", "time": "when", "type": "what"}
    trips.to_frame().rename(columns=columns).to_csv(name, index=False)
hidden = rd.ByType({"pick-up": 0.5}).censor(trips)[1]
hidden.to_frame().to_csv("hidden.csv", index=False)
del rd
"""
)

_MISSING = (
    _IMPORTS
    + """
model = rd.Hawkes([0.3, 0.2], [[0.2, 0.5], [0.0, 0.3]], 2.0)
complete = rd.simulate(model, 12, end=10.0, seed=1)
observed, _ = rd.ByType(0.5).censor(complete)
proposal = rd.Filtering(model, rd.ByType(0.5))
types = complete.types
"""
)


_MODEL = (
    _MISSING
    + """
model.save("model")
for name, streams in {"held-out": complete, "whole": complete, "patchy": observed, "arrivals": observed}.items():
    rd.write_events(streams, f"{name}.csv")
"""
)

SETUPS: dict[str, str] = {
    "README.md": _CSV,
    "docs/check.md": _MODEL,
    "docs/datasets.md": """
from retrodict.datasets import write_splits
from retrodict.datasets.elevator import elevator
write_splits(elevator(sizes=(3, 1, 1)), "elevator")
del write_splits, elevator
""",
    "docs/events.md": _IMPORTS + "streams = rd.simulate(rd.Poisson([0.7, 1.5, 0.3]), 3, end=10.0, seed=0)\n",
    "docs/imputation.md": _MISSING + "smoother = proposal\n",
    "docs/large.md": _TRIPS
    + """
model = rd.Poisson([0.7, 1.5, 0.3])
model.types = trips.types
model.save("model")
rd.write_events(trips, "day.parquet")
trips.to_frame().rename(columns={"stream": "driver", "time": "when", "type": "what"}).to_csv("trips.csv", index=False)
import pathlib, shutil
pathlib.Path("events").mkdir()
shutil.move("day.parquet", "events/day.parquet")
del rd, model, pathlib, shutil
""",
    "docs/incomplete.md": _MODEL
    + """
streams, dev, some = observed, observed, complete
guess = rd.ByType(0.3)
open("guess.yaml", "w").write("mechanism: by_type\\nrates: {\'0\': 0.3}\\n")
""",
    "docs/missingness.md": _MISSING,
    "docs/pictures.md": _TRIPS
    + """
made = rd.fit(rd.Poisson, trips, trips)
made.save("model")
rd.write_events(rd.ByType({"pick-up": 0.5}).censor(trips)[0], "incomplete.csv")
""",
}
