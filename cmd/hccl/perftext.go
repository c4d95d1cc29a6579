package main

// What hccl perf --help and the manual page say.

const perfText = `Times an operation over a range of sizes and checks its results, with the flags and the table of nccl-tests.

The columns, twice over (with two buffers, then in place):
  size    bytes of the larger of a rank's two buffers
  count   elements, as the operation's own function takes them
  type, redop, root
  time    microseconds of one call, mean of calls back to back
  algbw   size / time, in 10^9 bytes per second
  busbw   algbw times a factor of the operation and the number of ranks: what the slowest link carries, to compare with its rate
  #wrong  elements that differ from what they must be, of all ranks; each element is looked at, and any makes the exit status 1
Operations without an in-place form (alltoall, sendrecv) have both buffers side by side in one allocation on the right.

Ranks are processes of this machine (--ranks), threads of one process (--threads, -t), several in one thread (-g), or what torchrun,
hccl run, Open MPI, MPICH or Slurm started: then each process finds its number in the environment, unless --ranks or --threads is
given. The processes meet at MASTER_ADDR:MASTER_PORT where those are set, or the next free port of the 16 from there; through the
process manager under MPICH; or else by a file named after the job in a folder that they share (--meet): by default the folder for
temporary files where all are on one host, and the working folder where they are not.`

const mixText = `A mix is a list of calls like those of a training step: each line says how often, which operation, which size, and where it
matters the element type, the reduction and the root; # begins a comment.

  # times  operation       size  type      reduction  root
  4          all_reduce      25M   bfloat16  sum
  1          all_gather      64M
  2          broadcast       4K    float     -          0

  hccl perf --mix FILE runs the list -n times and tells the mean of each line and the time of a whole step.`
