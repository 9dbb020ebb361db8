"""The work on one chunk: sample its posterior, and later decode it. Both may be done anywhere, and done again."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from retrodict.errors import DataError, DataNotice, EngineNotice, SuspicionNotice
from retrodict.events.atomic import atomic_file, own_folder, synced_later
from retrodict.events.combine import fill
from retrodict.events.io.csv_file import as_text
from retrodict.events.io.jsonl import write_jsonl
from retrodict.events.io.own_table import layout_of, write_table
from retrodict.events.io.parquet_file import with_metadata
from retrodict.events.stream_set import StreamSet
from retrodict.jobs.folder import JobFolder, digest_of
from retrodict.jobs.plan import Plan
from retrodict.jobs.pooled import Pooled, keep_numbers, load_own
from retrodict.jobs.spread import ROW
from retrodict.missingness.conflicts import IDLE
from retrodict.proposals.base import Proposal
from retrodict.smc.diagnostics import complaints
from retrodict.smc.impute import impute
from retrodict.smc.posterior_folder import save_posterior

ANCHOR = "__retrodict_anchor"
SUFFIXES = {"csv": ".arrow", "parquet": ".arrow", "folder": ".parquet", "jsonl": ".jsonl"}
_BATCH = 1 << 16  # rows that are read at once when parts are put together


@dataclass(frozen=True)
class Work:
    """What a worker needs to do any chunk: ``form`` is how the answer will be written, a key of ``SUFFIXES``."""

    folder: Path
    plan: Plan
    proposal: Proposal
    options: Mapping[str, Any]
    form: str
    unit: str | None
    about: Mapping[str, Any]
    run: str  # for which it is done (``JobFolder.hold``)
    keeps_draws: bool = True  # for the user, when all is done

    @property
    def job(self) -> JobFolder:
        """The folder that chunks are written into."""
        return JobFolder(self.folder)

    def files(self, stage: str, number: int) -> list[Path]:
        """What a stage writes for a chunk."""
        job = self.job
        if stage == "sampled":
            return [job.draws(number), job.pooled / f"{number:05d}"]
        return [job.part(number, SUFFIXES[self.form])]

    def sample(self, number: int) -> dict[str, Any]:
        """Sample the posterior of a chunk, write it and enter it into the manifest."""
        draws, pooled = self.files("sampled", number)
        with warnings.catch_warnings(record=True) as caught:
            for kind in (DataNotice, EngineNotice, SuspicionNotice):
                warnings.simplefilter("always", kind)
            warnings.filterwarnings("ignore", rf"{IDLE} \d")  # a window may be for streams of other chunks
            observed = self.plan.read(number)
            posterior = impute(observed, self.proposal, **self.options)
        posterior.about.pop("edges", None)  # of this chunk alone
        posterior.about |= dict(self.about)
        with synced_later(), own_folder(draws) as own, own_folder(pooled) as numbers:
            save_posterior(posterior, own, self.unit, readable=self.keeps_draws)
            keep_numbers(posterior, np.array(self.plan.judged[number], dtype=np.int64), numbers)
            digests = {draws: digest_of(own), pooled: digest_of(numbers)}
            size = sum(file.stat().st_size for file in own.iterdir())
            self.job.check_held(self.run)
        kinds = (DataNotice, SuspicionNotice)
        notes = list(dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, kinds)))
        facts = {
            "chunk": number,
            "bytes": size,
            "streams": len(posterior),
            "possible": int(posterior.is_possible.sum()),
            "impossible": [str(observed.ids[i]) for i in np.flatnonzero(~posterior.is_possible)[:20]],
            "conflict": posterior.about.get("conflict"),
            "particles": posterior.num_particles,
            "seed": self.options["seed"],
            "notes": notes,
        }
        return self.job.commit("sampled", number, digests, facts)

    def decode(self, number: int, pooled: Pooled) -> dict[str, Any]:
        """Decode a chunk that was sampled, write the answer and enter it into the manifest."""
        posterior = load_own(self.job.draws(number))
        posterior.model = self.proposal.model
        posterior.observed = self.proposal.model.matched(self.plan.read(number))
        posterior.__dict__["chosen"] = getattr(posterior, pooled.chosen)
        notes = list(complaints(posterior))
        decoded = posterior.consensus(pooled.price, ensemble=pooled.way)
        (path,) = self.files("parts", number)
        with synced_later():
            rows = self._write(fill(posterior.observed, decoded), number, path)
        facts = {
            "chunk": number,
            "streams": len(posterior),
            "rows": rows,
            "observed": posterior.observed.num_events,
            "imputed": decoded.num_events,
            "notes": notes,
        }
        return self.job.commit("parts", number, {path: digest_of(path)}, facts)

    def _write(self, filled: StreamSet, number: int, path: Path) -> int:
        """Write the answer for a chunk as the output will need it; returns its rows."""
        with atomic_file(path) as file:
            rows = self._write_into(file, filled, number, path)
            self.job.check_held(self.run)
        return rows

    def _write_into(self, file: BinaryIO, filled: StreamSet, number: int, path: Path) -> int:
        if self.form == "jsonl":
            write_jsonl(filled, file, path)
            return len(filled)
        table = write_table(filled, {}, text=self.form == "csv")
        table = as_text(table) if self.form == "csv" else with_metadata(table, filled)
        try:
            if self.form == "folder":
                pq.write_table(table, file)
                return int(table.num_rows)
            rows = self.plan.parts.rows(self.plan.chunks[number])[ROW].to_numpy()
            table = table.append_column(ANCHOR, pa.array(rows[layout_of(filled).anchor]))
            with pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table.combine_chunks(), max_chunksize=_BATCH)
        except pa.ArrowException as error:
            remedy = "convert the extra columns to numbers or text, or leave them out"
            raise DataError(f"the output cannot hold these columns: {error}", file=path, remedy=remedy) from error
        return int(table.num_rows)
