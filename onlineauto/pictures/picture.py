"""``Picture``: a figure in the common style, which can be displayed and saved."""

from __future__ import annotations

import io
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import OptionError, install_hint
from onlineauto.pictures.look import DARK, LIGHT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure

    from onlineauto.pictures.look import Look

_ENDINGS: Final = (".svg", ".png", ".pdf")
_DOTS_PER_INCH: Final = 150
_LINE = 14 / 72
"""Height of a line of small text, in inches."""


class Picture:
    """A figure in the common style.

    Parameters
    ----------
    width, height : float
        Size in inches.
    title : str
        Title of the picture.
    note : str
        A sentence below the title.
    dark : bool
        True for a dark background.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
        The figure, which may be changed.
    look : Look
        The colours.
    """

    def __init__(
        self, width: float, height: float, *, title: str, note: str = "", dark: bool = False
    ) -> None:
        self.look: Look = DARK if dark else LIGHT
        with self.drawing():
            from matplotlib.figure import Figure

            self.figure: Figure = Figure(figsize=(width, height), layout="constrained")
            top = 1 - (0.5 + _LINE * note.count("\n") + (_LINE if note else 0)) / height
            self.figure.get_layout_engine().set(rect=(0, 0, 1, top), w_pad=0.08, h_pad=0.06)  # type: ignore[union-attr, call-arg]
            left = 0.1 / width
            self.figure.text(left, 1 - 0.12 / height, title, size=13, weight="bold", va="top")
            if note:
                self.figure.text(
                    left, 1 - 0.42 / height, note, size=9, color=self.look.quiet, va="top", linespacing=1.4
                )

    @contextmanager
    def drawing(self) -> Iterator[Look]:
        """Apply the colours and settings of this picture within the context."""
        import matplotlib as mpl

        with mpl.rc_context(self.look.settings()):
            yield self.look

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture in the format of the file's extension: .svg, .png or .pdf.

        Equal pictures have equal bytes.

        Raises
        ------
        OptionError
            The file has another extension.
        OSError
            The file cannot be written.
        """
        check_picture(path)
        ending = Path(path).suffix
        with Path(path).open("wb") as file:
            self._write(file, ending[1:])

    def _write(self, file: Any, kind: str) -> None:
        dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
        with self.drawing():
            self.figure.savefig(file, format=kind, dpi=_DOTS_PER_INCH, metadata=dated.get(kind))

    def _repr_svg_(self) -> str:
        """Return the picture as SVG for a notebook."""
        file = io.BytesIO()
        self._write(file, "svg")
        return file.getvalue().decode()


def check_picture(path: str | os.PathLike[str]) -> None:
    """Check that a picture can be drawn, before the computations for it.

    Raises
    ------
    OptionError
        If matplotlib is missing, or the file's extension is not .svg, .png or .pdf.
    """
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError:
        raise OptionError(f"pictures need matplotlib: {install_hint('plot')}") from None
    if Path(path).suffix not in _ENDINGS:
        raise OptionError(f"{os.fspath(path)}: the name of a picture ends with .svg, .png or .pdf")
