"""Whose files are used: one rule in two languages, and the attacks of another user of the group."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.run.users import GROUP, MALLORY, USER, bash_as, python_as
from tests.run.users import project as project

TREES = 15 * int(os.environ.get("HPCTRAIN_SOAK", "25"))

JUDGE = """
from hpctrain_job.files import trust
accepted = trust.Accepted(tuple(sys.argv[1].split()))
for link in open(sys.argv[2]).read().splitlines():
    print(link, trust.artifact(link, accepted).verdict.value)
"""
BASH_JUDGE = 'while read -r link; do _hpc_judge "$link"; echo "$link $_hpc_verdict"; done <"$LIST"'

PUBLISH_ONE = """
hpc_begin "$LINK"; mkdir "$WORK"; echo "{text}" >"$WORK/python"; hpc_publish "$LINK"
"""


def chosen(chance: random.Random, usual: str, *faults: str) -> str:
    """Mostly what is right, so that the last fault of a tree is met as often as the first."""
    return chance.choice(faults) if chance.random() < 0.12 else usual


def folders_of(root: Path, chance: random.Random) -> list[Path]:
    """A role's folders, now and then through a link."""
    folders = [root, root / "hpctrain", root / "hpctrain/env"]
    root.mkdir()
    for folder in folders[1:]:
        if chance.random() > 0.06:
            folder.mkdir()
            continue
        real = folder.with_name("real-" + folder.name)
        real.mkdir()
        folder.symlink_to(chosen(chance, real.name, f"{real.name}/..", f"./{real.name}/.", str(real)))
        os.chown(folder, owner(chance), GROUP, follow_symlinks=False)
    return folders


def owner(chance: random.Random) -> int:
    return int(chosen(chance, str(USER), "0", str(MALLORY)))


def content_of(work: Path, name: str, chance: random.Random) -> None:
    """A build folder with its content and manifest."""
    work.mkdir()
    content = work / "content"
    kind = chosen(chance, "folder", "file", "link", "nothing", "empty")
    if kind in ("folder", "empty"):
        content.mkdir()
    if kind == "folder":
        (content / "python").write_text("x")
    elif kind == "file":
        content.write_text("x")
    elif kind == "link":
        content.symlink_to("..")
    head = "# hpctrain manifest 1"
    head = chosen(chance, f"{head} {name}\n", f"{head}\n", f"{head} z\n", "")
    row = f"1 {'0' * 64}  content/python\n"
    outside = (row.replace("content/", "../"), row.replace("/p", "/../p"))
    rows = chosen(chance, row, "", *outside, f"{row}x\n", row[:-1])
    if chance.random() < 0.95:
        (work / "MANIFEST").write_text(f"{head}{rows}")
    os.chown(work, owner(chance), GROUP)
    work.chmod(int(chosen(chance, "750", "770", "777", "700"), 8))


def tree(root: Path, chance: random.Random) -> Path:
    """A folder, an artifact in it, and up to a few things wrong with them."""
    folders = folders_of(root, chance)
    name = chance.choice(["venv-0a", "a b", "x.sqsh"])
    link = folders[-1] / name
    work = folders[-1] / f".hpc-{chosen(chance, name, name + '.b', 'other')}.host.1.00000000"
    if chance.random() < 0.9:
        content_of(work, name, chance)
    usual = f"{work.name}/content"
    if chance.random() < 0.95:
        link.symlink_to(chosen(chance, usual, work.name, ".", f"{work}/content", f"./{usual}", f"{usual}/"))
        os.chown(link, owner(chance), GROUP, follow_symlinks=False)
    elif chance.random() < 0.5:
        link.mkdir()
    for folder, mode in zip(folders, ("2750", "2750", "3770"), strict=True):
        os.chown(folder, owner(chance), GROUP)
        folder.chmod(int(chosen(chance, mode, "700", "750", "2770", "3770", "777", "1777"), 8))
    return link


@pytest.mark.parametrize("owners", ["", str(MALLORY)])
def test_bash_and_python_judge_generated_trees_alike(project: Path, owners: str) -> None:
    chance = random.Random(f"trust {owners}")
    links = [tree(project / str(number), chance) for number in range(TREES)]
    listed = project / "links"
    listed.write_text("".join(f"{link}\n" for link in links))
    listed.chmod(0o644)
    python = python_as(USER, JUDGE, project, owners, str(listed))
    bash = bash_as(USER, BASH_JUDGE, project, LIST=str(listed), HPC_OWNERS=owners)
    assert (python.stderr, bash.stderr) == ("", "")
    answers = python.stdout.splitlines()
    assert len(answers) == TREES
    assert answers == bash.stdout.splitlines()
    counts = {
        verdict: sum(a.endswith(f" {verdict}") for a in answers)
        for verdict in ("exists", "missing", "stale", "refused")
    }
    assert min(counts.values()) > TREES // 100, counts


