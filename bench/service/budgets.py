"""Reward and spending of a service that chooses one of four language models under a budget of dollars.

    python -m bench.service.budgets                # five budgets, five seeds: the table of the guide
    python -m bench.service.budgets --choose       # the same on the second half of the validation prompts

The data set is `datasets/llm-routes.npz` (ParetoBandit). The model begins warm: it has learnt the scores of
all four models for the validation prompts. The 1,793 test prompts come in random order. A request declares
what each model has cost in the mean for validation prompts of similar length, and reports what the chosen
model really costs, and its score. With `--cold`, nothing is learnt or declared before the first test prompt.
"""

from __future__ import annotations

import argparse
import io
import tempfile
import threading
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from datasets.llm_routes import LlmRoutes, load
from onlineauto import Workspace
from onlineauto.service.loop.front import ignore_completion
from onlineauto.service.loop.loop import Every, Loop
from onlineauto.service.ranking import RankRequest
from onlineauto.workspace.options import REGISTRY

BUDGETS: Final = (3e-4, 5e-4, 6.5e-4, 1e-3, 2e-3)
FLAGS: Final = "--cb_explore_adf --automl 4 --scaled_squarecb --epsilon 0.002"
_LENGTHS = 8


class Result(NamedTuple):
    """The scores and dollars of the decisions of a run, and the shares of the models."""

    reward: np.ndarray
    cost: np.ndarray
    chosen: np.ndarray


@cache
def routes_of(choose: bool) -> tuple[LlmRoutes, np.ndarray, np.ndarray]:
    """Return the data, and which prompts are learnt before and which are decided."""
    routes = load()
    known = np.flatnonzero(~routes.test)
    if choose:
        return routes, known[: len(known) // 2], known[len(known) // 2 :]
    return routes, known, np.flatnonzero(routes.test)


def context_of(routes: LlmRoutes, prompt: int) -> dict[str, msgspec.Raw]:
    """Return the features of a prompt."""
    words = routes.words[prompt] / max(float(np.linalg.norm(routes.words[prompt])), 1e-9)
    features: dict[str, Any] = {
        "length": {"log": round(float(np.log(routes.length[prompt])), 3)},
        "words": {"": [round(float(value), 3) for value in words]},
    }
    return {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in features.items()}


@cache
def warm_model(flags: str, choose: bool) -> bytes:
    """Return a model that has learnt the scores of all models for the known prompts."""
    routes, known, _ = routes_of(choose)
    workspace = Workspace(configuration=REGISTRY.parse(f"{flags} --dsjson"))
    random, count = np.random.default_rng(0), len(routes.models)
    actions = [{"_tag": name, "model": {name: 1}} for name in routes.models]
    for prompt in random.permutation(known):
        context = msgspec.json.encode({**context_of(routes, prompt), "_multi": actions})
        for action in random.permutation(count).tolist():
            label = {
                "_label_cost": -float(routes.reward[prompt, action]),
                "_label_probability": 1 / count,
                "_label_Action": action + 1,
                "_labelIndex": action,
            }
            workspace.learn(msgspec.json.encode(label)[:-1] + b',"c":' + context + b"}\n")
    file = io.BytesIO()
    workspace.save(file)
    return file.getvalue()


def expected_costs(choose: bool) -> np.ndarray:
    """Return the mean cost of each model for known prompts of similar length, for each prompt."""
    routes, known, _ = routes_of(choose)
    bounds = np.quantile(routes.length[known], np.linspace(0, 1, _LENGTHS + 1)[1:-1])
    group = np.searchsorted(bounds, routes.length)
    means = [routes.cost[known][group[known] == each].mean(axis=0) for each in range(_LENGTHS)]
    return np.asarray(np.array(means)[group])


def run(seed: int, *, budget: float | None, flags: str, learn_every: int, cold: bool, choose: bool) -> Result:
    """Return what a service earns and spends."""
    routes, _, decided = routes_of(choose)
    prompts = np.random.default_rng(seed).permutation(decided)
    declared = None if cold else expected_costs(choose)
    chosen = np.empty(len(prompts), int)
    settings = {"learn_at": "reward", **({} if budget is None else {"budget": budget})}
    with tempfile.TemporaryDirectory() as folder:
        loop = Loop(
            folder, REGISTRY.parse(flags), settings=settings, every=Every(publish=0.0), app=f"seed{seed}"
        )
        if not cold:
            loop.put_model("warm", warm_model(flags, choose), ignore_completion)
        _learn(loop)
        for number, prompt in enumerate(prompts):
            actions = [[{"model": msgspec.Raw(b'{"%b":1}' % name.encode())}] for name in routes.models]
            if declared is not None:
                for features, cost in zip(actions, declared[prompt], strict=True):
                    features[0]["cost"] = msgspec.Raw(msgspec.json.encode(float(cost)))
            request = RankRequest(f"e{number}", [context_of(routes, prompt)], routes.models, actions)
            action = loop.rank(request, ignore_completion).actions[0]
            loop.cost(f"e{number}", float(routes.cost[prompt, action]), ignore_completion)
            loop.reward(f"e{number}", float(routes.reward[prompt, action]), ignore_completion)
            chosen[number] = action
            if number % learn_every == 0:
                _learn(loop)
        loop.close()
    return Result(routes.reward[prompts, chosen], routes.cost[prompts, chosen].astype(float), chosen)


def _learn(loop: Loop) -> None:
    """Learn everything that the loop has recorded."""
    written = threading.Event()
    loop.change({}, lambda _: written.set())
    written.wait()
    while loop.learn():
        pass


def row_of(budget: float | None, results: list[Result], models: int) -> str:
    """Return a row of the table."""
    rewards = [result.reward.mean() for result in results]
    cells = [f"{np.mean(rewards):.4f}", f"{min(rewards):.4f} to {max(rewards):.4f}"]
    costs = [result.cost.mean() for result in results]
    cells.append(f"{np.mean(costs):.2e}")
    if budget is None:
        cells += ["", ""]
    else:
        shares = np.array(costs) / budget
        first = np.array([result.cost[:1000].mean() for result in results]) / budget
        cells += [f"{part.mean():.3f} ({part.min():.3f} to {part.max():.3f})" for part in (shares, first)]
    chosen = np.mean([np.bincount(result.chosen, minlength=models) for result in results], axis=0)
    cells.append(" / ".join(f"{share:.1%}" for share in chosen / chosen.sum()))
    return f"| {'none' if budget is None else f'{budget:.1e}'} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--flags", default=FLAGS)
    parser.add_argument("--budgets", type=float, nargs="*", default=BUDGETS)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--learn_every", type=int, default=20, help="decisions between two models that rank")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    routes, _, decided = routes_of(options.choose)
    print(f"models: {', '.join(routes.models)}")
    for name, reward, cost in zip(
        routes.models, routes.reward[decided].mean(axis=0), routes.cost[decided].mean(axis=0), strict=True
    ):
        print(f"always {name}: {reward:.4f} at {cost:.2e}")
    print("| budget | reward | over seeds | dollars | of the budget | of the first 1,000 | chosen |")
    print("|---:|---:|---|---:|---|---:|---|")
    with ProcessPoolExecutor(options.processes) as pool:
        for budget in [*options.budgets, None]:
            job = partial(
                run,
                budget=budget,
                flags=options.flags,
                learn_every=options.learn_every,
                cold=options.cold,
                choose=options.choose,
            )
            results = list(pool.map(job, range(1, options.seeds + 1)))
            print(row_of(budget, results, len(routes.models)), flush=True)


if __name__ == "__main__":
    main()
