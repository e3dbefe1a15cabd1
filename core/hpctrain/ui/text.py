"""Text by cells, and numbers, times and sizes in the words people read."""

from __future__ import annotations

import math
import time

UNKNOWN = "?"
ABSENT = "-"
"""Not applicable; never shown as 0 or as a blank."""

_JOINERS = "\u200c\u200d"
_EMOJI_STYLE = "\ufe0f"
_FOLDED = {
    "…": "..",
    "→": "->",
    "\N{MULTIPLICATION SIGN}": "x",
    "✓": "ok",
    "✗": "FAIL",
    "┤": "|",
    "│": "|",
    "└": "+",
    "●": "*",
    "°": "",
}
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def clean(text: str) -> str:
    """`text` on one line, without escapes, controls and bidi marks that would steer a terminal."""
    if _is_clean(text):
        return text
    if "\x1b" in text or "\x9b" in text:
        text = _without_escapes(text)
    return text if _is_clean(text) else "".join(map(_visible, text))


def _is_clean(text: str) -> bool:
    return text.isprintable() and _EMOJI_STYLE not in text


def _without_escapes(text: str) -> str:
    import re  # only hostile or coloured text pays for it

    string = r"(?:\x1b[\]P_^X])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    return re.sub(rf"{string}|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?", "", text)


def _visible(char: str) -> str:
    if char == _EMOJI_STYLE:
        return ""  # terminals disagree on the width that it gives to the letter before
    if char.isprintable() or char in _JOINERS:
        return char
    if char.isspace():
        return " "
    from unicodedata import category

    return "" if category(char) in ("Cc", "Cf") else "?"


def fold(text: str) -> str:
    """Our own symbols in ASCII; other letters stay, for they belong to the user."""
    return text if text.isascii() else "".join(_FOLDED.get(char, char) for char in text)


def cells(text: str) -> int:
    """How many columns of a terminal `text` takes."""
    return len(text) if text.isascii() else sum(map(_cell, text))


def _cell(char: str) -> int:
    if char < "\u0300":
        return 1
    from unicodedata import category, east_asian_width

    if "\u1160" <= char <= "\u11ff" or "\ud7b0" <= char <= "\ud7ff":
        return 0  # Hangul vowels and finals join the letter before
    if category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(char) in "WF" else 1


def pad(text: str, width: int, right: bool = False) -> str:
    """`text` filled with spaces to `width` cells; `right` puts them in front."""
    space = " " * (width - cells(text))
    return space + text if right else text + space


def head(text: str, width: int) -> str:
    """The longest beginning of `text` that fits in `width` cells."""
    taken = 0
    for index, char in enumerate(text):
        taken += _cell(char)
        if taken > width:
            return text[:index]
    return text


def tail(text: str, width: int) -> str:
    """The longest end of `text` that fits; never starts with a mark that lost its letter."""
    taken, start = 0, len(text)
    for index in range(len(text) - 1, -1, -1):
        cell = _cell(text[index])
        taken += cell
        if taken > width:
            break
        if cell:
            start = index
    return text[start:]