def judged(project: Path, link: Path, owners: str = "") -> str:
    """The verdict of both languages, which must be the same."""
    listed = project.parent / "one"
    listed.write_text(f"{link}\n")
    listed.chmod(0o644)
    python = python_as(USER, JUDGE, project, owners, str(listed))
    bash = bash_as(USER, BASH_JUDGE, project, LIST=str(listed), HPC_OWNERS=owners)
    assert python.stdout == bash.stdout, python.stderr + bash.stderr
    return python.stdout.rpartition(" ")[2].strip()


@pytest.fixture
def published(project: Path) -> Path:
    """An artifact of the user in a shared folder of the project."""
    link = project / "hpctrain/env/venv-aaa"
    done = bash_as(USER, PUBLISH_ONE.format(text="good"), project, LINK=str(link), HPC_SHARE="project")
    assert done.returncode == 0, done.stderr
    assert judged(project, link) == "exists"
    return link


def used(project: Path, link: Path, **env: str) -> list[str]:
    """Which of the functions of a job would take what stands at `link`."""
    functions = ("hpc_exists", "hpc_sound", "hpc_require")
    return [
        f for f in functions if bash_as(USER, f'{f} "$LINK"', project, LINK=str(link), **env).returncode == 0
    ]


OWN = 'own=.hpc-venv-bbb.host.1.abcd; mkdir -p "$own/content"; echo evil >"$own/content/python"'
HEAD = "printf '# hpctrain manifest 1 %s\\n' venv-bbb"
SUMS = '(cd "$own"; printf "5 "; sha256sum content/python)'
PLANTS = {
    "her folder": "mkdir mine; echo evil >mine/python; ln -s mine venv-bbb",
    "the user's own folder with her files": "mkdir bin; echo evil >bin/python; ln -s . venv-bbb",
    "the content of another key": 'ln -s "$(readlink venv-aaa)" venv-bbb',
    "the link of another key": "ln -s venv-aaa venv-bbb",
    "a whole build folder of hers": (
        f'{OWN}; {{ {HEAD}; {SUMS}; }} >"$own/MANIFEST"; ln -s $own/content venv-bbb'
    ),
    "one without sums": f'{OWN}; {HEAD} >"$own/MANIFEST"; ln -s $own/content venv-bbb',
    "one that the user's group may write": (
        f'{OWN}; {{ {HEAD}; {SUMS}; }} >"$own/MANIFEST"; chmod -R g+w $own; ln -s $own/content venv-bbb'
    ),
    "a link to an absolute path": f'{OWN}; ln -s "$PWD/$own/content" venv-bbb',
    "a link through the folder above": f'{OWN}; ln -s "../env/$own/content" venv-bbb',
    "content that is a link to the user's": (
        "own=.hpc-venv-bbb.host.1.abcd; mkdir $own; "
        'ln -s "../$(readlink venv-aaa)" $own/content; cp .hpc-venv-aaa.*/MANIFEST $own/; '
        "ln -s $own/content venv-bbb"
    ),
    "a folder instead of a link": "mkdir venv-bbb; echo evil >venv-bbb/python",
    "a file instead of a link": "echo evil >venv-bbb",
    "a pipe": "mkfifo venv-bbb",
    "a link to itself": "ln -s venv-bbb venv-bbb",
    "a link to nothing": "ln -s .hpc-venv-bbb.host.1.abcd/content venv-bbb",
    "a link to a system's folder": "ln -s /etc venv-bbb",
    "a build folder that is a link to the user's": (
        'target=$(readlink venv-aaa); ln -s "${target%/content}" .hpc-venv-bbb.host.1.abcd; '
        "ln -s .hpc-venv-bbb.host.1.abcd/content venv-bbb"
    ),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_what_somebody_else_plants_is_not_used(published: Path, project: Path, plant: str) -> None:
    link = published.with_name("venv-bbb")
    planted = bash_as(MALLORY, f'umask 022; cd "{link.parent}"; {PLANTS[plant]}', project)
    assert planted.returncode == 0, planted.stderr
    assert used(project, link) == []
    assert judged(project, link) == "refused"
    assert bash_as(USER, 'hpc_begin "$LINK"', project, LINK=str(link)).returncode == 7


def test_a_whole_artifact_of_somebody_else_needs_her_name_among_the_owners(
    published: Path, project: Path
) -> None:
    link = published.with_name("venv-bbb")
    planted = bash_as(
        MALLORY,
        PUBLISH_ONE.format(text="evil"),
        project,
        LINK=str(link),
        HPC_SHARE="project",
        HPC_OWNERS=str(USER),
    )
    assert planted.returncode == 0, planted.stderr
    assert used(project, link) == []
    refused = bash_as(USER, 'hpc_begin "$LINK"', project, LINK=str(link))
    assert refused.returncode == 7
    assert f"belongs to {MALLORY}, who is not among the owners you accept" in refused.stderr
    assert used(project, link, HPC_OWNERS=str(MALLORY)) == ["hpc_exists", "hpc_sound"]
    assert bash_as(USER, f'hpc_require "$LINK" {MALLORY}', project, LINK=str(link)).returncode == 0
    assert judged(project, link, str(MALLORY)) == "exists"


def test_nobody_else_takes_a_link_or_its_content_away(published: Path, project: Path) -> None:
    for attack in (
        f'rm -f "{published}"',
        f'mv "{published}" "{published}-old"',
        f'mv "{published.parent}"/.hpc-* x',
    ):
        assert bash_as(MALLORY, attack, project).returncode != 0
    assert used(project, published) == ["hpc_exists", "hpc_sound", "hpc_require"]


@pytest.mark.parametrize("manifest", ["", "0 {sum}  /etc/hostname\n", "0 {sum}  content/../../x\n"])
def test_a_manifest_lists_its_own_files(published: Path, project: Path, manifest: str) -> None:
    file = published.resolve().parent / "MANIFEST"
    file.write_text(f"# hpctrain manifest 1 {published.name}\n" + manifest.format(sum="0" * 64))
    assert used(project, published) == []
    assert judged(project, published) == "stale"


def test_an_own_link_that_leads_elsewhere_is_made_anew(published: Path, project: Path) -> None:
    other = published.with_name("venv-ccc")
    bash_as(USER, f'ln -s "$(readlink "{published}")" "{other}"', project)
    assert judged(project, other) == "stale"
    done = bash_as(USER, PUBLISH_ONE.format(text="right"), project, LINK=str(other), HPC_SHARE="project")
    assert done.returncode == 0, done.stderr
    assert (other / "python").read_text() == "right\n"
    assert judged(project, other) == "exists"


def test_a_shared_folder_of_an_earlier_version_is_closed(published: Path, project: Path) -> None:
    published.parent.chmod(0o2770)
    assert judged(project, published) == "refused"
    assert "hpc_exists" in used(project, published)
    assert published.parent.stat().st_mode & 0o7777 == 0o3770


@pytest.mark.parametrize("mode", [0o2777, 0o3777, 0o755])
def test_a_folder_above_that_somebody_else_made_is_not_used(project: Path, mode: int) -> None:
    bash_as(MALLORY, f'mkdir -m 2777 "{project}/victim"', project)
    link = project / "victim/hpctrain/env/venv-aaa"
    link.parent.mkdir(parents=True)
    (project / "victim").chmod(mode)
    for folder in (link.parent, link.parent.parent):
        os.chown(folder, USER, GROUP)
    assert judged(project, link) == "refused"
    assert bash_as(USER, 'hpc_begin "$LINK"', project, LINK=str(link)).returncode == 7


@pytest.mark.parametrize(
    ("owners", "verdict"), [("@nogroup", "exists"), ("@root", "refused"), ("", "refused")]
)
def test_a_group_may_be_accepted(published: Path, project: Path, owners: str, verdict: str) -> None:
    nobody = 65534  # the one user besides root whose groups have names everywhere
    os.chown(published, nobody, GROUP, follow_symlinks=False)
    os.chown(published.resolve().parent, nobody, GROUP)
    published.resolve().parent.chmod(0o755)
    assert judged(project, published, owners) == verdict


NOBODY = 65534
STRANGERS = (
    *("@", "@@nogroup", "@65534", "@0", "@root", "@nogroup2", "@NOGROUP", "@{account}", "{account}", "nobod"),
    *("*", "@*", "?????[a-z]", "[0-9]*", "@no[g]roup", "$USER", "~nobody", "no body", "@no group", "nobody:"),
)
"""Owners that accept nobody, though files of these names lie where bash starts."""


@pytest.mark.parametrize("owners", STRANGERS)
def test_owners_are_names_and_nothing_else(published: Path, project: Path, owners: str) -> None:
    for name in ("nobody", str(NOBODY), "@nogroup", "@"):
        (project / name).touch()
    for path in (published, published.resolve().parent):
        os.chown(path, NOBODY, GROUP, follow_symlinks=False)
    published.resolve().parent.chmod(0o755)
    assert judged(project, published, owners) == "refused"


def test_a_word_of_a_group_s_name_is_no_group(published: Path, project: Path) -> None:
    """Organisations have `domain users`, whose members no `@users` accepts; `id` is a stand-in."""
    os.chown(published, NOBODY, GROUP, follow_symlinks=False)
    groups = r"id() { [[ $1 == *z* ]] && printf 'domain users\0other\0' || echo domain users other; }"
    script = f'{groups}; _hpc_judge "$LINK"; echo "$_hpc_verdict $_hpc_reason"'
    for owner, verdict in {"@users": "refused", "@domain": "refused", "@other": "stale"}.items():
        answer = bash_as(USER, script, project, LINK=str(published), HPC_OWNERS=owner).stdout
        assert ("not among the owners" in answer) == (verdict == "refused"), (owner, answer)
