package params

import (
	"fmt"
	"strings"
)

// ManualPath is where the list of settings for users lies, from the root of the repository.
const ManualPath = "docs/settings.md"

// Manual is the list of settings for users.
func Manual() string {
	var b strings.Builder
	b.WriteString(`<!-- Written by "go generate ./internal/params" from internal/params/table.go. -->
# Settings

Settings are environment variables, read when the library is first used and again whenever a communicator is made, so that a value
which a program sets before its first call counts. A value that cannot be used is reported at ` + "`NCCL_DEBUG=WARN`" + ` and the default
stays. Numbers are plain, without a unit behind them. At ` + "`NCCL_DEBUG=INFO`" + ` the log lists what was set.

| name | default | accepted | what it does |
|---|---|---|---|
`)
	for _, k := range table {
		preset := k.Default
		if preset == "" {
			preset = "not set"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, preset, k.Range, k.Text)
	}
	return b.String()
}
