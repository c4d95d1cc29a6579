module hccl.dev/hccl

go 1.26.0

require golang.org/x/sys v0.50.0

require gonum.org/v1/gonum v0.17.0

require (
	github.com/NVIDIA/go-nvml v0.13.4-1
	github.com/google/uuid v1.6.0 // indirect
)

require (
	github.com/google/go-cmp v0.7.0
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.9
	pgregory.net/rapid v1.3.0
)
