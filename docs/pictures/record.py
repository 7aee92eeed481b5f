"""Record what the pictures show: runs over ``datasets``, by onlineauto and by Vowpal Wabbit.

``python docs/pictures/record.py`` writes ``docs/pictures/data``. ``draw.py`` draws it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import msgspec
import numpy as np

from onlineauto import AutoML, AutoMLRegressor, Evaluation, Run, Workspace
from onlineauto.cluster.learned import Learned
from onlineauto.cluster.simulator import Workload, compare, draw_traces, policies_for
from onlineauto.tune import Categorical, Float, Int, Study

HERE = Path(__file__).parent
DATA = HERE / "data"
SETS = HERE.parents[1] / "datasets"
FLIGHTS, STONES = SETS / "cb-flights-u.txt.gz", SETS / "cb-diamonds-n-u.txt.gz"
RUNS = {
    "flights-automl": (
        "onlineauto",
        "--automl",
        "--journal",
        str(DATA / "flights-journal.jsonl"),
    ),
    "flights-all-pairs": ("onlineauto", "-q", "::"),
    "flights-vw": ("vowpalwabbit", "--automl", "4"),
}
"""By name of a file: a program, and its options beside those of all."""
ENSEMBLES = {
    "stones-champion": ("--predict_with", "champion"),
    "stones-none": ("--members", "none"),
    "stones-features-waves": ("--members", "features,waves"),
    "stones-all": (),
}
"""By name of a file: options beside ``--automl``."""
POINTS = 60
"""Number of points of each curve of intervals."""
CHANGE, EACH = 12_000, 500
"""After how many events the stream of `drift` changes, and of how many its rewards are averages."""


def main() -> None:
    """Record all."""
    DATA.mkdir(exist_ok=True)
    runs = [(name, FLIGHTS, run) for name, run in RUNS.items()]
    runs += [
        (name, STONES, ("onlineauto", "--automl", *options))
        for name, options in ENSEMBLES.items()
    ]
    for name, log, (program, *options) in runs:
        words = [
            sys.executable,
            "-m",
            program,
            "-d",
            str(log),
            "--cb_explore_adf",
            *options,
        ]
        words += ["-P", "1.1"]
        done = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=True)  # noqa: S603
        table = done.stderr[done.stderr.index("average  since") :]
        (DATA / f"{name}.txt").write_text(
            table[: table.index("total feature")], encoding="utf-8"
        )
    (DATA / "study.json").write_bytes(msgspec.json.encode(study()) + b"\n")
    (DATA / "front.json").write_bytes(msgspec.json.encode(front()) + b"\n")
    (DATA / "values.json").write_bytes(
        msgspec.json.format(msgspec.json.encode(values())) + b"\n"
    )
    (DATA / "cluster.json").write_bytes(msgspec.json.encode(cluster()) + b"\n")
    (DATA / "new-article.json").write_bytes(msgspec.json.encode(new_article()) + b"\n")
    (DATA / "effects.json").write_bytes(msgspec.json.encode(effects()) + b"\n")


def effects() -> dict[str, object]:
    """Return how the prices of the tutorial on regression depend on each feature."""
    towns, model = ("Ulm", "Bonn", "Kiel"), AutoMLRegressor(seed=1)
    rows = [
        {"rooms": 1 + n % 4, "town": towns[n % 3], "garden": n % 5 == 0}
        for n in range(2000)
    ]
    for row in rows:
        rate = 600 if row["town"] == "Bonn" else 300
        model.learn(row, rate * row["rooms"] + 50 * row["garden"])
    found = model.effects(rows[:120])
    for effect in found["features"].values():
        effect["predictions"] = effect["predictions"].round(1).tolist()
    return found


def cluster() -> dict[str, list[list[float]]]:
    """Return the completion times of policies beside `Fair`: rate, ratio, and its interval."""
    found: dict[str, list[list[float]]] = {}
    for rate in (0.2, 0.3, 0.5, 0.8, 1.2, 1.6):
        workload = Workload(rate=rate)
        policies = policies_for(workload) | {"learned": Learned.load()}
        traces = draw_traces(workload, range(8_000_000, 8_000_032))
        for row in compare(policies, traces, by="fair"):
            found.setdefault(row.name, []).append([rate, row.ratio, row.low, row.high])
    return found


def new_article() -> dict[str, object]:
    """Return the share of a 13th article from its first visit on, with rewards that come 500 visits late."""
    ends, shares = list(range(0, 3001, 100)), []
    for seed in range(20):
        rnd, bandit, waiting = Random(seed), AutoML(seed=seed), []
        articles = {f"a{k}": {"id": f"a{k}"} for k in range(12)}
        clicks = {name: rnd.uniform(0.01, 0.05) for name in articles} | {"new": 0.03}
        shares.append([])
        for visit in range(-6000, 3001):
            articles |= {"new": {"id": "new"}} if visit == 0 else {}
            if visit in ends:
                pmfs = [bandit.predict({"seg": name}, articles) for name in "abcd"]
                shares[-1].append(round(float(np.mean(pmfs, axis=0)[-1]), 4))
            choice = bandit.rank({"seg": rnd.choice("abcd")}, articles)
            waiting.append((choice, float(rnd.random() < clicks[choice.action_id])))
            if len(waiting) > 500:
                late, reward = waiting.pop(0)
                bandit.learn(late, reward=reward)
    return {"visits": ends, "shares": shares}


def values() -> dict[str, object]:
    """Return the values of three policies over a log, and how their intervals narrowed."""
    evaluation = Evaluation(
        {
            "no interactions": Workspace(cb_explore_adf=True),
            "-q ::": Workspace(cb_explore_adf=True, quadratic="::"),
            "--automl": Workspace(cb_explore_adf=True, live_configs=4),
        },
        cost_range=(-1, 0),
        min_prob=0.02,
    )
    growth: dict[str, list[tuple[int, float, float]]] = {}
    events = 0
    for found, intervals in evaluation.stream(SETS / "cb-surveys-e.txt.gz", trace=True):
        for name, bounds in intervals.items():
            steps = np.linspace(0, len(bounds) - 1, 8).astype(int)
            growth.setdefault(name, []).extend(
                (events + int(at) + 1, float(bounds[at, 2, 0]), float(bounds[at, 2, 1]))
                for at in steps
            )
        events = found[0].events
    thin = {
        name: points[:: max(1, len(points) // POINTS)] for name, points in growth.items()
    }
    return {
        "values": {each.policy: each.dr for each in evaluation.values()},
        "growth": thin,
    }


def front() -> dict[str, object]:
    """Return a study with two objectives and a constraint, and its front."""
    tuned = Study(
        {
            "rate": Float(1e-2, 1, log=True, prior=0.3),
            "depth": Int(1, 12),
            "loss": Categorical(["squared", "logistic", "hinge"]),
        },
        mode={"loss": "min", "size": "min"},
        max_resource=1,
        max_trials=120,
        seed=0,
    )
    tuned.run(
        lambda config: {
            "loss": (1 - config["rate"]) ** 2 + 0.3 / config["depth"],
            "size": config["rate"] * config["depth"] + (config["loss"] == "hinge"),
            "constraints": {"memory": config["rate"] * config["depth"] - 6},
        }
    )
    return {
        "history": tuned.history(),
        "space": tuned.space.described(),
        "objectives": tuned.objectives,
        "front": [trial.number for trial in tuned.best_trials],
    }


def study() -> dict[str, object]:
    """Return a study of a function whose best config is known, and its space."""
    tuned = Study(
        {
            "rate": Float(1e-4, 1, log=True),
            "depth": Int(1, 12),
            "loss": Categorical(["squared", "logistic", "hinge"]),
        },
        max_resource=27,
        seed=0,
    )
    tuned.run(
        lambda config, resource: (
            abs(np.log10(config["rate"]) + 2) / 4
            + abs(config["depth"] - 5) / 20
            + 0.2 * (config["loss"] == "hinge")
            + 0.5 / resource
        )
    )
    history = [{**row, "value": round(row["value"], 5)} for row in tuned.history()]
    return {"history": history, "space": tuned.space.described()}


def evidence() -> dict[str, object]:
    """Return the evidence of each challenger, every 200 events, until the champion changes."""
    workspace, found, swaps = Workspace(cb_explore_adf=True, live_configs=4), [], []
    workspace.observe(lambda entry: swaps.append(msgspec.to_builtins(entry)))
    run = Run(workspace, FLIGHTS)
    while not any(entry["decision"] == "swap" for entry in swaps) and run.step(200):
        found.append([workspace.estimates.promise(i) for i in range(1, 4)])
    changed = next(entry["events"] for entry in swaps if entry["decision"] == "swap")
    return {"every": 200, "evidence": found[:-1], "changed": changed}


def drift() -> dict[str, object]:
    """Return the true reward of greedy actions over a stream that changes, and what the search decided."""
    draw, texts, best = Random(1), [], []
    for number in range(2 * CHANGE):
        user, hour, device, action = (draw.randrange(n) for n in (8, 6, 3, 4))
        best.append((user + hour if number < CHANGE else user + 2 * device + 1) % 4)
        cost = -int(draw.random() < (0.9 if action == best[-1] else 0.1))
        lines = [f"|article a{each}" for each in range(4)]
        lines[action] = f"0:{cost}:0.25 {lines[action]}"
        texts.append(
            "\n".join([f"shared |user u{user} |hour h{hour} |device d{device}", *lines])
        )
    rewards, decisions = {}, []
    for name, options in {
        "--automl": {"automl": 4},
        "all pairs, -q ::": {"quadratic": "::"},
    }.items():
        workspace = Workspace(cb_explore_adf=True, **options)
        workspace.observe(lambda entry: decisions.append(msgspec.to_builtins(entry)))
        taken = [
            outcomes.action[outcomes.action_start[:-1]]
            for _, outcomes in workspace.stream(texts)
        ]
        right = np.concatenate(taken) == np.array(best)
        rewards[name] = (0.1 + 0.8 * right).reshape(-1, EACH).mean(axis=1).round(4).tolist()
    told = [
        [each["decision"], each["events"]]
        for each in decisions
        if each["decision"] in ("swap", "reopen")
    ]
    return {"every": EACH, "change": CHANGE, "rewards": rewards, "decisions": told}


if __name__ == "__main__":
    main()
