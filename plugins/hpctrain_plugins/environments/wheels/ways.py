"""What differs between the technologies: how a prefix begins, and who installs into it."""

from __future__ import annotations

from hpctrain.plugin import Cmd, Join, Loc, Var, Word
from hpctrain_plugins.environments.wheels import lists
from hpctrain_plugins.environments.wheels.packages_spec import PackagesSpec, interpreter, step_file


class Way:
    """venv: a prefix that borrows another Python's standard library, filled by pip."""

    name = "venv"
    program: tuple[str, ...] = ()
    """What the technology takes from the index for itself."""
    housed = False
    """It installs from a wheel house even where the network is."""

    def fetch(self, spec: PackagesSpec, house: Word) -> tuple[Cmd, ...]:
        """What the house holds besides wheels."""
        return ()

    def bare(self, spec: PackagesSpec, prefix: Word, house: Loc | None) -> tuple[Cmd, ...]:
        """A prefix with a Python, in which something is built; nothing stands at its path before."""
        return (_venv(spec, prefix, "--without-pip"),)

    def begin(self, spec: PackagesSpec, prefix: Word, house: Loc | None) -> tuple[Cmd, ...]:
        """The prefix of the environment itself."""
        return (_venv(spec, prefix),)

    def pip(self, prefix: Word, *words: Word) -> Cmd:
        """A command of pip on the prefix."""
        return Cmd.of(Join(prefix, "/bin/python"), "-m", "pip", *words)

    def finish(self, prefix: Word) -> tuple[Cmd, ...]:
        """What is cleared away when everything is installed."""
        return ()


class Uv(Way):
    """uv: the same prefix, filled by the uv of the wheel house."""

    name = "uv"
    program = ("uv",)
    housed = True

    def fetch(self, spec: PackagesSpec, house: Word) -> tuple[Cmd, ...]:
        """A Python, where the site has none."""
        words = (Var("HPC_PYTHON"), "-m", "hpctrain_job.uv_python", house, spec.python)
        return (Cmd(words),) if spec.own_python else ()

    def bare(self, spec: PackagesSpec, prefix: Word, house: Loc | None) -> tuple[Cmd, ...]:
        """The same, with a copy of the Python that was fetched."""
        return (
            *_copied(spec, prefix, house),
            _venv(spec, prefix, "--without-pip", python=_python(spec, prefix)),
        )

    def begin(self, spec: PackagesSpec, prefix: Word, house: Loc | None) -> tuple[Cmd, ...]:
        """uv itself is a wheel: it comes from the house like everything else, by any Python's pip."""
        tool, python = Join(prefix, "/.uv"), _python(spec, prefix)
        words = ("install", "--quiet", "--no-deps", *lists.where(spec, house), "-r", step_file("uv.txt"))
        return (
            *_copied(spec, prefix, house),
            _venv(spec, tool, "--without-pip", python=python),
            Cmd.of(Join(tool, "/bin/python"), "-m", "hpctrain_job.pip", *words),
            Cmd.of(*self._uv(prefix), "venv", "--allow-existing", "--python", python, *_site(spec), prefix),
        )

    def pip(self, prefix: Word, *words: Word) -> Cmd:
        """A command of uv with the words of pip's, and the prefix that it is for."""
        command, *arguments = words
        return Cmd.of(*self._uv(prefix), "pip", command, "--python", Join(prefix, "/bin/python"), *arguments)

    def finish(self, prefix: Word) -> tuple[Cmd, ...]:
        """Remove uv's own folder, which is not a part of the environment."""
        return (Cmd.of("rm", "-rf", Join(prefix, "/.uv")),)

    def _uv(self, prefix: Word) -> tuple[Word, ...]:
        cache = Join(prefix, "/.uv/cache")
        quiet = ("--quiet", "--no-config", "--no-python-downloads")
        return (Join(prefix, "/.uv/bin/uv"), *quiet, "--cache-dir", cache)


class Conda(Way):
    """conda: a prefix with a Python of its own, filled by the pip in it."""

    name = "conda"

    def __init__(self, program: str, channels: tuple[str, ...], specs: tuple[str, ...]) -> None:
        self.conda, self.channels, self.specs = program, channels, specs

    def fetch(self, spec: PackagesSpec, house: Word) -> tuple[Cmd, ...]:
        """The packages for a place without network, as conda unpacks them there."""
        where = ("env", Join("CONDA_PKGS_DIRS=", house, "/conda"))
        create = (*where, self.conda, "create", "--yes", "--quiet", "--download-only")
        package_arguments = (*self._channels(), *self._specs(spec))
        return (Cmd.of(*create, "--prefix", Join(house, "/.prefix"), *package_arguments),)

    def bare(self, spec: PackagesSpec, prefix: Word, house: Loc | None) -> tuple[Cmd, ...]:
        """A prefix without the packages: as `begin` makes it, since its Python is conda's."""
        return self.begin(spec, prefix, house)

    def begin(self, spec: PackagesSpec, prefix: Word, house: Loc | None) -> tuple[Cmd, ...]:
        """A prefix by path; a name would land in the home folder."""
        create = (self.conda, "create", "--yes", "--quiet")
        if house is None:
            return (Cmd.of(*create, "--prefix", prefix, *self._channels(), *self._specs(spec)),)
        # By their files: a solver would want the channel's index again.
        files = ("(", "-name", "*.conda", "-o", "-name", "*.tar.bz2", ")")
        cache = Join("CONDA_PKGS_DIRS=", prefix, ".pkgs")
        every: tuple[Word, ...] = ("find", house / "conda", "-maxdepth", "1", *files, "-exec", "env", cache)
        return (
            Cmd.of(*every, *create, "--offline", "--prefix", prefix, "{}", "+"),
            Cmd.of("rm", "-rf", Join(prefix, ".pkgs")),
        )

    def _channels(self) -> tuple[str, ...]:
        return ("--override-channels", *(f"--channel={name}" for name in self.channels))

    def _specs(self, spec: PackagesSpec) -> tuple[str, ...]:
        return (f"python={spec.python}", "pip", *self.specs)


def _venv(spec: PackagesSpec, prefix: Word, *flags: str, python: Word = "") -> Cmd:
    return Cmd.of(python or interpreter(spec), "-m", "venv", *_site(spec), *flags, prefix)


def _copied(spec: PackagesSpec, prefix: Word, house: Loc | None) -> tuple[Cmd, ...]:
    """The Python of the house inside the prefix, which outlives the house."""
    if not spec.own_python or house is None:
        return ()
    return Cmd.of("mkdir", "-p", prefix), Cmd.of("cp", "-R", house / "python", Join(prefix, "/.python"))


def _python(spec: PackagesSpec, prefix: Word) -> Word:
    return Join(prefix, f"/.python/bin/python{spec.python}") if spec.own_python else interpreter(spec)


def _site(spec: PackagesSpec) -> tuple[str, ...]:
    return ("--system-site-packages",) if spec.options.system_site else ()
