package params

import (
	"fmt"
	"slices"
	"strings"

	"hccl.dev/hccl/internal/log"
)

// report says what is wrong with the settings, each thing once, and at INFO what was set where, whenever that has changed.
func report(v, before *Values) {
	if !log.On(log.LevelWarn, 0) {
		return
	}
	lines, _ := files()
	for _, text := range v.Problems() {
		log.WarnOnce(text, "%s", text)
	}
	if !log.On(log.LevelInfo, log.Env) {
		return
	}
	v.told = summary(v, lines)
	for k, text := range v.told {
		if text != "" && (before == nil || before.told[k] != text) {
			log.Info(log.Env, "%s", text)
		}
	}
}

// Problems says what is wrong with the settings: lines of files that cannot be read, names that are none, values that are refused.
func (v *Values) Problems() []string {
	lines, texts := files()
	texts = append(texts, unknown(names(), lines)...)
	for _, s := range v.settings {
		if s.Bad != "" {
			how := "it stays at"
			if s.Knob.instead != "" {
				how = "it counts as"
			}
			texts = append(texts, fmt.Sprintf("%s=%s (%s) is not used: %s; %s %q", s.Knob.Name, s.Bad, s.Place, s.Why, how, s.Value))
		}
	}
	return texts
}

// told is what a snapshot says of itself at INFO: the settings that act, and those that are set in vain.
type told [2]string

func summary(v *Values, lines []found) told {
	var acting, idle, read []string
	for _, s := range v.settings {
		if s.Source != Default && s.Knob.Effect == Acts {
			acting = append(acting, fmt.Sprintf("%s=%s (%s)", s.Knob.Name, s.Value, s.Place))
		}
	}
	for _, f := range set(names(), lines) {
		if k := known(f.name); !ours(f.name) || k != nil && k.Effect != Acts {
			idle = append(idle, fmt.Sprintf("%s (%s)", f.name, f.place()))
		}
	}
	for _, f := range lines {
		if !slices.Contains(read, f.file) {
			read = append(read, f.file)
		}
	}
	out := told{"settings: " + strings.Join(acting, ", ")}
	if acting == nil {
		out[0] = "settings: all at their defaults"
	}
	if read != nil {
		out[0] += "; files read: " + strings.Join(read, ", ")
	}
	if idle != nil {
		out[1] = "set without effect: " + strings.Join(idle, ", ") + "; hccl params says why"
	}
	return out
}

// set joins the environment's names with the lines of files.
func set(names []string, lines []found) []found {
	var all []found
	for _, name := range names {
		all = append(all, found{name: name})
	}
	return append(all, lines...)
}

// unknown says of each name that looks like a setting and is none where it stands and what may have been meant. Names in a file that
// are not meant for this library, which NCCL would put into the environment, are no mistake.
func unknown(names []string, lines []found) (texts []string) {
	for _, f := range set(names, lines) {
		if f.name == confFile && f.file != "" {
			texts = append(texts, fmt.Sprintf("%s (%s) has no effect in a file: set it in the environment", f.name, f.place()))
		}
		if !ours(f.name) || known(f.name) != nil || stranger(f.name) {
			continue
		}
		text := fmt.Sprintf("%s (%s) is no setting and has no effect", f.name, f.place())
		if near := nearest(f.name); near != "" {
			text += ": did you mean " + near + "?"
		}
		texts = append(texts, text)
	}
	return texts
}

func ours(name string) bool {
	return strings.HasPrefix(name, "NCCL_") || strings.HasPrefix(name, "HCCL_")
}

// Check reads a file as a settings file and says what is wrong with it: lines, names and values.
func Check(path string) []string {
	lines, faults := fileAt(path)
	faults = append(faults, unknown(nil, lines)...)
	for _, f := range lines {
		k := known(f.name)
		if k == nil || k.Effect != Acts || f.text == "" && !k.emptyCounts {
			continue
		}
		if err := k.set(new(Values), f.text); err != nil {
			faults = append(faults, fmt.Sprintf("%s: %s=%s: %v", f.place(), f.name, f.text, err))
		}
	}
	return faults
}
