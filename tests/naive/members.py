"""The members of an ensemble the slow, obvious way: a dictionary of features, a regression for each action.

One member predicts the cost of an action from the features of the context, from how many standard deviations
each number is away from its mean, and from the bin that each number is in. The other predicts it from waves
of the numbers and words. Of more than 128 actions, all share one regression of the features of both. A layer
predicts it from waves of what the first member says of all actions.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tests.naive.baseline import WIDEST, Baseline
from tests.naive.crosses import RARE, Crosses, key_of, keys_of, of_bin, of_group, of_word
from tests.naive.means import Means
from tests.naive.trees import CostTrees
from tests.naive.vectors import Vectors, split

if TYPE_CHECKING:
    from numpy.typing import NDArray

Features = Sequence[tuple[int, float]]
Named = dict[int, tuple[object, float]]

MOST_FEATURES, MOST_NUMBERS, MOST_ACTIONS, WAVES = 300, 64, 128, 128
BINS, FIRST_BINS, GROUPS, LATEST = 24, 12, 8, 128
WAITING_PLACES = 512
LEFT, TOGETHER = 64, 3
MEMORY = 16384
ALL = (
    "features",
    "waves",
    "crosses one by one",
    "crosses in pairs",
    "crosses in triples",
    "layer",
    "baseline",
    "ridge",
    "means",
    "vectors",
    "linear",
    "trees",
)
LAYER, BASELINE, RIDGE, MEANS = 5, 6, 7, 8
NAMES = tuple(name for name in ALL if name != "linear")
ON_LINES = (*ALL[:LAYER], "vectors", "linear", "trees")
"""Those that do not need several actions."""
AFTER = 1024
GROWN = 512 + 32
"""Events until the first trees are there."""

KEEPS = 0.9995
ALONE, OFTEN, EACH, WAITING = 64, 512, 4, 4
LEAST, LEAST_32, RISE_32 = 1e-6, 1e-4, 1e-6
"""The part of a prediction's variance that remains, in float64 and in float32; what is added to variances."""

_DRAW = np.random.Generator(np.random.PCG64(20_261_122))
FREQUENCY = _DRAW.standard_normal(MOST_NUMBERS * WAVES)
PHASE = _DRAW.uniform(0, 2 * np.pi, WAVES)
FREQUENCY_OF_ACTIONS = np.append(FREQUENCY, _DRAW.standard_normal((MOST_ACTIONS - MOST_NUMBERS) * WAVES))


def hash_of(features: Features) -> int:
    """Return the hash of a whole line, whatever the order of its features."""
    mix, whole = 0x9E3779B97F4A7C15, 2**64
    key = 1
    for hash_, x in features:
        value = int(x * 65536) if math.isfinite(x) and abs(x * 65536) < 2.0**52 else 0
        part = (hash_ ^ (value << 32)) * mix % whole
        key += (part ^ part >> 29) * mix
    return key % whole


