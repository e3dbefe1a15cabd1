"""One plugin manager per run: plugins are registered in order of priority, calls are attributed."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Generator, Iterable
from types import ModuleType, SimpleNamespace
from typing import Any

import attrs
import pluggy

from hpctrain.errors import HpctrainError, PluginError, Problem, Span
from hpctrain.hooks import specs
from hpctrain.hooks.results import WrongResult, checked, stamped
from hpctrain.hooks.scan import Entry
from hpctrain.hooks.values import WrongValue

NO_WRAPPERS = ("configure_network", "surround")
"""Hooks whose every value is attributed to who set it, which a wrapper would blur."""
OURS = (KeyboardInterrupt, GeneratorExit)
"""What ends a hook, and is not its fault."""


class Guarded(SimpleNamespace):
    """The watched hooks of one plugin; two plugins without any are still two."""

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __dir__(self) -> list[str]:
        return list(vars(self))  # pluggy looks at every name that it is told


class Hooks:
    """The plugins of one run and the only way to call them."""

    def __init__(self, *, trace: bool = False, disabled: Iterable[str] = ()) -> None:
        self._manager = pluggy.PluginManager(specs.PROJECT)
        self._manager.add_hookspecs(specs)
        self._trace = trace
        self._disabled = frozenset(disabled)
        self.plugins: list[str] = []
        self.files: dict[str, str] = {}
        """Plugin -> the file that it was loaded from."""
        self.warnings: list[Problem] = []

    def add(self, entry: Entry, plugin: object) -> None:
        """Register a plugin; a misspelt hook or argument is an error that names it."""
        if entry.name in self._disabled and entry.kind == "hooks":
            return
        try:
            self._manager.register(self._guarded(entry, plugin), entry.id)
        except pluggy.PluginValidationError as error:
            raise PluginError.of(
                "plugin-hook",
                f"{entry.label}: {_short(error)}",
                where=entry.module,
                hint="hpctrain help hooks",
            ) from error
        except ValueError as error:
            raise PluginError.of("plugin-duplicate", f"{entry.label} is registered twice") from error
        self.plugins.append(f"{entry.id} ({entry.distribution} {entry.version})")
        self.files[entry.id] = str(getattr(plugin, "__file__", ""))

    def call(self, hook: str, **arguments: Any) -> Any:
        """The answer of a first-answer hook (or None), or every answer, lowest priority first."""
        answer = getattr(self._manager.hook, hook)(**arguments)
        if isinstance(answer, list):
            return tuple(item for item in reversed(answer) if item is not None)
        return answer

    def answers(self, hook: str, besides: str = "-") -> bool:
        """Whether anybody but those of this kind answers: what only they need is not fetched for nothing."""
        implementations = getattr(self._manager.hook, hook).get_hookimpls()
        return any(not impl.plugin_name.startswith(besides) for impl in implementations)

    def need(self, hook: str, **arguments: Any) -> Any:
        """Like `call`, but somebody must answer."""
        answer = self.call(hook, **arguments)
        if answer is None:
            plugins = ", ".join(p for p in self.plugins if not p.startswith("core:"))
            raise PluginError.of("no-answer", f"no plugin of this run answers {hook}; asked: {plugins}")
        return answer

    def tell(self, **arguments: Any) -> None:
        """Tell the observers one by one; an error there is a warning, never the end of a run."""
        for impl in self._manager.hook.job_event.get_hookimpls():
            try:
                impl.function(*(arguments[name] for name in impl.argnames))
            except HpctrainError as error:  # noqa: PERF203  (each observer must be told)
                self.warnings += error.problems

    def _guarded(self, entry: Entry, plugin: object) -> Guarded:
        """The plugin's hooks, each watched, so that an error or a wrong result names its author."""
        guarded = Guarded()
        for name in _candidates(plugin):
            options = self._manager.parse_hookimpl_opts(plugin, name)
            if options is None:
                continue
            hook = options.get("specname") or name
            if not hasattr(specs, hook) and not options.get("optionalhook"):
                raise _unknown(entry, hook)
            wraps = options.get("wrapper") or options.get("hookwrapper")
            if wraps and hook in NO_WRAPPERS:
                raise PluginError.of(
                    "plugin-wrapper",
                    f"{entry.label}: {hook} cannot be wrapped; answer it, with tryfirst=True to win",
                )
            watch = watched_wrapper if wraps else watched
            function = watch(entry, hook, getattr(plugin, name), bool(options.get("tryfirst")), self._trace)
            function.hpctrain_impl = options
            setattr(guarded, name, function)
        return guarded


