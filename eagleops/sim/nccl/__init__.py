"""A stand-in NCCL: it reads its variables, refuses and logs as NCCL 2.28 does."""
