"""The texts that `hpctrain init` writes, from templates that the tests plan and run."""

from __future__ import annotations

import re
from datetime import date
from importlib import resources
from pathlib import Path

from hpctrain.hooks import load
from hpctrain.runfile.facts import load_facts
from hpctrain.versions import DISTRIBUTION

"""Those with a template; of the others there are examples."""
READY = "ready"
"""The environment that is not built: a run file must say where it is."""
GPUS, NODES = "gpus = 4                              # or nodes = 1", "nodes = 1"
"""What a template asks for, and what a computer without GPUs of its own can give."""
_RUN_FILE = re.compile(r"run-(\w+)\.toml")
_UNADDRESSED = re.compile(r"^\[\[source\]\]\n(?:(?!url|sure)\w.*\n)+(?!\w)", re.MULTILINE)
"""An official source without an address: for a machine that only begins like that one it is none."""
DETECT = "[]  # regular expressions for the full host name of a login node"
KINDS = ("cluster", "environment", "scheduler", "trainer")
"""What `init plugin` writes."""
PLUGIN = ("pyproject.toml", "README.md", "hpc_NAME/__init__.py", "tests/test_kit.py")


def trainers() -> list[str]:
    """The trainers that `init run` can begin with: those that have a template `run-NAME.toml`."""
    templates = resources.files("hpctrain.cli").joinpath("templates").iterdir()
    return sorted(match[1] for file in templates if (match := _RUN_FILE.fullmatch(file.name)))


def run_file(trainer: str, cluster: str) -> str:
    """A run file for a trainer on a cluster, with the table of an environment that only its user knows."""
    text = _template(f"run-{trainer}.toml").replace("CLUSTER", cluster)
    facts = load_facts(_folder(cluster)).cluster
    if facts.hardware.nodes == 1 and not facts.hardware.gpus_per_node:
        text = text.replace(GPUS, NODES)
    if facts.defaults.get("environment", {}).get("use") != READY or f"[environment.{READY}]" in text:
        return text
    return text.replace("\n[assets]", f"\n{_template('ready.toml').replace('CLUSTER', cluster)}\n[assets]", 1)


def site_file(cluster: str) -> str:
    """A site file with the facts a site most often changes, all as comments."""
    facts = load_facts(_folder(cluster)).cluster
    policy = facts.policy
    text = _template("site.toml").replace("CLUSTER", cluster)
    return text.replace("POLL", str(policy.poll_seconds)).replace("TODAY", date.today().isoformat())


def facts_like(name: str, like: str) -> str:
    """The facts of another cluster, to be replaced one by one."""
    facts = (_folder(like) / "cluster.toml").read_text(encoding="utf-8")
    head = (
        f"# {name}: every value below is {like}'s. Replace each by what your site's pages say, name the\n"
        "# page in a [[source]] with the day on which you read it, and delete what you do not know.\n"
    )
    return head + _renamed(facts, name)


def plugin(name: str, facts: str) -> dict[str, str]:
    """The files of a new distribution with a cluster of these facts."""
    files = {f"hpc_{name}/cluster.toml": facts}
    example = _template("run-command.toml").replace("CLUSTER", name)
    files[f"hpc_{name}/examples/hello.toml"] = example
    for path in PLUGIN:
        template = "plugin/" + path.replace("hpc_NAME/", "").replace("tests/", "") + ".txt"
        text = _filled(template, name)
        files[path.replace("NAME", name)] = text.replace("EXAMPLE", example.rstrip())
    return files


def technology(kind: str, name: str) -> dict[str, str]:
    """The files of a new distribution with a small plugin that is no cluster, and passes its kit."""
    shared = {path: f"plugin/technology/{path}.txt" for path in ("pyproject.toml", "README.md")}
    of_kind = {
        f"hpctrain_{name}.py": f"plugin/{kind}/hpctrain_NAME.py.txt",
        "tests/test_kit.py": f"plugin/{kind}/test_kit.py.txt",
    }
    if kind == "trainer":
        of_kind[f"{name}_job/__main__.py"] = "plugin/trainer/NAME_job.txt"
    modules = f', "{name}_job"' if kind == "trainer" else ""
    files = {path: _filled(template, name) for path, template in (shared | of_kind).items()}
    if kind == "trainer":
        files[f"{name}_job/__init__.py"] = f'"""The part of {name} that runs in the job."""\n'
    project = files["pyproject.toml"].replace("KINDS", f"{kind}s").replace("KIND", kind)
    return files | {
        "pyproject.toml": project.replace("MORE", modules),
        "README.md": files["README.md"].replace("KIND", f"{'an' if kind == 'environment' else 'a'} {kind}"),
    }


def _filled(template: str, name: str) -> str:
    # NAME_JOB is a variable of a shell, NAME_job a package.
    text = re.sub("NAME_(?=[A-Z])", f"{name.upper()}_", _template(template))
    text = text.replace("NAME", name).replace("VERSION", DISTRIBUTION)
    return text.replace("CLASS", re.sub(r"[-_]", "", name.title()))


def _renamed(facts: str, name: str) -> str:
    """Another cluster's facts under a new name; whose login nodes they are is not copied."""
    front, table, tables = _UNADDRESSED.sub(r'\g<0>sure = "inferred"\n', facts).partition("\n[")
    replacements = {"name": f'"{name}"', "title": f'"{name}"', "operator": '""', "detect": DETECT}
    lines = []
    for line in front.split("\n"):
        key = line.partition("=")[0].strip()
        lines.append(f"{key} = {replacements[key]}" if key in replacements else line)
    return "\n".join(lines) + table + tables


def _folder(cluster: str) -> Path:
    return Path(str(load.load(load.find("clusters", cluster)).__file__)).parent


def _template(name: str) -> str:
    return resources.files("hpctrain.cli").joinpath("templates", *name.split("/")).read_text(encoding="utf-8")
