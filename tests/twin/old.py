"""Stand-ins for what a site's system has in /usr/bin: a Python and compilers that are too old.

They are first on the path of every user, on login and compute nodes. No such old version can be had for the
twin's Debian, so each says the version and refuses what that version would refuse; root, who is the site
itself, gets Debian's.
"""

from __future__ import annotations

from tests.twin.site_file import Overlay

PYTHON = """\
#!/bin/bash
# A stand-in for the system's Python VERSION, which has no pip: it says its version and runs nothing.
((EUID)) || exec /usr/bin/python3 "$@"
case "${1:-} ${2:-}" in
  "-V "* | "--version "*) echo "Python VERSION" ;;
  "-m pip") echo "/usr/bin/python3: No module named pip" >&2; exit 1 ;;
  *) echo "/usr/bin/python3: a stand-in for the system's Python VERSION: it runs nothing" >&2; exit 1 ;;
esac
"""
COMPILER = """\
#!/bin/bash
# A stand-in for the system's gcc VERSION: what later ones brought it refuses, else it is Debian's.
((EUID)) || exec /usr/bin/NAME "$@"
for word in "$@"; do
  case $word in
    --version) echo "NAME (SUSE Linux) VERSION"; exit ;;
    -dumpversion) echo "VERSION" | cut -d. -f1; exit ;;
    -dumpfullversion) echo "VERSION"; exit ;;
    -std=c++2* | -std=gnu++2* | -std=c17 | -std=gnu17 | -std=c2*)
      echo "NAME: error: unrecognized command line option '$word'" >&2
      exit 1 ;;
    *.cc | *.cpp | *.cxx | *.cu)
      if grep -qE '#include *<(filesystem|torch/|ATen/)' "$word"; then
        echo "$word: fatal error: gcc VERSION is too old for what it includes (a stand-in)" >&2
        exit 1
      fi ;;
  esac
done
exec /usr/bin/NAME "$@"
"""
COMPILERS = ("gcc", "cc", "g++", "c++")


def files(overlay: Overlay) -> dict[str, str]:
    """The programs by name, of those whose versions the overlay says."""
    programs = {}
    if overlay.system_python:
        programs["python3"] = PYTHON.replace("VERSION", overlay.system_python)
    if overlay.system_gcc:
        text = COMPILER.replace("VERSION", overlay.system_gcc)
        programs |= {name: text.replace("NAME", name) for name in COMPILERS}
    return programs