class Squares:
    """Least squares that forget: weights, and the covariance that says how sure each is.

    `narrow` says that the kernel holds them in float32.
    """

    def __init__(self, unsure: float, n: int = 0, *, narrow: bool = False, keeps: float = KEEPS) -> None:
        self.keeps = keeps
        self.least, self.rise = (LEAST_32, RISE_32 * unsure) if narrow else (LEAST, 0.0)
        self.unsure = unsure
        self.weights = np.zeros(n)
        self.spread = np.eye(n) * unsure
        self.waiting: list[tuple[NDArray[np.float64], float, float, int]] = []

    def grow(self, n: int) -> None:
        """Grow the arrays to `n` inputs."""
        more = n - len(self.weights)
        self.weights = np.pad(self.weights, (0, more))
        self.spread = np.pad(self.spread, (0, more))
        for at in range(n - more, n):
            self.spread[at, at] = self.unsure

    def learn_later(
        self, inputs: NDArray[np.float64], target: float, noise: float, times: int, together: int
    ) -> None:
        """Learn an event when so many wait."""
        self.grow(len(inputs))
        self.waiting.append((inputs, target, noise, times))
        if len(self.waiting) >= together:
            for early, of, unsure, many in self.waiting:
                self.learn(np.pad(early, (0, len(self.weights) - len(early))), of, unsure, many)
            self.waiting = []

    def learn(self, inputs: NDArray[np.float64], target: float, noise: float, times: int = 1) -> None:
        """Learn an event; the covariance takes it for so many."""
        self.grow(len(inputs))
        gains = self.spread @ inputs
        error = target - self.weights @ inputs
        known = float(inputs @ gains)
        unsure = self.keeps * max(noise, self.least * known) + known
        if unsure > 0 and math.isfinite(error):
            self.weights = self.weights + gains * error / unsure
        if unsure > 0 and math.isfinite(error) and times > 0:
            unsure = self.keeps**times * max(noise / times, self.least * known) + known
            self.spread = (self.spread - np.outer(gains, gains) / unsure) / self.keeps**times

    def renew(self, at: int) -> None:
        """Begin the weight of an input again."""
        if at < len(self.weights):
            self.weights[at] = self.spread[at] = self.spread[:, at] = 0.0
            self.spread[at, at] = self.unsure
        for inputs, *_ in self.waiting:
            inputs[at : at + 1] = 0.0

    def cut_off(self) -> None:
        """Limit the variance of each weight: at most its initial value, and never 0."""
        for at in range(len(self.weights)):
            if self.spread[at, at] > self.unsure:
                factor = math.sqrt(self.unsure / self.spread[at, at])
                self.spread[at] *= factor
                self.spread[:, at] *= factor
            self.spread[at, at] += self.rise


@dataclass
class Number:
    """The statistics of a feature that had a value other than 1."""

    mean: float = 0.0
    variance: float = 0.0
    latest: deque[float] = field(default_factory=lambda: deque([0.0] * LATEST, maxlen=LATEST))
    cuts: list[float] = field(default_factory=list)
    bins: list[int] = field(default_factory=list)
    """Inputs of the bins, in ascending order of values; that of the constant where there is no room."""
    parts: list[int] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    """Names of the bins when they are crossed with the action, and with other features too."""

    named: bool = False
    """Whether it is in the names of words."""

    def bin_of(self, value: float) -> int:
        return sum(1 for cut in self.cuts if value > cut)

    def away(self, value: float) -> float:
        spread = math.sqrt(self.variance)
        return min(max((value - self.mean) / spread, -4.0), 4.0) if spread > 0 else 0.0


class OfAction:
    """The regressions of an action, and its scores by features: how many, their mean and variance."""

    def __init__(self) -> None:
        self.linear = Squares(1 / 3, narrow=True)
        self.ridge = Squares(0.01, narrow=True, keeps=1.0)
        self.vectors = Squares(0.3, narrow=True, keeps=1.0)
        self.plain = Squares(1 / 3, narrow=True)
        self.waves, self.layer = (Squares(10.0, WAVES, narrow=True) for _ in range(2))
        self.seen = 0
        self.count, self.mean, self.variance = 0, 0.0, 0.0

    def away(self, score: np.float32) -> float:
        spread = math.sqrt(self.variance)
        return min(max((float(score) - self.mean) / spread, -4.0), 4.0) if spread > 0 else 0.0

    def see(self, score: np.float32) -> None:
        self.count = min(self.count + 1, MEMORY)
        away = float(score) - self.mean
        self.mean += away / self.count
        self.variance += (away * (float(score) - self.mean) - self.variance) / self.count


