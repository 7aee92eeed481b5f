"""A search begins with the champion of another model, or with interactions of one's own."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlineauto import AutoML, AutoMLClassifier, AutoMLRegressor, InputError, OptionError, Workspace
from onlineauto.interop import event_text, read_vw_model, write_vw_model
from onlineauto.interop.vw.model import read_model
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.warm_start import challenge, search_from
from tests.api.events import ACTIONS, context, logged, saved, serve


def _texts(n: int = 300) -> list[str]:
    events = list(logged(n))
    for event in events:
        event["cost"] = -event.pop("reward")
    return list(map(event_text, events))


def _same_predictions(one: Any, other: Any) -> bool:
    texts = [re.sub(r"^0:\S+ ", "", text, flags=re.MULTILINE) for text in _texts(30)]
    return all((one.predict(text) == other.predict(text)).all() for text in texts)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"quadratic": "::"},
        {"quadratic": "ua", "learning_rate": 0.2},
        {"quadratic": "au", "cubic": "unp"},
        {"experimental_full_name_interactions": "user|article"},
        {"interactions": "uat", "l2": 1e-4},
        {"automl": 4, "default_lease": 50, "predict_with": "champion"},
        {"automl": 2, "oracle_type": "one_diff", "default_lease": 50, "predict_with": "champion"},
    ],
    ids=str,
)
def test_the_champion_repeats_its_predictions(options: dict[str, Any]) -> None:
    old = Workspace(cb_explore_adf=True, **options).fit(_texts())
    explorer = None if "automl" in options else "greedy"
    bandit = AutoML(explorer=explorer, l2=options.get("l2")).warm_start(saved(old))
    assert _same_predictions(bandit.workspace, old)
    assert bandit.champion.learning_rate == pytest.approx(options.get("learning_rate", 0.5))
    serve(bandit, 900)
    assert bandit.predict(context(1), ACTIONS).argmax() == 1
    assert len(bandit.workspace.estimates) == 4  # the search goes on


@pytest.mark.parametrize("explorer", ["squarecb", None])
def test_another_explorer_keeps_the_predictions_of_the_old_model(explorer: str | None) -> None:
    old = Workspace(cb_adf=True, quadratic="ua").fit(_texts())
    bandit = AutoML(explorer=explorer).warm_start(saved(old))
    costs = old.predict("shared |user user=tom\n|article article=x\n|article article=y\n")
    pmf = bandit.workspace.predict("shared |user user=tom\n|article article=x\n|article article=y\n")
    assert np.argmax(pmf) == np.argmin(costs)
    assert max(pmf) > 0.6  # by default too, though the errors of the old model are unknown


def test_models_of_vw_can_start_a_search(tmp_path: Path) -> None:
    path = tmp_path / "vw.model"
    old = Workspace(cb_explore_adf=True, vw_exact=True, quadratic="ua", epsilon=0.05).fit(_texts())
    write_vw_model(old, path)
    names = ["user", "article", "price", "new", "tags"]
    bandit = AutoML(explorer="greedy").warm_start(path, namespaces=names)
    assert bandit.champion.interactions == ("user*article",)
    assert _same_predictions(bandit.workspace, old)
    for source in (path, path.read_bytes()):
        with pytest.raises(InputError, match=r"is one of Vowpal Wabbit: AutoML\(\).warm_start"):
            AutoML.load(source)


def _thousandth(label: re.Match[str]) -> str:
    return f"0:{0.001 * float(label[1])}:"


def test_a_model_of_vw_decides_at_once_as_well_as_it_has_learnt(tmp_path: Path) -> None:
    path = tmp_path / "vw.model"
    old = Workspace(cb_explore_adf=True, vw_exact=True, quadratic="ua").fit(_texts())
    write_vw_model(old, path)
    event = "shared |user user=tom\n|article article=x\n|article article=y\n"
    best = int(old.predict(event).argmax())
    for explorer in (None, "regcb"):
        bandit = AutoML(explorer=explorer).warm_start(path, namespaces=["user", "article"])
        pmf = bandit.workspace.predict(event)
        assert pmf[best] > 0.8
    scaled = Workspace(cb_explore_adf=True, vw_exact=True, quadratic="ua")
    scaled.fit([re.sub(r"^0:(\S+?):", _thousandth, text, flags=re.MULTILINE) for text in _texts()])
    assert scaled.label_range[0] == pytest.approx(0.001 * old.label_range[0])
    write_vw_model(scaled, path)
    bandit = AutoML().warm_start(path, namespaces=["user", "article"])
    assert bandit.workspace.predict(event)[best] > 0.8


def _model_of_vw(path: Path, names: str) -> None:
    """Write a model of VW that has learnt JSON (vw), or text with user=a (columns)."""
    made = Workspace(cb_explore_adf=True, vw_exact=True, quadratic="UP", json=names == "vw")
    for user, page in [*product("ab", "xy")] * 40:
        cost = -float(user + page in ("ax", "by"))
        if names == "vw":
            label = {"_label_cost": cost, "_label_probability": 0.5, "_labelIndex": "xy".index(page)}
            row = label | {"User": {"user": user}, "_multi": [{"Page": {"page": each}} for each in "xy"]}
            made.learn(json.dumps(row))
        else:
            labels = {page: f"0:{cost}:0.5 "}
            pages = "".join(f"{labels.get(each, '')}|Page page={each}\n" for each in "xy")
            made.learn(f"shared |User user={user}\n{pages}")
    write_vw_model(made, path)


@pytest.mark.parametrize("names", ["vw", "columns"])
def test_dicts_need_the_rule_by_which_vw_made_names(tmp_path: Path, names: str) -> None:
    path = tmp_path / "vw.model"
    _model_of_vw(path, names)
    actions = [{"Page": {"page": "x"}}, {"Page": {"page": "y"}}]
    contexts = [{"User": {"user": user}} for user in "ab"]
    bandit = AutoML().warm_start(path, namespaces=["User", "Page"])
    again = AutoML.load(saved(bandit))
    exact = read_vw_model(path)
    for model in (bandit, again):
        with pytest.raises(InputError, match=r"does not record how its names were made: .*names='vw'"):
            model.rank(contexts[0], actions)
        with pytest.raises(InputError, match="does not record how its names were made"):
            model.workspace.predict({"context": contexts[0], "actions": actions})
        with pytest.raises(InputError, match="does not record how its names were made"):
            model.fit(json.dumps({**contexts[0], "_multi": actions}).encode() + b"\n")
    with pytest.raises(InputError, match="does not record how its names were made"):
        exact.predict({"context": contexts[0], "actions": actions})
    with pytest.raises(InputError, match="names of Vowpal Wabbit's JSON"):
        read_vw_model(path, json=True).predict({"context": contexts[0], "actions": actions})
    known = AutoML(names=names).warm_start(path, namespaces=["User", "Page"])
    exact = read_vw_model(path, names=names, json=True)
    for best, context_ in enumerate(contexts):
        text = json.dumps({**context_, "_multi": actions})
        assert exact.predict(text).argmax() == best
        if names == "columns":
            assert known.workspace.predict({"context": context_, "actions": actions}).argmax() == best
            loaded = Workspace.load(saved(again), json=True, names=names)
            assert loaded.predict(text).argmax() == best


def test_a_declared_namespace_that_no_event_has_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "vw.model"
    write_vw_model(Workspace(cb_explore_adf=True, vw_exact=True, quadratic="ua").fit(_texts()), path)
    bandit = AutoML().warm_start(path, namespaces=["user", "article", "zzz"])
    with pytest.warns(UserWarning, match=r"^no event of the first 300 has the namespace zzz, .* article, "):
        bandit.fit(_texts())
    bandit.fit(_texts())  # without another warning
    AutoML().warm_start(path, namespaces=["user", "article"]).fit(_texts())


def test_a_misspelt_first_interaction_is_reported() -> None:
    rows = [{"rooms": 1 + k % 4, "town": ("Ulm", "Bonn")[k % 2]} for k in range(1100)]
    labels = [row["rooms"] for row in rows]
    for make in (AutoMLRegressor, AutoMLClassifier):
        for live_configs in (4, None):
            model = make(begin_with=["rooms*twon"], live_configs=live_configs)
            with pytest.warns(
                UserWarning, match=r"^no event of the first 300 has the namespace twon, "
            ) as found:
                model.fit(rows[:300], labels[:300])
            assert str(found[0].message).endswith(" names; they have rooms, rooms bins, town")
            model.fit(rows[:300], labels[:300])  # without another warning
    with pytest.warns(UserWarning, match=r"first 1,024 has the namespace twon, "):
        AutoMLRegressor(begin_with=["rooms*twon"]).fit(rows, labels)
    AutoMLRegressor(begin_with=["rooms*town"]).fit(rows, labels)
    with pytest.warns(
        UserWarning, match=r"first 300 has the namespace usr, which begin_with or .* article, "
    ):
        AutoML(begin_with=["usr*article"]).fit(_texts())


def test_unknown_namespaces_of_a_model_are_requested(tmp_path: Path) -> None:
    path = tmp_path / "vw.model"
    old = Workspace(cb_explore_adf=True, vw_exact=True, quadratic="::").fit(_texts())
    write_vw_model(old, path)
    with pytest.raises(OptionError, match=r"crosses '::', .* namespaces=\[…\]\) takes them"):
        AutoML().warm_start(path)
    names = ["user", "article", "price", "new", "tags"]
    bandit = AutoML(explorer="greedy").warm_start(path, namespaces=names)
    assert _same_predictions(bandit.workspace, old)


def test_letters_become_the_namespaces_that_begin_with_them(tmp_path: Path) -> None:
    path, log = tmp_path / "vw.model", tmp_path / "log.txt"
    old = Workspace(cb_explore_adf=True, vw_exact=True, quadratic="ua", epsilon=0.05).fit(_texts())
    write_vw_model(old, path)
    with pytest.raises(
        OptionError, match="cannot use --quadratic ::: the model was made with --quadratic ua"
    ):
        read_vw_model(path.read_bytes(), quadratic="::")
    with pytest.raises(OptionError, match=r"crosses 'ua', .* namespaces=\[…\]\) takes them"):
        AutoML().warm_start(path)
    log.write_text("\n".join(_texts()))
    options = "--automl 2 --predict_with champion --epsilon 0.05"
    search = search_from(read_model(path), REGISTRY.parse(f"-d {log} {options}"))
    assert search.searching.interactions(0) == ((b"user", b"article"),)
    assert _same_predictions(search, old)
    running = Workspace(cb_explore_adf=True, live_configs=2).fit(_texts())
    live = challenge(running, read_model(path))
    assert running.searching.interactions(live) == ((b"user", b"article"),)


def test_the_table_has_to_have_as_many_rows() -> None:
    old = Workspace(cb_explore_adf=True, bit_precision=20)
    with pytest.raises(OptionError, match=r"a table of 1048576 rows, .* make this model with hash_bits=20"):
        AutoML().warm_start(saved(old))
    AutoML(hash_bits=20).warm_start(saved(old))


def test_weights_have_to_mean_the_same() -> None:
    with pytest.raises(OptionError, match="was made with hash_seed=3: make this model with it"):
        AutoML().warm_start(saved(Workspace(cb_explore_adf=True, hash_seed=3)))
    with pytest.raises(OptionError, match="learns events of kind simple"):
        AutoML().warm_start(saved(Workspace()))
    bandit = AutoML()
    serve(bandit, 3)
    with pytest.raises(OptionError, match="has learnt already"):
        bandit.warm_start(saved(Workspace(cb_explore_adf=True)))
    with pytest.raises(OptionError, match="needs a model that searches"):
        AutoML(live_configs=None).warm_start(saved(Workspace(cb_explore_adf=True)))
    with pytest.raises(
        OptionError, match=r"crosses user\*article\*tags\*price: a search crosses two or three"
    ):
        AutoML().warm_start(saved(Workspace(cb_explore_adf=True, interactions="uatp").fit(_texts())))
    with pytest.raises(InputError, match="cannot read the model no/such"):
        AutoML().warm_start("no/such")
    with pytest.raises(InputError):
        AutoML().warm_start(b"what is this")


def test_a_search_begins_with_interactions_of_ones_own() -> None:
    bandit = AutoML(begin_with=["user*article"])
    serve(bandit, 60)
    assert bandit.champion.interactions == ("article*user",)
    plain = AutoML()
    serve(plain, 60)
    assert len(plain.champion.interactions) > 1
    without = AutoML(begin_with=["user*article"], live_configs=None)
    serve(without, 60)
    assert without.champion.interactions == ("user*article",)
    assert without.predict(context(0), ACTIONS).argmax() == 0
    with pytest.raises(OptionError, match="'user' is not an interaction: name two or three"):
        AutoML(begin_with=["user"])
    with pytest.raises(OptionError, match="3 is not an interaction"):
        AutoML(begin_with=[3])  # type: ignore[list-item]


def test_a_warm_started_model_is_saved_and_copied() -> None:
    old = Workspace(cb_explore_adf=True, quadratic="ua").fit(_texts())
    bandit = AutoML(seed=3).warm_start(saved(old))
    again = AutoML.load(saved(bandit))
    assert serve(again, 600) == serve(bandit, 600)
    assert again.history == bandit.history


def test_the_history_begins_with_the_first_champion() -> None:
    bandit = AutoML(begin_with=["user*article"])
    assert [each["decision"] for each in bandit.history] == ["widen", "rotate"]
    assert bandit.history[1]["elements"] == [["article", "user"]]
