"""Learn one stream in partitions: rounds of parallel learning from a common base, merged after each.

`run.PartitionedRun` is a `Run` whose rounds are learnt by a pool of workers. `coordinator.Coordinator` and
`worker.Worker` do no I/O: a base and a chunk go in, an end comes out, and `messages` packs each of them into
bytes without pickle. `local.ProcessPool` carries messages to processes of this machine; another transport
implements `local.Pool`.
"""
