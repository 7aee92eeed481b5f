"""``draw_study``: draw a picture of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.pictures.studies import front_picture, study_picture
from onlineauto.tune.settings import UNLIMITED

if TYPE_CHECKING:
    from onlineauto.pictures import Picture
    from onlineauto.tune.study import Study


def draw_study(study: Study, *, title: str = "", dark: bool = False) -> Picture:
    """Draw the resources of trials, the best value so far, the configs, and the importance of parameters.

    With several objectives, draw the front in place of the first two.

    Parameters
    ----------
    study : Study
        The study.
    title : str
        Title of the picture; by default the name of the study.
    dark : bool
        True for a dark background.

    Raises
    ------
    InputError
        If no trial has a value.
    """
    space, history = study.space.described(), study.history()
    if study.settings.setting.max_resource >= UNLIMITED:  # a complete trial is drawn at the furthest step
        furthest = max((row["resource"] for row in history if row["resource"] < UNLIMITED), default=1)
        history = [{**row, "resource": min(row["resource"], furthest)} for row in history]
    if len(study.objectives) > 1:
        front = {trial.number for trial in study.best_trials}
        return front_picture(
            history,
            space,
            objectives=study.objectives,
            front=front,
            title=title or study.name,
            dark=dark,
        )
    return study_picture(history, space, mode=study.mode, title=title or study.name, dark=dark)
