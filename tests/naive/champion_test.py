"""The champion test: a number for every bet of every start, settled by formula."""

from __future__ import annotations

import math

STAKES = 24
SHARES = {base: [base**j / sum(base**i for i in range(STAKES)) for j in range(STAKES)] for base in (0.6, 0.9)}
SIZES = [0.75 * 1.6 ** (2 - j) for j in range(STAKES)]


class Bet:
    """One stake, begun with some capital."""

    def __init__(self, j: int, capital: float) -> None:
        self.j = j
        self.log_wealth = math.log(capital)

    def settle(self, w1: float, w0: float, r: float, q1: float, q0: float, floor: float) -> None:
        if floor == 0:
            stake, most = 0.75 * 1.6**-self.j, 0.0
        else:
            stake, most = min(SIZES[self.j] * floor, 0.75), 1.0
            if floor < 1:
                most = min(1.0, (0.75 / stake - 1) / (1 / floor - 1))
        q1, q0 = min(q1, most), max(q0, 1 - most)
        d = w1 * (r - q1) - w0 * (r - q0) + q1 - q0
        assert stake * d >= -0.75 - 1e-9
        self.log_wealth += math.log1p(stake * d)


class ChampionTest:
    """Return the evidence that the challenger is better, and that it is worse."""

    def __init__(self, floor: float, *, learnt: bool = False) -> None:
        self.floor = floor
        self.learnt = learnt
        self.t = 0
        self.bets: tuple[list[Bet], list[Bet]] = ([], [])
        self.free: tuple[list[Bet], list[Bet]] = ([], [])
        self.reserve = 1.0
        self.rewards = self.squares = 0.0

    def start(self) -> None:
        share = 0.0
        if self.t == 0:
            share = 0.9
        elif self.t >= 1024 and (self.t // 1024).bit_count() == 1 and self.t % 1024 == 0:
            k = (self.t // 1024).bit_length() - 1
            share = 0.1 / ((k + 1) * (k + 2))
        if share:
            self.reserve -= share
            if self.learnt:
                share /= 2
                for side in self.free:
                    side.extend(Bet(j, share * SHARES[0.9][j]) for j in range(STAKES))
            for side in self.bets:
                side.extend(Bet(j, share * SHARES[0.6 if self.floor else 0.9][j]) for j in range(STAKES))

    def update(self, w1: float, w0: float, r: float) -> None:
        c = self.rewards / self.squares if self.squares else 0.5
        self.update_predicted(w1, w0, r, c, c)
        self.rewards += (w1 - w0) ** 2 * r
        self.squares += (w1 - w0) ** 2

    def update_predicted(self, w1: float, w0: float, r: float, q1: float, q0: float) -> None:
        self.start()
        self.t += 1
        for bet in self.bets[0]:
            bet.settle(w1, w0, r, q1, q0, self.floor)
        for bet in self.bets[1]:
            bet.settle(w0, w1, r, q0, q1, self.floor)
        for bet in self.free[0]:
            bet.settle(w1, w0, r, q1, q0, 0.0)
        for bet in self.free[1]:
            bet.settle(w0, w1, r, q0, q1, 0.0)

    def evidence(self) -> tuple[float, float]:
        better, worse = (
            self.reserve + math.fsum(math.exp(bet.log_wealth) for bet in (*side, *free))
            for side, free in zip(self.bets, self.free, strict=True)
        )
        return better, worse