def clip(text: str, width: int, mark: str = "…") -> str:
    """`text` in at most `width` cells, its middle replaced by `mark`: both ends of a path tell."""
    if cells(text) <= width:
        return text
    room = width - cells(mark)
    if room < 1:
        return head(mark, width)
    return head(text, room - room // 2) + mark + tail(text, room // 2)


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` cells, broken at spaces; a longer word is broken inside."""
    if cells(text) <= width:
        return [text]
    lines = [""]
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if cells(joined) <= width:
            lines[-1] = joined
            continue
        remaining = word
        while remaining:
            part = head(remaining, width) or remaining[0]
            lines.append(part)
            remaining = remaining[len(part) :]
    return lines if lines[0] else lines[1:]


def reflow(text: str, width: int) -> list[str]:
    """Paragraphs as lines of at most `width` cells; lines that are set in stay as they are."""
    lines: list[str] = []
    paragraph: list[str] = []
    for line in (*text.splitlines(), ""):
        if line and not line[0].isspace():
            paragraph.append(line)
            continue
        if paragraph:
            lines += wrap(" ".join(paragraph), width)
            paragraph = []
        lines.append(line)
    return lines[:-1]


def duration(seconds: float | None, *, rough: bool = False) -> str:
    """`41s`, `3m12s`, `1h30m`, `2d04h`; `rough` says whole minutes from one minute on."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    left = max(0, int(seconds))
    if rough and left >= 60:
        left = int(seconds / 60 + 0.5) * 60
    for (unit, size), (below, part) in (
        (("d", 86400), ("h", 3600)),
        (("h", 3600), ("m", 60)),
        (("m", 60), ("s", 1)),
    ):
        if left >= size:
            remainder = left % size // part
            return f"{left // size}{unit}{remainder:02}{below}" if remainder else f"{left // size}{unit}"
    return f"{left}s"


def hours(number: float | None) -> str:
    """Node-hours: `6,912`, `11`, `0.3`, `<0.1`."""
    if number is None:
        return ABSENT
    if 0 < number < 0.05:
        return "<0.1"
    return f"{number:,.{1 if number < 9.95 else 0}f}"


def age(then: float | None, now: float) -> str:
    """`5m ago`, `3h ago`, `yesterday`, `Tue 02:14`, then the date; local time."""
    if then is None:
        return UNKNOWN
    past = now - then
    if past < 1:
        return "now"
    if past < 60:
        return f"{int(past)}s ago"
    if past < 3600:
        return f"{int(past // 60)}m ago"
    day, today = time.localtime(then), time.localtime(now)
    noon = (today.tm_year, today.tm_mon, today.tm_mday - 1, 12, 0, 0, 0, 0, -1)
    if past < 12 * 3600 or day[:3] == today[:3]:
        return f"{int(past // 3600)}h ago"
    if day[:3] == time.localtime(time.mktime(noon))[:3]:
        return "yesterday"
    if past < 6 * 86400:
        return f"{_DAYS[day.tm_wday]} {day.tm_hour:02}:{day.tm_min:02}"
    return f"{day.tm_year:04}-{day.tm_mon:02}-{day.tm_mday:02}"


def size(count: float | None) -> str:
    """Decimal bytes: `512 B`, `21 MB`, `16.1 GB`."""
    if count is None:
        return UNKNOWN
    number, unit = _scaled_bytes(count, count)
    return f"{number} {unit}"


def size_of(done: float, total: float) -> str:
    """`10.2 of 16.1 GB`: both in the unit of the total."""
    number, _ = _scaled_bytes(done, total)
    return f"{number} of {size(total)}"


def _scaled_bytes(count: float, scale: float) -> tuple[str, str]:
    for unit, unit_size, full in (("B", 1.0, 999.5), ("kB", 1e3, 999.5), ("MB", 1e6, 999.5)):
        if abs(scale) < full * unit_size:
            small = unit == "MB" and abs(scale) < 9.95e6
            return f"{count / unit_size:.{int(small)}f}", unit
    for unit, unit_size in (("GB", 1e9), ("TB", 1e12)):
        if abs(scale) < 999.95 * unit_size:
            return f"{count / unit_size:.1f}", unit
    return f"{count / 1e15:,.1f}", "PB"


def count(number: int | None) -> str:
    """A whole number with commas: `14,802`."""
    return UNKNOWN if number is None else f"{number:,}"


def amount(number: float | None) -> str:
    """Parameters and tokens: `8.03 B`, `41.9 M`, `0.8 M`; small ones in full."""
    if number is None:
        return UNKNOWN
    if abs(number) < 1e5:
        return f"{number:,.0f}"
    if abs(number) < 999_500:
        return f"{number / 1e6:.1f} M"
    for unit, unit_size in (("M", 1e6), ("B", 1e9)):
        if abs(number) < 999.5 * unit_size:
            return f"{_three_digits(number / unit_size)} {unit}"
    return f"{_three_digits(number / 1e12)} T"


def short(number: float | None) -> str:
    """For narrow places: `274k`, `48.1k`, `6k`, `1.2M`."""
    if number is None:
        return UNKNOWN
    for unit, unit_size in (("", 1.0), ("k", 1e3), ("M", 1e6), ("B", 1e9)):
        if abs(number) < 999.5 * unit_size:
            digits = _three_digits(number / unit_size)
            return (digits.rstrip("0").rstrip(".") if "." in digits else digits) + unit
    return f"{number / 1e12:,.0f}T"


def _three_digits(value: float) -> str:
    places = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:,.{places}f}"


def percent(share: float | None, *, places: int = 0, narrow: bool = False) -> str:
    """A share as per cent: `30 %`; `narrow`: `30%`."""
    if share is None or not math.isfinite(share):
        return UNKNOWN
    return f"{share * 100:.{places}f}{'' if narrow else ' '}%"


def number(value: float | None, digits: int = 4) -> str:
    """A measured value in `digits` significant digits: `1.214`, `1,912`, `1.4e-4`."""
    if value is None:
        return UNKNOWN
    if value == 0 or not math.isfinite(value):
        return str(value).removesuffix(".0")
    exponent = math.floor(math.log10(abs(value)))
    if -4 < exponent < 9:
        return f"{value:,.{max(0, digits - 1 - exponent)}f}"
    mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(power)}"
