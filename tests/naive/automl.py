"""VW's search, translated literally: objects that change, sets that are moved, nested loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

F = np.float32
Interaction = tuple[bytes, ...]
Counter = dict[bytes, int]


class MovableSet:
    """``std::set`` with its assignment by moving: the target is cleared first, the source is left empty."""

    def __init__(self, elements: set[Interaction] | None = None) -> None:
        self.elements: set[Interaction] = elements or set()

    def move_from(self, other: MovableSet) -> None:
        self.elements = set()
        taken, other.elements = other.elements, set()
        self.elements = taken

    def sorted(self) -> list[Interaction]:
        return sorted(self.elements)

    def copy(self) -> MovableSet:
        return MovableSet(set(self.elements))


class VwConfig:
    def __init__(self, lease: int, kind: str) -> None:
        self.elements = MovableSet()
        self.lease = lease
        self.kind = kind
        self.state = "new"

    def reset(self, elements: MovableSet, lease: int, kind: str) -> None:
        self.elements.move_from(elements)
        self.lease = lease
        self.state = "new"
        self.kind = kind


@dataclass
class Options:
    max_live_configs: int
    default_lease: int
    oracle: str
    interaction_type: str
    priority: str
    priority_challengers: int
    random_seed: int


@dataclass
class Estimator:
    config_index: int = 0
    eligible_to_inactivate: bool = False
    update_count: int = 0
    lower: float = 0.0
    upper: float = 1.0
    live_interactions: list[Interaction] = field(default_factory=list)


def quadratics(counter: Counter) -> list[Interaction]:
    names = sorted(counter)
    return [(one, two) for i, one in enumerate(names) for two in names[i:]]


def cubics(counter: Counter) -> list[Interaction]:
    names = sorted(counter)
    return [
        (one, two, three)
        for i, one in enumerate(names)
        for j, two in enumerate(names[i:], i)
        for three in names[j:]
    ]


def apply_config_to_interactions(counter: Counter, kind: str, config: VwConfig) -> list[Interaction]:
    if config.kind == "exclusion":
        offered = quadratics(counter) if kind == "quadratic" else cubics(counter)
        found = [each for each in offered if each not in config.elements.elements]
    else:
        found = config.elements.sorted()
        if kind == "both":
            found = found + quadratics(counter)
    return sorted(found, key=lambda each: (len(each), each))


def insert_if_is_allowed_to_remove(elements: MovableSet, interaction: Interaction) -> None:
    if all(name not in (b"\x8b", b"\x8c") for name in interaction):
        elements.elements.add(interaction)


def calc_priority_favor_popular_namespaces(config: VwConfig, counter: Counter) -> np.float32:
    priority = F(0)
    for interaction in config.elements.sorted():
        priority = priority - F(counter[interaction[0]])
    return priority


def calc_priority_empty(config: VwConfig, counter: Counter) -> np.float32:
    return F(0)


class Oracle:
    def __init__(self, options: Options) -> None:
        self.name = options.oracle
        self.interaction_type = "both" if self.name == "qbase_cubic" else options.interaction_type
        included = self.name in ("one_diff_inclusion", "qbase_cubic")
        self.conf_type = "inclusion" if included else "exclusion"
        self.default_lease = options.default_lease
        self.calc_priority: Callable[[VwConfig, Counter], np.float32] = (
            calc_priority_empty if options.priority == "none" else calc_priority_favor_popular_namespaces
        )
        self.configs: list[VwConfig] = []
        self.valid_config_size = 0
        self.index_queue: list[tuple[np.float32, int]] = []
        self.random_state = options.random_seed
        self.last_seen_ns_count = 0
        self.total_space: list[Interaction] = []

    def insert_starting_configuration(self) -> None:
        self.configs.append(VwConfig(self.default_lease, self.conf_type))
        self.valid_config_size += 1

    def push(self, index: int, counter: Counter) -> None:
        self.index_queue.append((self.calc_priority(self.configs[index], counter), index))

    def choose(self) -> int:
        top = max(self.index_queue)
        self.index_queue.remove(top)
        return top[1]

    def insert_config(
        self, elements: MovableSet, counter: Counter, conf_type: str, *, allow_dups: bool = False
    ) -> None:
        if not allow_dups:
            for i, config in enumerate(self.configs):
                if config.elements.elements == elements.elements:
                    if i < self.valid_config_size:
                        return
                    self.configs[self.valid_config_size].reset(config.elements, self.default_lease, conf_type)
                    self.push(self.valid_config_size, counter)
                    self.valid_config_size += 1
                    return
        if self.valid_config_size >= len(self.configs):
            self.configs.append(VwConfig(self.default_lease, conf_type))
        self.configs[self.valid_config_size].reset(elements, self.default_lease, conf_type)
        self.push(self.valid_config_size, counter)
        self.valid_config_size += 1

    def keep_best_two(self, winner: int) -> None:
        configs = self.configs
        configs[0], configs[winner] = configs[winner], configs[0]
        if winner != 1:
            configs[1], configs[winner] = configs[winner], configs[1]
        if self.name == "champdupe":
            configs[2].state = "inactive"
        else:
            self.valid_config_size = 2

    def gen_configs(self, champ_interactions: list[Interaction], counter: Counter) -> None:
        if self.name == "one_diff":
            self.gen_one_diff(champ_interactions, counter)
        elif self.name == "one_diff_inclusion":
            self.gen_one_diff_inclusion(counter)
        elif self.name == "champdupe":
            self.gen_champdupe(counter)
        else:
            self.gen_shuffled(counter)

    def gen_one_diff(self, champ_interactions: list[Interaction], counter: Counter) -> None:
        champ_excl = MovableSet()
        champ_excl.move_from(self.configs[0].elements)
        exclusions = iter(champ_excl.sorted())
        for num in range(len(champ_interactions) + len(champ_excl.elements)):
            copy = champ_excl.copy()
            if num < len(champ_interactions):
                insert_if_is_allowed_to_remove(copy, champ_interactions[num])
            else:
                copy.elements.discard(next(exclusions))
            self.insert_config(copy, counter, self.conf_type)
        self.configs[0].elements.move_from(champ_excl)

    def gen_one_diff_inclusion(self, counter: Counter) -> None:
        champ_incl = MovableSet()
        champ_incl.move_from(self.configs[0].elements)
        space = quadratics(counter) if self.interaction_type == "quadratic" else cubics(counter)
        for interaction in space:
            copy = champ_incl.copy()
            self.toggle(copy, interaction)
            self.insert_config(copy, counter, self.conf_type)
        self.configs[0].elements.move_from(champ_incl)

    def gen_champdupe(self, counter: Counter) -> None:
        if len(self.configs) == 1:
            for current in range(2):
                copy = self.configs[0].elements.copy()
                if current % 2:
                    self.insert_config(copy, counter, self.conf_type, allow_dups=True)
                else:
                    self.insert_config(MovableSet(), counter, "inclusion", allow_dups=True)

    def gen_shuffled(self, counter: Counter) -> None:
        if self.last_seen_ns_count != len(counter):
            self.last_seen_ns_count = len(counter)
            quadratic = self.interaction_type == "quadratic"
            self.total_space = quadratics(counter) if quadratic else cubics(counter)
        indexes = [0] * len(self.total_space)
        indexes.extend(range(len(self.total_space)))
        for i in range(len(self.total_space)):
            other = int(self.get_and_update_random() * F(len(indexes)))
            indexes[other], indexes[i] = indexes[i], indexes[other]
        for index in indexes:
            copy = self.configs[0].elements.copy()
            self.toggle(copy, self.total_space[index])
            self.insert_config(copy, counter, self.conf_type)

    @staticmethod
    def toggle(elements: MovableSet, interaction: Interaction) -> None:
        if interaction in elements.elements:
            elements.elements.discard(interaction)
        else:
            insert_if_is_allowed_to_remove(elements, interaction)

    def get_and_update_random(self) -> np.float32:
        self.random_state = (0xEECE66D5DEECE66D * self.random_state + 2147483647) % 2**64
        bits = np.uint32((self.random_state >> 25) & 0x7FFFFF | 127 << 23)
        return bits.view(F) - F(1)

    def repopulate_index_queue(self, counter: Counter) -> bool:
        for i in range(self.valid_config_size):
            if self.configs[i].state in ("new", "inactive"):
                self.push(i, counter)
        return bool(self.index_queue)


class Manager:
    """``interaction_config_manager``; bounds and update counts are set from outside."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.oracle = Oracle(options)
        self.oracle.insert_starting_configuration()
        self.estimators = [Estimator()]
        self.ns_counter: Counter = {}
        self.total_champ_switches = 0
        self.log: list[tuple[object, ...]] = []

    def config_of(self, slot: int) -> VwConfig:
        return self.oracle.configs[self.estimators[slot].config_index]

    def process_example(self, names: tuple[bytes, ...]) -> None:
        for name in names:
            self.ns_counter[name] = self.ns_counter.get(name, 0) + 1
        for slot in range(len(self.estimators)):
            self.regenerate(slot)
        if self.oracle.configs[0].state == "new":
            self.oracle.configs[0].state = "live"
            self.oracle.gen_configs(self.estimators[0].live_interactions, self.ns_counter)

    def regenerate(self, slot: int) -> None:
        self.estimators[slot].live_interactions = apply_config_to_interactions(
            self.ns_counter, self.oracle.interaction_type, self.config_of(slot)
        )

    def swap_eligible_to_inactivate(self, slot: int) -> int | None:
        for other in range(len(self.estimators)):
            if (
                not self.estimators[other].eligible_to_inactivate
                and other != 0
                and self.estimators[slot].lower > self.estimators[other].upper
            ):
                self.estimators[slot].eligible_to_inactivate = False
                self.estimators[other].eligible_to_inactivate = True
                return other
        return None

    def schedule(self) -> None:
        for slot in range(self.options.max_live_configs):
            need_new = len(self.estimators) <= slot
            if need_new or self.estimators[slot].update_count >= self.config_of(slot).lease:
                extended = None
                if not need_new and self.config_of(slot).state == "live":
                    self.config_of(slot).lease = self.config_of(slot).lease * 2 % 2**64
                    extended = ("extend", slot, self.config_of(slot).lease)
                    if not self.estimators[slot].eligible_to_inactivate:
                        self.log.append((*extended, None))
                        continue
                    other = self.swap_eligible_to_inactivate(slot)
                    if other is not None:
                        self.log.append((*extended, other))
                        continue
                if not self.oracle.index_queue and not self.oracle.repopulate_index_queue(self.ns_counter):
                    if extended:
                        self.log.append((*extended, None))
                    continue
                if not need_new and self.config_of(slot).state == "live":
                    self.config_of(slot).state = "inactive"
                self.apply_config_at_slot(slot, self.oracle.choose())

    def apply_config_at_slot(self, slot: int, index: int) -> None:
        if len(self.estimators) <= slot:
            self.estimators.append(Estimator())
            if slot > self.options.priority_challengers:
                self.estimators[-1].eligible_to_inactivate = True
        estimator = self.estimators[slot]
        estimator.update_count, estimator.lower, estimator.upper = 0, 0.0, 1.0
        estimator.config_index = index
        self.oracle.configs[index].state = "live"
        self.regenerate(slot)
        self.log.append(("rotate", slot, index, tuple(self.oracle.configs[index].elements.sorted())))

    def apply_new_champ(self, winner: int) -> None:
        self.total_champ_switches += 1
        self.oracle.index_queue.clear()
        estimators = self.estimators
        estimators[winner].eligible_to_inactivate = False
        if self.options.priority_challengers > 1:
            estimators[0].eligible_to_inactivate = False
        self.oracle.keep_best_two(estimators[winner].config_index)
        estimators[winner].config_index = 0
        estimators[0].config_index = 1
        self.estimators = [estimators[winner], estimators[0]]
        self.estimators[1].update_count = self.estimators[0].update_count
        self.oracle.gen_configs(self.estimators[0].live_interactions, self.ns_counter)
        self.log.append(("swap", winner, tuple(self.oracle.configs[0].elements.sorted())))