def _candidates(plugin: object) -> list[str]:
    """Where hooks may be: in a module only what is marked, because pluggy's look at each of its names
    costs as much CPU as Python's own start."""
    if isinstance(plugin, ModuleType):
        return [name for name, value in vars(plugin).items() if hasattr(value, f"{specs.PROJECT}_impl")]
    return dir(plugin)


def _source(entry: Entry) -> str:
    """The plugin as `--explain` names it: the word of the run file, with its kind where that helps."""
    return entry.name if entry.kind == "clusters" else f"{entry.kind}:{entry.name}"


def watched(entry: Entry, hook: str, function: Callable[..., Any], first: bool, trace: bool) -> Any:
    """`function`, its answer checked and stamped, its errors blamed on its plugin."""
    source = _source(entry)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            answer = stamped(checked(hook, function(*args, **kwargs)), source, first=first)
        except (HpctrainError, *OURS):
            raise
        except BaseException as error:  # a hook that ends the program has failed
            raise blamed(entry, hook, function, error) from error
        if trace:
            print(f"hpctrain: {source} {hook} -> {answer!r}", file=sys.stderr)
        return answer

    return call


def watched_wrapper(entry: Entry, hook: str, function: Callable[..., Any], first: bool, trace: bool) -> Any:
    """A wrapper, watched: an answer that it changed says so in its source."""
    source = _source(entry)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Generator[None, Any, Any]:
        inner = None
        try:
            wrapper = function(*args, **kwargs)
            next(wrapper)
            try:
                inner = yield
            except Exception as error:  # a wrapper may catch what it wraps
                answer = _finish(wrapper.throw, error)
            else:
                answer = _finish(wrapper.send, inner)
            answer = stamped(checked(hook, answer), source, first=first)
        except (HpctrainError, *OURS):
            raise
        except BaseException as error:  # a hook that ends the program has failed
            raise blamed(entry, hook, function, error) from error
        changed = answer != inner and getattr(answer, "source", "")
        if trace:
            print(f"hpctrain: {source} around {hook} -> {answer!r}", file=sys.stderr)
        return attrs.evolve(answer, source=f"{answer.source} + {source}") if changed else answer

    return call


def _finish(resume: Callable[[Any], Any], value: Any) -> Any:
    try:
        resume(value)
    except StopIteration as end:
        return end.value
    raise WrongResult("yielded more than once")


def blamed(entry: Entry, hook: str, function: Callable[..., Any], error: BaseException) -> HpctrainError:
    """The error of a hook: with its cure for a missing package, else with the plugin's file and line."""
    import traceback

    from hpctrain.hooks.packages import lacking  # no plan without a fault needs it

    if (missing := lacking(error, f"{entry.label} {hook}", entry.distribution)) is not None:
        return missing
    code = inspect.unwrap(function).__code__
    if isinstance(error, WrongValue):
        message = f"{hook}: {error}"
    elif isinstance(error, WrongResult):
        message = f"{hook} {error}"
    else:
        message = f"{hook} raised {type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    line = next((f.lineno for f in reversed(frames) if f.filename == code.co_filename), None)
    span = Span(file=code.co_filename, line=line or code.co_firstlineno)
    return PluginError.of("plugin", f"{entry.label}: {message}", span=span, source=_source(entry))


def _unknown(entry: Entry, hook: str) -> PluginError:
    import difflib

    near = difflib.get_close_matches(hook, [n for n in vars(specs) if not n.startswith("_")], 1)
    return PluginError.of(
        "plugin-hook",
        f"{entry.label}: there is no hook {hook}",
        where=entry.module,
        hint=f"def {near[0]}(…)" if near else "hpctrain help hooks",
    )


def _short(error: Exception) -> str:
    return " ".join(str(error).split())
