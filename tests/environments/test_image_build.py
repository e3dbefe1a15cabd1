"""A Containerfile, its lines run one after the other by a real pip in an image like NVIDIA's."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest

from hpctrain.model.step import Pin
from hpctrain.run.prepare.jobzip import build
from hpctrain.run.system.tools import Tools
from hpctrain.session import Session
from hpctrain_plugins.environments.edf import image_request
from hpctrain_plugins.environments.edf.containerfile import IMAGE_FOLDER, INSIDE, JOB
from hpctrain_plugins.environments.image import pins
from tests.environments import nvidia
from tests.environments.small_wheel import wheel
from tests.environments.test_edf import session

LISTED = 'has = "has.txt"\n'


@pytest.fixture
def image(tmp_path: Path) -> nvidia.Image:
    return nvidia.Image(tmp_path / "image")


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = nvidia.index(tmp_path / "wheels")
    wheel(folder, "wheel", "0.45.0")
    nvidia.source(folder, "flash_attn", "2.5.8")
    (folder / "none").mkdir()
    return folder


def asked(image: nvidia.Image, wheels: Path, more: str = "", *, known: bool = True) -> Session:
    """A run that compiles flash-attn over the older one of the base; the base is known by its list."""
    folder = wheels.parent
    (folder / "has.txt").write_text(image.listed())
    edf = f'base = "nvcr.io/nvidia/pytorch:25.03-py3"\nindex_url = "file://{wheels}/none"\n'
    edf += f'find_links = ["{wheels}"]\n{LISTED if known else ""}{more}'
    return session(folder, edf, 'packages = ["trl", "tokenizers"]\ncompile = ["flash-attn==2.5.8"]')


def locked(one: Session) -> tuple[Pin, ...]:
    """What `lock` adds to the base's digest, which only a registry knows."""
    request = image_request.read(one.run, one.cluster, ())
    assert request.has is not None
    as_wheels = image_request.as_wheels(one.run)
    return tuple(pins.lacking(as_wheels, one.cluster, request.has, request.replaced, Tools()))


def run_lines(image: nvidia.Image, one: Session, pins: tuple[Pin, ...] = ()) -> None:
    """Every line of the Containerfile in its order: what it copies, and what it runs."""
    recipe = image_request.read(one.run, one.cluster, pins).recipe
    context, inside = one.source.base / "context", one.source.base / "inside"
    context.mkdir()
    inside.mkdir()
    (context / JOB).write_bytes(build().data)
    (context / "has.txt").write_text(image.listed())
    for name, lines in recipe.files.items():
        (context / f"{name}.txt").write_text("\n".join(lines) + "\n")

    def place(word: str) -> str:
        venv = str(one.source.base / "venv")
        return word.replace(IMAGE_FOLDER, str(inside)).replace(INSIDE, venv)

    env: dict[str, str] = {}
    for line in recipe.text.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "ENV":
            env |= dict(word.split("=", 1) for word in shlex.split(rest))
        elif kind == "COPY" and not rest.startswith("--from"):
            source, target = rest.split()
            shutil.copy(context / source, place(target))
        elif kind == "RUN":
            image.run(*map(place, json.loads(rest)), env=env)


KEPT = {"numpy": "1.26.4", "packaging": "23.2", "safetensors": "0.5.3", "filler-7": "1.7"}


@pytest.mark.parametrize("way", ["locked", "asked first"])
def test_an_image_adds_what_the_base_lacks_and_replaces_what_is_compiled(
    image: nvidia.Image, wheels: Path, way: str
) -> None:
    before = image.versions()
    one = asked(image, wheels, known=way == "locked")
    run_lines(image, one, locked(one) if way == "locked" else ())
    after = image.versions()
    changed = {name: version for name, version in after.items() if before.get(name) != version}
    added = {"trl": "0.23.1", "tokenizers": "0.22.0", "regex": "2024.11.6"}
    assert changed.pop("flash-attn") == "2.5.8"
    assert {name: changed.pop(name) for name in added} == added
    assert set(changed) <= {"wheel"}
    assert KEPT.items() <= after.items()
    proof = image.run("python3", "-m", "hpctrain_job.imports", "trl", "flash-attn==2.5.8")
    assert f"flash-attn 2.5.8 {image.site}" in proof.stdout


def test_a_venv_beside_the_base_leaves_it_as_it_is(image: nvidia.Image, wheels: Path) -> None:
    before = image.versions()
    one = asked(image, wheels, 'kind = "venv"\n')
    run_lines(image, one, locked(one))
    assert image.versions() == before
    venv = wheels.parent / "venv/bin/python"
    proof = image.run(str(venv), "-m", "hpctrain_job.imports", "trl", "flash-attn==2.5.8", "numpy==1.26.4")
    assert f"flash-attn 2.5.8 {wheels.parent}/venv/lib" in proof.stdout
    older = image.run("python3", "-m", "hpctrain_job.imports", "flash-attn==2.5.8", code=1)
    assert "flash-attn is 2.4.2, and 2.5.8 is wanted" in older.stderr
