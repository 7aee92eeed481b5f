"""Learn one stream in partitions: rounds of parallel learning from a common base, merged after each.

`run.PartitionedRun` is a `Run` whose rounds are learnt by a pool of workers. `coordinator.Coordinator` and
`worker.Worker` do no I/O: a base and a chunk go in, and an end comes out. `pool.ThreadPool` has workers in
this process. `on_ray.RayPool` has others, for which `messages` packs all of them into bytes without pickle;
another transport implements `pool.Pool`.
"""
