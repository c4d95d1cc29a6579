package main

import (
	"fmt"
	"strconv"
	"strings"
)

// subject is what is measured, apart from its size: an operation with what its function takes.
type subject struct {
	op    *operation
	typ   *elementType
	red   *reduction
	root  int
	ranks int
}

// rootShown is the root in a table: -1 where there is none.
func (s *subject) rootShown() int {
	if s.op.rooted {
		return s.root
	}
	return -1
}

// plain is a name without case, underscores and the ending of nccl-tests' programs: operations and types have several spellings.
func plain(name string) string {
	letters := strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
	if rest := strings.TrimSuffix(letters, "perf"); rest != "" {
		return rest
	}
	return letters // the command perf
}

// spelled are other names of the element types.
var spelled = map[string]string{"char": "int8", "int": "int32", "fp16": "half", "float16": "half", "fp32": "float", "float32": "float",
	"fp64": "double", "float64": "double", "bf16": "bfloat16", "fp8e4m3": "f8e4m3", "float8e4m3": "f8e4m3", "fp8e5m2": "f8e5m2",
	"float8e5m2": "f8e5m2", "short": "int16"}

func typesNamed(name string) (found []*elementType, err error) {
	wanted := plain(name)
	if other, ok := spelled[wanted]; ok {
		wanted = other
	}
	for k := range elementTypes {
		if elementTypes[k].name == wanted || wanted == "all" {
			found = append(found, &elementTypes[k])
		}
	}
	if found == nil {
		err = fmt.Errorf("%s: no such element type; there are %s, and all", name, typeNames())
	}
	return found, err
}

func reductionsNamed(op *operation, name string) (found []*reduction, err error) {
	if !op.reduces {
		return []*reduction{&moved}, nil
	}
	for k := range reductions {
		if reductions[k].name == plain(name) || plain(name) == "all" {
			found = append(found, &reductions[k])
		}
	}
	if found == nil {
		err = fmt.Errorf("%s: no such reduction; there are %s, and all", name, reductionNames())
	}
	return found, err
}

func rootsNamed(op *operation, name string, ranks int) (found []int, err error) {
	if !op.rooted {
		return []int{0}, nil
	}
	if plain(name) == "all" {
		for r := range ranks {
			found = append(found, r)
		}
		return found, nil
	}
	root, err := strconv.Atoi(name)
	if err != nil || root < 0 || root >= ranks {
		return nil, fmt.Errorf("%s: there are %d ranks, so that the root is from 0 to %d, or all", name, ranks, ranks-1)
	}
	return []int{root}, nil
}

// subjects are all that the names stand for: each may be "all".
func subjects(op *operation, typ, red, root string, ranks int) (found []subject, err error) {
	types, err := typesNamed(typ)
	if err != nil {
		return nil, fmt.Errorf("-d %w", err)
	}
	reds, err := reductionsNamed(op, red)
	if err != nil {
		return nil, fmt.Errorf("-o %w", err)
	}
	roots, err := rootsNamed(op, root, ranks)
	if err != nil {
		return nil, fmt.Errorf("-r %w", err)
	}
	for _, t := range types {
		for _, o := range reds {
			if !o.takes(t) && len(types)*len(reds) == 1 {
				return nil, fmt.Errorf("-d %s -o %s: the reduction is not defined for these elements", t.name, o.name)
			} else if !o.takes(t) {
				continue
			}
			if err := exactFor(t, o, ranks); err != nil && len(types) == 1 {
				return nil, err
			} else if err != nil {
				continue // "all" is all that can be checked
			}
			for _, r := range roots {
				found = append(found, subject{op, t, o, r, ranks})
			}
		}
	}
	return found, nil
}

// exactFor refuses what could not be checked: sums of many ranks have more digits than the 8-bit floats.
func exactFor(t *elementType, red *reduction, ranks int) error {
	if t.exact < 256 && ranks > red.most {
		return fmt.Errorf("-d %s -o %s: results of more than %d ranks are not exact and could not be checked; use fewer ranks or a wider type",
			t.name, red.name, red.most)
	}
	return nil
}

func typeNames() string      { return names(elementTypes, func(t elementType) string { return t.name }) }
func reductionNames() string { return names(reductions, func(r reduction) string { return r.name }) }

func names[T any](list []T, name func(T) string) string {
	var words []string
	for _, t := range list {
		words = append(words, name(t))
	}
	return strings.Join(words, ", ")
}