class Members:
    """All members; `numbered` says that actions have numbers and no features (``--cb N``).

    `named` has stem and number of the words whose names have these, by hash.
    """

    def __init__(
        self, *, names: Sequence[str] = NAMES, numbered: bool = False, named: Named | None = None
    ) -> None:
        self.names = names
        self.numbered = numbered
        self.named = named or {}
        self.of_stem: dict[object, int] = {}
        self.about: dict[int, tuple[int, float]] = {}
        """Of the input of a word with a number in its name: the input of that number, and how much it is."""
        self.crosses, self.baseline, self.trees = Crosses(), Baseline(), CostTrees()
        self.means, self.vectors = Means(), Vectors()
        self.mean = self.mean_for_vectors = 0.0
        """Mean of the costs, for ridge and for vectors."""
        self.n_inputs = 1
        self.wide = self.crowding = 0
        """Events without room for what was new in them; how often there lately was none for actions."""
        self.has_begun = False
        self.uses: Counter[int] = Counter()
        self.waiting: dict[int, tuple[int, int]] = {}
        """Uses of inputs since the last renewal, and the majority of those of waiting features, by place."""
        self.counted = self.renewals = 0
        self.input_of: dict[int, int] = {}
        self.numbers: dict[int, Number] = {}
        """By input, in the order in which they were met."""
        self.actions: dict[object, OfAction] = {}
        self.joint: OfAction | None = None
        self.events = 0
        self.rests = [False] * len(names)
        self.told: list[tuple[OfAction, np.float32]] | None = None
        """The scores by features of the known actions of the latest event; None if it has no layer."""

    # -- what is known ---------------------------------------------------------------------------------

    @property
    def works(self) -> tuple[bool, ...]:
        """Return whether each member has scores."""
        waves = bool(self.numbers) or self.joint is not None
        layer = self.joint is None and len(self.actions) > 1 and self.events >= AFTER
        layer = layer and not self.rests[0]
        baseline = (len(self.actions) > 1 or self.joint is not None) and self.crosses.widest <= WIDEST
        ridge = self.joint is None and len(self.actions) > 1
        trees = self.joint is None and self.events >= GROWN
        means = len(self.actions) > 1 or self.joint is not None
        vectors = self.joint is None and len(self.vectors) > 0
        scored = True, waves, *self.crosses.works, layer, baseline, ridge, means, vectors, True, trees
        able = [each for name, each in zip(ALL, scored, strict=True) if name in self.names]
        begun = bool(self.actions) or self.joint is not None
        return tuple(each and begun and not rests for each, rests in zip(able, self.rests, strict=True))

    def has(self, name: str) -> bool:
        """Return whether a member exists and has scores."""
        return name in self.names and self.works[self.names.index(name)]

    def _key(self, number: int, features: Features) -> object:
        return number if self.numbered else tuple(sorted((hash_, int(x * 65536)) for hash_, x in features))

    def _of(self, number: int, features: Features) -> OfAction | None:
        return self.joint or self.actions.get(self._key(number, features))

    # -- scores ----------------------------------------------------------------------------------------

    def scores(
        self, context: Features, actions: Sequence[Features], otherwise: Sequence[np.float32]
    ) -> list[tuple[np.float32, ...]]:
        """Scores of all members for each action; where one has none, the other given score."""
        found = []
        context, runs = self._split(context)
        in_vectors = np.array([1.0, *self.vectors.numbers(runs)])
        of_trees = self.trees.score(self._row(context)) if self.has("trees") else np.zeros(0)
        for number, features in enumerate(actions):
            known = self._of(number, features)
            linear, waves = self._inputs(context, features if self.joint else ())
            scores = [np.float32(otherwise[number])] * len(self.names)
            if known is not None and known.seen:
                known.linear.grow(self.n_inputs)
                known.ridge.grow(len(self._plain(linear)))
                known.vectors.grow(len(in_vectors))
                known.plain.grow(len(self._plain(linear)))
                names, keys = self._names(context), self._crossed_with(number, features)
                own = [
                    float(known.linear.weights @ linear),
                    float(known.waves.weights @ waves),
                    *self.crosses.scores(names, keys),
                    None,
                    self.baseline.score(names, keys),
                    None if self.joint else self.mean + float(known.ridge.weights @ self._plain(linear)),
                    self.means.score(keys),
                    self.mean_for_vectors + float(known.vectors.weights @ in_vectors),
                    float(known.plain.weights @ self._plain(linear)),
                    None,
                ]
                if not self.joint:
                    at = list(self.actions.values()).index(known)
                    own[-1] = float(of_trees[at]) if at < len(of_trees) else None
                by_name = dict(zip(ALL, own, strict=True))
                for member, (name, works) in enumerate(zip(self.names, self.works, strict=True)):
                    score = by_name[name]
                    if works and score is not None:
                        scores[member] = np.float32(score)
            found.append(scores)
        self.told = None
        if self.has("layer"):
            of = [self._of(number, features) for number, features in enumerate(actions)]
            self.told = [
                (each, scores[0]) for each, scores in zip(of, found, strict=True) if each and each.seen
            ]
            layer = self._layer()
            for each, scores in zip(of, found, strict=True):
                if each and each.seen:
                    scores[LAYER] = np.float32(each.layer.weights @ layer)
        return [tuple(scores) for scores in found]

    def _split(self, context: Features) -> tuple[list[tuple[int, float]], list[list[tuple[int, float]]]]:
        """Return the features of a context, with projections in place of vectors; and the vectors."""
        others, runs = split(context)
        found = [(key, x) for key, x in self.vectors.projections(runs) if key in self.input_of]
        return [*others, *found], runs

    def _layer(self) -> NDArray[np.float64]:
        """Waves of what the features said of the actions."""
        known = list(self.actions.values())
        waves = PHASE.copy()
        for each, score in self.told or ():
            at = known.index(each) * WAVES
            waves += each.away(score) / math.sqrt(len(known)) * FREQUENCY_OF_ACTIONS[at : at + WAVES]
        waves = math.sqrt(2 / WAVES) * np.cos(waves)
        waves[0] = 1.0
        return waves

    def _plain(self, linear: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the inputs that are not bins."""
        bins = {each for number in self.numbers.values() for each in number.bins} - {0}
        return np.delete(linear, sorted(bins))

    def _row(self, context: Features) -> list[tuple[int, float]]:
        """Return the inputs of the trees: numbers as they are, and words without a number in their name."""
        totals = dict.fromkeys(self.numbers, 0.0)
        for hash_, x in context:
            at = self.input_of.get(hash_)
            if at is not None and math.isfinite(x):
                totals[at] = totals.get(at, 0.0) + x
                if x == 1 and at in self.about and at not in self.numbers:
                    stem, amount = self.about[at]
                    totals[stem] += amount
        words = [at for at in sorted(totals) if at not in self.numbers and at not in self.about]
        return [(at, totals[at]) for at in (*self.numbers, *words)]

    def _names(self, features: Features) -> list[tuple[int, int]]:
        """Return the names of inputs that may be crossed: words, and numbers that have bins."""
        found = []
        places = {at: place for place, at in enumerate(self.numbers)}
        for hash_, x in features:
            at = self.input_of.get(hash_, -1)
            if at in self.numbers and x != 0 and math.isfinite(x):
                number = self.numbers[at]
                if number.bins:
                    place, number_bin = places[at], number.bin_of(x)
                    part, group = number.parts[number_bin], number.groups[number_bin]
                    found.append((of_bin(place, part), of_group(place, group)))
            elif at not in self.numbers and x == 1:
                found.append((of_word(hash_), of_word(hash_)))
        first: dict[int, tuple[int, int]] = {}
        for fine, coarse in found:
            first.setdefault(coarse, (fine, coarse))
        return list(first.values())

    def _crossed_with(self, number: int, features: Features) -> list[int]:
        if self.joint:
            return keys_of(hash_of(features), self._names(features))
        key = self._key(number, features)
        return [key_of(list(self.actions).index(key))] if key in self.actions else []

    def _inputs(
        self, context: Features, features: Features
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        linear = np.zeros(self.n_inputs)
        words: list[int] = []
        for hash_, x in (*context, *features):
            if not math.isfinite(x):
                continue
            at = self.input_of.get(hash_)
            if at is not None:
                linear[at] += x
            if x == 1 and at in self.about and at not in self.numbers:
                stem, amount = self.about[at]
                linear[stem] += amount
            elif at not in self.numbers and x == 1 and len(words) < MOST_FEATURES:
                words.append(hash_)
        linear[0] = 1.0
        waves = PHASE.copy()
        scale = math.sqrt(2 / max(len(self.numbers) + len(words), 1))
        for k, (at, number) in enumerate(self.numbers.items()):
            raw = linear[at]
            if number.bins:
                linear[number.bins[number.bin_of(raw)]] = 1.0
            linear[at] = number.away(raw)
            waves += scale * linear[at] * FREQUENCY[k * WAVES : (k + 1) * WAVES]
        for hash_ in words:
            mixed = hash_ * 0x9E3779B97F4A7C15 % 2**64
            begin = (mixed >> 32) % (WAVES * (MOST_NUMBERS - 1))
            waves += scale * FREQUENCY[begin : begin + WAVES]
        waves = math.sqrt(2 / WAVES) * np.cos(waves)
        waves[0] = 1.0
        return linear, waves

    # -- learning --------------------------------------------------------------------------------------

    def learn(
        self,
        context: Features,
        actions: Sequence[Features],
        logged: int,
        cost: float,
        weights: tuple[float, float, float],
    ) -> None:
        """Learn an event; the second weight is that of products, the third that of `ridge` and `vectors`."""
        weight, weight_of_products, careful = weights
        if all(self.rests):
            return
        layer = None if self.told is None else self._layer()
        context, runs = self._split(context)
        actions = [split(features)[0] for features in actions] if self.joint else actions
        if self.joint is None:
            self._meet_actions([self._key(number, features) for number, features in enumerate(actions)])
        met = [*context, *(each for of in actions if self.joint for each in of)]
        if self._may_note(met):
            self._meet(met)
        if self.n_inputs == MOST_FEATURES:
            self._count(met)
        self.vectors.meet(runs)
        in_vectors = np.array([1.0, *self.vectors.numbers(runs)])
        features = actions[logged]
        linear, waves = self._inputs(context, features if self.joint else ())
        known = self._of(logged, features)
        if known is not None:
            known.seen += 1
            works = *self.works[:2], *map(self.has, ("layer", "ridge", "vectors", "linear"))
            lessons = (
                (known.linear, linear, cost, weight),
                (known.waves, waves, cost, weight),
                (known.layer, layer, cost, weight),
                (known.ridge, self._plain(linear), cost - self.mean, careful),
                (known.vectors, in_vectors, cost - self.mean_for_vectors, careful),
                (known.plain, self._plain(linear), cost, weight),
            )
            for has, (squares, inputs, target, own_weight) in zip(works, lessons, strict=True):
                if has and inputs is not None:
                    taken = known.seen * 0x9E3779B97F4A7C15 % 2**64 < 2**62
                    times = 1 if known.seen <= OFTEN else EACH * taken
                    together = WAITING if known.seen > ALONE else 1
                    squares.learn_later(inputs, target, 1 / own_weight, times, together)
                    if known.seen % 64 == 0:
                        squares.cut_off()
        keeps = self.joint is None and "trees" in self.names and not self.rests[self.names.index("trees")]
        if known is not None and keeps:
            at = list(self.actions.values()).index(known)
            self.trees.learn(self._row(context), at, cost, weight, len(self.actions))
        if "ridge" in self.names and not self.rests[RIDGE]:
            self.mean += (cost - self.mean) / max((self.events + 1) / weight, 1)
        if "vectors" in self.names and not self.rests[self.names.index("vectors")]:
            self.mean_for_vectors += (cost - self.mean_for_vectors) / max((self.events + 1) / weight, 1)
        keys = self._crossed_with(logged, features)
        if not all(self.rests[2:5]):
            learns = [not rests for rests in self.rests[2:5]]
            self.crosses.learn(self._names(context), keys, cost, weight_of_products, self.events, learns)
        if "baseline" in self.names and not self.rests[BASELINE]:
            names = self._names(context)
            self.crosses.note_width(min(len(names), WIDEST + 1), self.events, self.baseline.wide)
            self.baseline.learn(
                names, keys, cost, weight, self.events, works=self.works[BASELINE] and bool(keys)
            )
        if "means" in self.names and not self.rests[MEANS]:
            can_learn = self.works[MEANS] and bool(keys)
            self.means.learn(keys, cost, weights[:2], self.events, works=can_learn)
        self._see_numbers(context, features if self.joint else ())
        if self.vectors.see(runs):
            self._meet_projections()
        for each, score in self.told or ():
            each.see(score)
        if self.n_inputs == MOST_FEATURES:
            self._renew()

    # -- renewal ---------------------------------------------------------------------------------------

    def _count(self, features: Features) -> None:
        for hash_, x in features:
            if x == 0 or not math.isfinite(x):
                continue
            if hash_ in self.input_of:
                self.uses[self.input_of[hash_]] += 1
                continue
            place = ((hash_ + 1) * 0x9E3779B97F4A7C15 % 2**64 >> 40) % WAITING_PLACES
            majority, votes = self.waiting.get(place, (hash_, 0))
            majority = majority if votes else hash_
            self.waiting[place] = majority, votes + (1 if majority == hash_ else -1)

    def _renew(self) -> None:
        self.counted += 1
        if self.counted < min(max(self.events // 2, 512), 16_384):
            return
        while self.waiting:
            bins = {each for number in self.numbers.values() for each in number.bins}
            words = [at for at in range(1, self.n_inputs) if at not in self.numbers and at not in bins]
            place = max(self.waiting, key=lambda each: (self.waiting[each][1], -each))
            at = min(words, key=lambda each: (self.uses[each], each))
            new, votes = self.waiting.pop(place)
            if votes <= 2 * self.uses[at] + 8:
                break
            self.input_of = {hash_: own for hash_, own in self.input_of.items() if own != at} | {new: at}
            self.about.pop(at, None)
            self.uses[at] = votes
            plain = at - sum(1 for each in bins - {0} if each < at)
            for known in (*self.actions.values(), *([self.joint] if self.joint else [])):
                known.linear.renew(at)
                known.ridge.renew(plain)
            self.trees.forget(at)
            self.renewals += 1
        self.uses, self.waiting, self.counted = Counter(), {}, 0

    # -- inputs ----------------------------------------------------------------------------------------

    def _meet_projections(self) -> None:
        for (key, _), variance in zip(self.vectors.projections([]), self.vectors.variances(), strict=True):
            if self.n_inputs < MOST_FEATURES and len(self.numbers) < MOST_NUMBERS:
                self.input_of[key] = self._new_input()
                self.numbers[self.input_of[key]] = Number(named=True, variance=variance)

    def _may_note(self, features: Features) -> bool:
        """Return whether an event's new features and numbers fit, or wide events are frequent."""
        new = numbers = 0
        has_room, has_room_of_numbers = self.n_inputs < MOST_FEATURES, len(self.numbers) < MOST_NUMBERS
        for hash_, x in features:
            if x != 0 and math.isfinite(x):
                at = self.input_of.get(hash_)
                new += at is None and has_room
                is_number = x != 1 and (at is not None or has_room)
                numbers += is_number and at not in self.numbers and has_room_of_numbers
        wide = self.n_inputs + new > MOST_FEATURES or len(self.numbers) + numbers > MOST_NUMBERS
        self.wide += wide
        return not wide or (self.wide > RARE and 8 * self.wide > self.events)

    def _meet(self, features: Features) -> None:
        for hash_, x in features:
            if x == 0 or not math.isfinite(x):
                continue
            if hash_ not in self.input_of:
                if self.n_inputs >= MOST_FEATURES:
                    continue
                self.input_of[hash_] = self._new_input()
                if x == 1 and hash_ in self.named:
                    self._meet_name(self.input_of[hash_], *self.named[hash_])
            at = self.input_of[hash_]
            if x != 1 and at not in self.numbers and len(self.numbers) < MOST_NUMBERS:
                self.numbers[at] = Number()

    def _meet_name(self, at: int, stem: object, amount: float) -> None:
        if stem not in self.of_stem:
            if len(self.numbers) >= MOST_NUMBERS or self.n_inputs >= MOST_FEATURES:
                return
            self.of_stem[stem] = self._new_input()
            self.numbers[self.of_stem[stem]] = Number(named=True)
        self.about[at] = self.of_stem[stem], amount

    def _meet_actions(self, keys: Sequence[object]) -> None:
        new = {key: OfAction() for key in keys if key not in self.actions}
        if len(self.actions) + len(new) <= MOST_ACTIONS:
            self.actions |= new
            self.crowding = max(self.crowding - 1, 0)
            return
        self.crowding += 7
        if self.crowding > 7 * RARE:
            self.joint = OfAction()

    def _new_input(self) -> int:
        self.n_inputs += 1
        return self.n_inputs - 1

    def _see_numbers(self, context: Features, features: Features) -> None:
        self.events += 1
        seen = min(self.events, MEMORY)
        found: list[tuple[int, float]] = []
        for hash_, x in (*context, *features):
            at = self.input_of.get(hash_, -1)
            if at in self.numbers and math.isfinite(x):
                found.append((at, x))
            elif at in self.about and x == 1:
                found.append(self.about[at])
        for at, number in self.numbers.items():
            raw = math.fsum(x for each, x in found if each == at)
            away = raw - number.mean
            number.mean += away / seen
            number.variance += (away * (raw - number.mean) - number.variance) / seen
            number.latest.append(raw)
            if self.events % LATEST == 0:
                self._divide(number)

    # -- bins ------------------------------------------------------------------------------------------

    def _has_room(self, bins: int) -> bool:
        return self.n_inputs + bins <= MOST_FEATURES - LEFT

    def _divide(self, number: Number) -> None:
        if not number.bins:
            self._first_bins(number)
            return
        members: list[list[float]] = [[] for _ in number.bins]
        for value in number.latest:
            members[number.bin_of(value)].append(value)
        fullest = max(range(len(members)), key=lambda at: (len(members[at]), -at))
        values = sorted(members[fullest])
        too_full = len(values) * FIRST_BINS > 2 * LATEST
        if not (too_full and len(number.bins) < BINS):
            return
        middle = len(values) // 2
        upper = next((at for at in range(middle, len(values)) if values[at] > values[at - 1]), None)
        if upper is None:
            return
        old = new = number.bins[fullest]
        if old and self._has_room(1):
            new = self._new_input()
            for known in (*self.actions.values(), *([self.joint] if self.joint else [])):
                known.linear.grow(self.n_inputs)
                known.linear.weights[new] = known.linear.weights[old]
        number.parts.insert(fullest + 1, len(number.parts))
        number.groups.insert(fullest + 1, number.groups[fullest])
        number.cuts.insert(fullest, (values[upper] + values[upper - 1]) / 2)
        number.bins.insert(fullest + 1, new)
        group = number.groups[fullest]
        if number.groups.count(group) > TOGETHER:
            new_group = max(number.groups) + 1
            behind = [new_group if each == group else each for each in number.groups[fullest + 1 :]]
            number.groups[fullest + 1 :] = behind

    def _first_bins(self, number: Number) -> None:
        values = sorted(number.latest)
        different = sorted(set(values))
        few = len(different) <= BINS
        if len(different) < 2:
            return
        for at in range(1, LATEST):
            due = few or at >= (len(number.cuts) + 1) * LATEST / FIRST_BINS
            if due and values[at] > values[at - 1]:
                number.cuts.append((values[at] + values[at - 1]) / 2)
        bins = len(number.cuts) + 1
        room = self._has_room(bins) and not number.named
        number.bins = [self._new_input() if room else 0 for _ in range(bins)]
        number.parts = list(range(bins))
        number.groups = [at * min(bins, GROUPS) // bins for at in range(bins)]
