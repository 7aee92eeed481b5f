"""Let a study and two streams share a machine: every slot a policy decides who has how many workers.

Next: 23 to 25 have parts of your own.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from onlineauto import Run, Workspace, datasets
from onlineauto.cluster import Cluster, StreamJob
from onlineauto.tune import Float, Study

PRICES, N = datasets.path("reg-diamonds"), 20_000


def main(folder: Path) -> None:
    # Slots of a second, as this ends soon; half a minute is more usual. Without `capacity`, there is what
    # this machine has, and with backend="ray" what the nodes of a Ray cluster have.
    history = folder / "history.jsonl"
    cluster = Cluster(slot=1.0, capacity={"CPU": 4}, history=history)

    # The workers of a study are processes, each with a trial. They import what trials run: here a function of
    # the standard library, which stands for a training.
    study = Study({"x": Float(0, 1)}, "fifo", "random", max_resource=1, max_trials=20)
    cluster.submit(study, trainable="operator:length_hint", name="rates")

    # A stream in partitions has up to as many workers, and the same result however many it had.
    cluster.submit(StreamJob(Workspace(live_configs=2), PRICES, partitions=2, events=N), name="parts")

    # A learner with all its live configs takes one worker.
    run = Run(Workspace(quadratic=["::"]), PRICES)
    cluster.submit(run, events=N, name="prices")

    cluster.run()
    for job in cluster.jobs:
        print(f"{job.name}: {job.state}, {job.done:,.0f} of {job.total:,.0f}")
    took = cluster.history().completion_times()
    print("slots from arrival to end:", {name: round(slots, 1) for name, slots in took.items()})
    print(f"{len(history.read_text().splitlines())} lines of history, for onlineauto simulate")


if __name__ == "__main__":  # processes of the study import this file
    with TemporaryDirectory() as temporary:
        main(Path(temporary))
