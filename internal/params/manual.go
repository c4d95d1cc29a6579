package params

import (
	"fmt"
	"slices"
	"strings"
)

// ManualPath is where the list of settings for users lies, from the root of the repository.
const ManualPath = "docs/settings.md"

const manualHead = `<!-- Written by "go generate ./internal/params" from internal/params/table.go and foreign.go. -->
# Settings

A setting is taken from the first of these places that has it:

1. the environment;
2. the file that ` + "`NCCL_CONF_FILE`" + ` names, or without it ` + "`~/.nccl.conf`" + `;
3. ` + "`/etc/nccl.conf`" + `.

Settings are read when the library is first used and again whenever a communicator is made, so that a value which a program sets
before its first call counts; a file is read once. An empty value hides what a later place says and means the default. A value that
cannot be used is reported at ` + "`NCCL_DEBUG=WARN`" + ` and the default stays (of NCCL_DEBUG itself: WARN); so is a name that begins with
NCCL_ or HCCL_ and is no setting, with the nearest that is one. Numbers are plain, without a unit behind them.

At ` + "`NCCL_DEBUG=INFO`" + ` the log says what was set and where. ` + "`hccl params`" + ` prints all names with value, place and
whether they act; ` + "`hccl params --check FILE`" + ` says what is wrong with a file.

A line of a file is ` + "`NAME=value`" + `, with blanks around both as one likes, a comment that begins with #, or empty. The value may
stand in quotes, which keep blanks at its ends; behind it, after a blank, a comment may stand. A line that is none of this is
reported with file and number, and the others count. Of a name that stands in a file twice the first line counts.

Settings that decide how data move must be alike on all ranks. They are compared when a communicator is made; where they differ, one
rank warns with names, values and ranks, and all use rank 0's. ` + "`NCCL_SHM_DISABLE`" + ` on any rank counts for all.

## Settings that act

| name | default | accepted | what it does |
|---|---|---|---|
`

const manualOthers = `
## Other names of NCCL's

They are accepted: setting one is no mistake and is not reported as one, except in the line "set without effect" at
` + "`NCCL_DEBUG=INFO`" + `. *No effect* is for good; *not yet* belongs to a part of the library that is not there yet.

| names | effect | why |
|---|---|---|
`

// manualFoot leads to the pages before and behind; a test of all pages holds it to their order.
const manualFoot = `
---

Before: [What the numbers are](numerics.md) · [All pages](README.md) · Next: [Streams](streams.md)
`

// Manual is the list of settings for users.
func Manual() string {
	var b strings.Builder
	b.WriteString(manualHead)
	for _, k := range table {
		if k.Effect != Acts {
			continue
		}
		preset := "not set"
		if k.Default != "" {
			preset = "`" + k.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, preset, k.Range, k.Text)
	}
	b.WriteString(manualOthers)
	for _, k := range table {
		if k.Effect != Acts {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Name, k.Effect, k.Text)
		}
	}
	for _, g := range groups {
		names := strings.Fields(g.names)
		slices.Sort(names)
		for i := range names {
			names[i] = "`NCCL_" + names[i] + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(names, " "), g.effect, g.why)
	}
	b.WriteString(manualFoot)
	return b.String()
}
