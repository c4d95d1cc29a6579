module hccl.dev/hccl

go 1.26
