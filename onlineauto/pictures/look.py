"""``Look``: the colours and settings of all pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Colours of a picture."""

    paper: str  # Background; text; secondary text; grid and frames.
    ink: str
    quiet: str
    line: str
    # A champion; a challenger that became champion; one that was replaced; one that was proved worse.
    champion: str
    rising: str
    waiting: str
    worse: str
    series: tuple[str, ...]  # Colours for parallel items, which a colour-blind reader can distinguish.

    def settings(self) -> dict[Any, Any]:
        """Return the settings of matplotlib for these colours."""
        from matplotlib.rcsetup import cycler

        return {
            "axes.axisbelow": True,
            "axes.edgecolor": self.line,
            "axes.facecolor": self.paper,
            "axes.grid": True,
            "axes.labelcolor": self.quiet,
            "axes.labelsize": 9,
            "axes.linewidth": 0.8,
            "axes.prop_cycle": cycler(color=self.series),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlelocation": "left",
            "axes.titlesize": 10,
            "axes.titlecolor": self.ink,
            "axes.formatter.use_mathtext": False,
            "figure.facecolor": self.paper,
            "font.family": "DejaVu Sans",
            "font.size": 9,
            "grid.color": self.line,
            "grid.linewidth": 0.6,
            "legend.fontsize": 8.5,
            "legend.frameon": False,
            "legend.labelcolor": self.ink,
            "lines.linewidth": 1.8,
            "savefig.facecolor": self.paper,
            "svg.hashsalt": "onlineauto",
            "text.color": self.ink,
            "text.parse_math": False,
            "xtick.color": self.line,
            "xtick.labelcolor": self.quiet,
            "ytick.color": self.line,
            "ytick.labelcolor": self.quiet,
            "xtick.labelsize": 8.5,
            "ytick.labelsize": 8.5,
        }


LIGHT: Final = Look(
    paper="#ffffff",
    ink="#1f2328",
    quiet="#59636e",
    line="#d9dee3",
    champion="#1f6feb",
    rising="#8fbcf5",
    waiting="#c3cad1",
    worse="#e8a598",
    series=("#1f6feb", "#d9730d", "#1a8754", "#9a5bd1", "#c2337a", "#6b7682", "#b58900", "#0f8b8d"),
)
"""On white paper."""

DARK: Final = Look(
    paper="#0d1117",
    ink="#e6edf3",
    quiet="#9198a1",
    line="#2a313a",
    champion="#4493f8",
    rising="#2c5a97",
    waiting="#3d444d",
    worse="#8a4a40",
    series=("#4493f8", "#f0883e", "#3fb950", "#b787f0", "#f06fa7", "#9198a1", "#d4a72c", "#39c5cf"),
)
"""On dark paper."""
